/** How every refusal is answered. */
import type { ErrorCode } from '../job/errors';

/** What went wrong, and what to do. */
export interface ErrorBody {
  code: ErrorCode;
  /** The code, or a kind of it. */
  type: string;
  message: string;
  /** May the same request succeed when it is sent again unchanged? */
  retryable: boolean;
  /** As in the header `X-Request-ID`. */
  request_id: string;
  /** What it is about: `field`, `required_scope`, `index` and the like. */
  details?: Record<string, unknown>;
  /** What to do about it. */
  hint: string;
  docs_url: string;
}

/** The answer to a request that is refused. */
export interface ErrorAnswer {
  error: ErrorBody;
}
