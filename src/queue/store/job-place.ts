import type { JobRow } from './job-row';

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
