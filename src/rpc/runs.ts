/** How jobs that a handler waits for tell of their ends. */
import type { RunError } from '../job/wire';

/** The end of a job for the handler that waits for it: see `Awaited`. */
export interface RunEnding {
  by: string;
  name: string;
  claim: number;
  index?: number;
  /** Absent: it was never started. */
  id?: string;
  /** JSON text. */
  result?: string;
  /** Bytes of a result that is too large to be sent. */
  omitted?: number;
  error?: RunError;
}
