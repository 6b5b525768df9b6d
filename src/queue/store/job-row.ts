/** A row of `jobs`, for every room of the queue. Only types and the names of states. */

/** Values of `jobs.state`. `waiting`: scheduled, available, retryable and active; `held`: not decided yet. */
export const STATE = { waiting: 0, pending: 1, cancelled: 2, discarded: 3, dead: 4, held: 5 } as const;

export type JobRow = {
  key: number;
  alias: string | null;
  state: number;
  type: string;
  priority: number;
  due_at: number | null;
  attempt: number;
  claims: number;
  created_at: number;
  enqueued_at: number;
  expires_at: number | null;
  ended_at: number | null;
  body: string;
  history: string | null;
  /** The key that the job counts under, if it is limited. */
  limit_key: string | null;
  /** Where its queue serves groups in strict order: its group, while the job has begun and has not ended. */
  holds_group: string | null;
  /** Its group, if it is in a block; other rows have it in their bodies. */
  group?: string;
};
