/** What a queue says of the handler Workers that its jobs are pushed to. */
import type { TargetInQueue } from '../contract/targets';

/** A target as one queue sees it. Times in epoch ms. */
export interface TargetView extends Pick<TargetInQueue, 'state' | 'last_error' | 'types'> {
  name: string;
  /** Tells targets of the same binding with other options apart. */
  id: string;
  /** When its trouble began; absent while it is up. */
  since?: number;
  last_tried_at?: number;
  /** When it is called again by itself. */
  next_try_at?: number;
  /** When it was asked last what it takes. */
  asked_at?: number;
}
