/** How jobs that a handler waits for tell of their ends. */
import type { Awaited } from '../job/record';
import type { RunEnd } from '../job/wire';

/** The end of a job for the handler that waits for it: see `Awaited`. */
export interface RunEnding extends Pick<Awaited, 'by' | 'name' | 'claim' | 'index'>, Omit<RunEnd, 'result'> {
  /** JSON text. */
  result?: string;
}
