/**
 * Everything that can be wrong with a request, as data: thrown as {@link ApiError} inside one object, carried as
 * {@link ErrorData} between objects, turned into JSON in `src/http/errors.ts` only.
 */

import { cut, quote } from './text';

/** What to do about an error of a code that brings no hint of its own. */
export const HINTS = {
  invalid_payload: 'Send one JSON object, encoded as UTF-8, in the body.',
  invalid_request: 'Correct the field named in details.field and send the request again.',
  schema_validation: 'Make args fit the schema registered for this job type.',
  unauthorized: 'Send "Authorization: Bearer <key>" with a key of this deployment.',
  forbidden: 'Use a key that has the scope named in details.required_scope.',
  token_expired: 'Make a new token or URL, or ask for one.',
  no_role: 'Have one of your groups added to the roles of LOGIN.',
  token_scope: 'Use an API key, or a token that allows this request.',
  outside_key: 'Use a key whose bounds, in details.bounds, contain what is asked for.',
  method_not_allowed: 'Use one of the methods in the Allow header.',
  not_found: 'Check the spelling. Jobs that have ended are removed after their retention.',
  duplicate: 'The job exists already: read it, or omit the id to get a new one.',
  conflict: "Nothing was changed. Read the job's current state and decide again.",
  result_pruned: 'Results are kept for a limited time; raise the retention of the queue.',
  payload_too_large: 'Send less, or send a reference to where the data is stored.',
  unsupported: 'See GET /ojs/manifest for what this server supports.',
  deadlock: 'Give the job another group, or do not wait for it.',
  too_deep: 'Wait for fewer jobs that wait for others.',
  rate_limited: 'Wait for the time in Retry-After.',
  QUEUE_FULL: 'Wait for the time in Retry-After, or raise the bound of the queue.',
  GROUP_FULL: "Wait for the time in Retry-After, or raise max_waiting of the queue's groups.",
  storage_full: 'Wait for the time in Retry-After; keep ended jobs for a shorter time, or use several queues.',
  daily_limit_exceeded: 'Wait for the time in Retry-After, or use the Workers Paid plan.',
  backend_error: 'Try again; if it persists, look for the request id in the logs.',
  invalid_configuration: 'Correct the variables named in details and deploy again.',
  unavailable: 'Wait for the time in Retry-After, then send the same request again.',
  timeout: 'Try again later.',
} as const;

/** Codes of the HTTP contract. `QUEUE_FULL` is upper case there too, and `GROUP_FULL` follows it. */
export type ErrorCode = keyof typeof HINTS;

/** An error in the shape that crosses RPC and becomes the body of an HTTP answer. */
export interface ErrorData {
  status: number;
  code: ErrorCode;
  /** `error.type` on the wire; the code when absent. */
  type?: string;
  message: string;
  /** May the same request succeed when it is sent again unchanged? */
  retryable: boolean;
  details?: Record<string, unknown>;
  hint?: string;
  /** Extra response headers, e.g. `Allow`, `Retry-After`. */
  headers?: Record<string, string>;
}

/** A result that can cross RPC without losing what its error says. */
export type Outcome<T> = { ok: true; value: T } | { ok: false; error: ErrorData };

/** The one error type of the product's own rules. Anything else that is thrown is a defect and answers 500. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(readonly data: ErrorData) {
    super(data.message);
  }
}

/** What an {@link ApiError} says, one that another object threw too; undefined for every other error. */
export function apiErrorData(thrown: unknown): ErrorData | undefined {
  // The class does not cross an RPC boundary; the name and the data do.
  return thrown instanceof Error && thrown.name === 'ApiError' ? (thrown as ApiError).data : undefined;
}

/** Unwraps an {@link Outcome}. @throws {ApiError} when it holds an error. */
export function unwrap<T>(outcome: Outcome<T>): T {
  if (outcome.ok) return outcome.value;
  throw new ApiError(outcome.error);
}

export function outcomeOf<T>(fn: () => T): Outcome<T> {
  try {
    return { ok: true, value: fn() };
  } catch (error) {
    if (error instanceof ApiError) return { ok: false, error: error.data };
    throw error;
  }
}

/** {@link outcomeOf} for async functions. @param index place of an entry in its batch, added to the error */
export async function eventualOutcomeOf<T>(fn: () => Promise<T>, index?: number): Promise<Outcome<T>> {
  try {
    return { ok: true, value: await fn() };
  } catch (error) {
    return outcomeOf(() => {
      throw index === undefined ? error : atIndex(error, index);
    });
  }
}

/** The results of what succeeded, in order. */
export function valuesOf<T>(outcomes: readonly Outcome<T>[]): T[] {
  return outcomes.flatMap((outcome) => (outcome.ok ? [outcome.value] : []));
}

/** Adds an entry's place in its batch to an error. Anything but an {@link ApiError} stays as it is. */
export function atIndex(error: unknown, index: number): unknown {
  if (!(error instanceof ApiError)) return error;
  return new ApiError({ ...error.data, details: { ...error.data.details, index } });
}

/** An error without the place of an entry, for a sender of one. Anything but an {@link ApiError} stays as it is. */
export function withoutIndex(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.data.details?.index === undefined) return error;
  const { index: _, ...details } = error.data.details;
  return new ApiError({ ...error.data, details });
}

