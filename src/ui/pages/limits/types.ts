/** A key that limits jobs, over all queues, as `GET /rate-limits` lists it. */
export interface LimitKey {
  key: string;
  concurrency?: number;
  limit?: number;
  period?: string;
  throttled?: boolean;
  active: number;
  current_count: number;
  window_resets_at: string | null;
  waiting: number;
  override?: { concurrency?: number; limit?: number; period?: string; expires_at?: string };
  queues: readonly { queue: string; active: number; current_count: number; waiting: number }[];
}
