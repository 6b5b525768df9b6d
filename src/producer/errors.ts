/** The errors of requests, as classes that a producer tells apart with `instanceof`. */

/** The longest pause that an answer may ask for, ms: a proxy's mistake must not park workers, or overflow a timer. */
const LONGEST_ASKED_MS = 3_600_000;

export interface TocsinErrorInfo {
  /** HTTP status; 0 when there was no answer, or nothing was sent. */
  status: number;
  /**
   * Code of the HTTP contract, or `network_error`, `invalid_response`, `invalid_request`, `unserialisable`, `aborted`,
   * `timeout`.
   */
  code: string;
  /** `X-Request-ID` of the answer, to find it in the server's log. */
  requestId?: string | undefined;
  /** May the same request succeed later, unchanged? */
  retryable: boolean;
  /** The server's details, e.g. `field`, `existingJobId`, `currentState`. */
  details?: Record<string, unknown> | undefined;
  hint?: string | undefined;
  /** How long the server asks to wait, in ms; an hour at most. */
  retryAfterMs?: number | undefined;
  /** True when the request may or may not have taken effect. */
  outcomeUnknown?: boolean | undefined;
  cause?: unknown;
}

/**
 * Base of every error of this library.
 *
 * @example
 * try {
 *   await tocsin.enqueue('email.send', [email]);
 * } catch (error) {
 *   if (error instanceof TocsinError) console.error(error.code, error.requestId, error.details);
 * }
 */
export class TocsinError extends Error {
  /** Written out, because a minifier renames classes. */
  override readonly name: string = 'TocsinError';
  readonly status: number;
  readonly code: string;
  readonly requestId: string | undefined;
  readonly retryable: boolean;
  readonly details: Record<string, unknown>;
  readonly hint: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly outcomeUnknown: boolean;

  constructor(message: string, info: TocsinErrorInfo) {
    super(message, info.cause === undefined ? undefined : { cause: info.cause });
    this.status = info.status;
    this.code = info.code;
    this.requestId = info.requestId;
    this.retryable = info.retryable;
    this.details = info.details ?? {};
    this.hint = info.hint;
    this.retryAfterMs = info.retryAfterMs === undefined ? undefined : Math.min(info.retryAfterMs, LONGEST_ASKED_MS);
    this.outcomeUnknown = info.outcomeUnknown ?? false;
  }
}

/** 400, 413, 422: the job (or request) is not acceptable as it is. */
export class InvalidJobError extends TocsinError {
  override readonly name: string = 'InvalidJobError';

  /** The path of the invalid member: `options.priority`, `retry.jitter.amount`. */
  get field(): string | undefined {
    return typeof this.details.field === 'string' ? this.details.field : undefined;
  }
}
/** 401, 403: no key, a wrong one, or one without the needed scope. */
export class UnauthorizedError extends TocsinError {
  override readonly name: string = 'UnauthorizedError';
}
/** 404: there is no such job (any more). */
export class NotFoundError extends TocsinError {
  override readonly name: string = 'NotFoundError';
}
/** 409: not legal in the job's present state, e.g. the cancel of a job that has ended. */
export class ConflictError extends TocsinError {
  override readonly name: string = 'ConflictError';
}
/** 409: a job with this id, or with the same unique key, exists. */
export class DuplicateJobError extends ConflictError {
  override readonly name: string = 'DuplicateJobError';

  get existingJobId(): string | undefined {
    return typeof this.details.existingJobId === 'string' ? this.details.existingJobId : undefined;
  }
}
/** 429: too many requests. */
export class RateLimitedError extends TocsinError {
  override readonly name: string = 'RateLimitedError';
}
/** 429: the queue is full. */
export class QueueFullError extends RateLimitedError {
  override readonly name: string = 'QueueFullError';
}
/** 5xx, no connection, no answer in time, or an unreadable answer. */
export class UnavailableError extends TocsinError {
  override readonly name: string = 'UnavailableError';
}

/** The awaited end did not come within the timeout; it may come later. */
export class WaitTimeoutError extends TocsinError {
  override readonly name: string = 'WaitTimeoutError';
}
/** The caller's `AbortSignal` fired; `cause` is its reason. */
export class AbortedError extends TocsinError {
  override readonly name: string = 'AbortedError';
}

/** The error for a request that its caller aborted. @param outcomeUnknown was any of it sent? */
export function aborted(signal: AbortSignal, outcomeUnknown: boolean): AbortedError {
  return new AbortedError('The request was aborted by its caller.', {
    status: 0,
    code: 'aborted',
    retryable: true,
    outcomeUnknown,
    cause: signal.reason,
  });
}

/** The error for an answer that did not come. @param outcomeUnknown may the request have been taken? */
export function unanswered(message: string, outcomeUnknown: boolean, cause?: unknown): UnavailableError {
  return new UnavailableError(message, { status: 0, code: 'network_error', retryable: true, outcomeUnknown, cause });
}

export function errorFor(message: string, info: TocsinErrorInfo): TocsinError {
  return new (classFor(info.status, info.code))(message, info);
}

function classFor(status: number, code: string): typeof TocsinError {
  if (status === 0 || status >= 500) return UnavailableError;
  if (status === 401 || status === 403) return UnauthorizedError;
  if (status === 404) return NotFoundError;
  if (status === 408) return WaitTimeoutError;
  if (status === 409) return code === 'duplicate' ? DuplicateJobError : ConflictError;
  if (status === 429) return code === 'QUEUE_FULL' || code === 'GROUP_FULL' ? QueueFullError : RateLimitedError;
  return status === 400 || status === 413 || status === 422 ? InvalidJobError : TocsinError;
}
