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

/** Where many jobs share rows: blocks of the line, of the due index, or of retries, and the lease rows of singles. */
export interface JobPlace {
  /** Is this job here, and not over? */
  holds(key: number): boolean;
  /** The job as a row, if it is here and not over. */
  row(key: number): JobRow | undefined;
  /** {@link row} without the texts that would have to be read. */
  head(key: number): JobRow | undefined;
  /** The jobs behind a number that are not over, in order. Do not write meanwhile. @param bodies are they needed? */
  after(key: number, bodies?: boolean): Iterable<JobRow>;
  /** Pages of keys of open jobs, in order: below `from`, or above it if ascending. @param size of a page */
  pages(from: number, ascending: boolean, size: number): Iterable<number[]>;
  /** The job moved out into a row of its own, waits elsewhere for its next attempt, or has completed and is kept. */
  leave(key: number): void;
  /** Nothing is kept of these jobs: no row of their own, no lease, no place in the archive. */
  vanish(keys: readonly number[]): void;
}
