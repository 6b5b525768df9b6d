/** What a queue says of the handler Workers that its jobs are pushed to. */

/** A target as one queue sees it. Times in epoch ms. */
export interface TargetView {
  name: string;
  /** Tells targets of the same binding with other options apart. */
  id: string;
  /** `paused`: it did not take the last calls, and is tried again within seconds; `stopped`: for a minute. */
  state: 'up' | 'paused' | 'stopped';
  /** When its trouble began; absent while it is up. */
  since?: number;
  last_tried_at?: number;
  last_error?: string;
  /** When it is called again by itself. */
  next_try_at?: number;
  /** When it was asked last what it takes. */
  asked_at?: number;
  /** What it announced; absent when it announces nothing, or was not asked yet. */
  types?: string[];
}