/** An error that the same request would get again, unless `retryable`. @param more where given */
export function refusal(
  status: number,
  code: ErrorCode,
  message: string,
  more: { [K in keyof Omit<ErrorData, 'status' | 'code' | 'message'>]?: ErrorData[K] | undefined } = {},
): ApiError {
  const members = { ...more, ...(more.details && { details: quoted(more.details) }) };
  const given = Object.entries(members).filter(([, value]) => value !== undefined);
  return new ApiError({
    status,
    code,
    message: abridged(message, more.details),
    retryable: false,
    ...Object.fromEntries(given),
  });
}

/** A message is for a human, who is to find what is wrong in it, whatever a client has sent. */
const MAX_MESSAGE = 1000;

const quoted = (details: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(details).map(([name, value]) => [name, typeof value === 'string' ? quote(value) : value]),
  );

/** What has no space over more than two quotes' length: no message of ours has it. */
const UNBROKEN = /\S{401,}/gu;

/** The message with what it repeats of the details as it is quoted there, and no other long text of a client either. */
function abridged(message: string, details: Record<string, unknown> = {}): string {
  const long = Object.values(details).filter((value) => typeof value === 'string' && quote(value) !== value);
  const short = (long as string[]).reduce((text, value) => text.replaceAll(value, quote(value)), message);
  return cut(cut(short, 4 * MAX_MESSAGE).replace(UNBROKEN, quote), MAX_MESSAGE);
}

/** 400: the body is empty, not JSON, not an object, or nested too deeply. */
export function invalidPayload(message: string, details?: Record<string, unknown>): ApiError {
  return refusal(400, 'invalid_payload', message, { details });
}

/** 400: one field is missing or malformed. `field` is its path as the client wrote it, e.g. `options.priority`. */
export function invalidRequest(field: string, message: string, details: Record<string, unknown> = {}): ApiError {
  return refusal(400, 'invalid_request', message, { details: { field, ...details } });
}

/** 422: a retry policy says something impossible. `field` is its path, e.g. `retry.jitter.amount`. */
export function invalidPolicy(field: string, message: string): ApiError {
  return refusal(422, 'invalid_request', `${field}: ${message}`, { type: 'validation_error', details: { field } });
}

/** 403: what a key without the purge scope would remove, or have removed, by keeping it for less time. */
export function mayNotShorten(field: string): ApiError {
  const message = `${field} would be less than the current value; removing kept jobs needs the scope admin:purge.`;
  return refusal(403, 'forbidden', message, { details: { field, required_scope: 'admin:purge' } });
}

/** 404 with the kind and name of what does not exist. */
export function notFound(resourceType: string, resourceId: string, hint?: string): ApiError {
  const message = `${resourceType.charAt(0).toUpperCase()}${resourceType.slice(1)} ${quote(resourceId)} not found.`;
  return refusal(404, 'not_found', message, {
    details: { resource_type: resourceType, resource_id: resourceId },
    hint,
  });
}

/** 404 for a job, as an outcome. */
export const jobNotFound = (id: string, hint?: string) =>
  ({ ok: false, error: notFound('job', id, hint).data }) as const;

/** 409: the operation is not legal in the job's present state. */
export function conflict(message: string, details: Record<string, unknown>, hint?: string): ApiError {
  return refusal(409, 'conflict', message, { details, hint });
}

/** 409: the client-chosen id, or the unique key, is taken. */
export function duplicate(existingId: string, existingState: string, details: Record<string, unknown> = {}): ApiError {
  return refusal(409, 'duplicate', `Job ${existingId} exists already (${existingState}).`, {
    details: { existing_job_id: existingId, existing_job_state: existingState, ...details },
  });
}

/** 409: the idempotency key belongs to another request. */
export function usedOtherwise(key: string): ApiError {
  return new ApiError({
    status: 409,
    code: 'conflict',
    message: 'This Idempotency-Key was used for another request within the last 24 hours.',
    retryable: false,
    details: { idempotency_key: key },
    hint: 'Send the same request again to get its answer, or choose a new key for a new one.',
  });
}

/** 413: `field` is larger than allowed. */
export function payloadTooLarge(field: string, actualBytes: number, maxBytes: number, unit = 'bytes'): ApiError {
  const message = `${field} is too large: ${actualBytes} ${unit}, at most ${maxBytes} are accepted.`;
  const details = { field, actual_bytes: actualBytes, max_bytes: maxBytes };
  return refusal(413, 'payload_too_large', message, { details });
}

/** 422: a feature or version that is not offered. */
export function unsupported(message: string, details?: Record<string, unknown>, hint?: string): ApiError {
  return refusal(422, 'unsupported', message, { details, hint });
}

/** 500: the deployment's own settings contradict each other. `details` names the variables. */
export function invalidConfiguration(message: string, details: Record<string, unknown>): ApiError {
  return refusal(500, 'invalid_configuration', message, { details });
}

/** 503: storage or an object is overloaded or unreachable; try again after `retryAfterSeconds`. */
export function unavailable(message: string, retryAfterSeconds = 1): ApiError {
  return refusal(503, 'unavailable', message, {
    retryable: true,
    headers: { 'Retry-After': String(retryAfterSeconds) },
  });
}
