/** The only place where an error becomes JSON. */
import { doubtStorage } from '../across/statistics';
import type { ErrorBody } from '../contract/errors';
import { errorDataOf } from '../durable/platform-errors';
import { apiErrorData, type ErrorCode, type ErrorData, notFound, refusal } from '../job/errors';
import { storageFailure } from '../job/storage-failure';
import { quote } from '../job/text';
import { type AppContext, unredacted } from './context';

const DOCS_URL = 'https://openjobspec.org/docs/errors';

/** What to do about an error that brings no hint of its own. */
const HINTS: Record<ErrorCode, string> = {
  invalid_payload: 'Send one JSON object, encoded as UTF-8, in the body.',
  invalid_request: 'Correct the field named in details.field and send the request again.',
  schema_validation: 'Make args fit the schema registered for this job type.',
  unauthorized: 'Send "Authorization: Bearer <key>" with a key of this deployment.',
  forbidden: 'Use a key that has the scope named in details.required_scope.',
  token_expired: 'Make a new token or URL, or ask for one.',
  token_scope: 'Use an API key, or a token that allows this request.',
  outside_key: 'Use a key whose bounds, in details.bounds, contain what is asked for.',
  method_not_allowed: 'Use one of the methods in the Allow header.',
  not_found: 'Check the spelling; ended jobs are removed after their retention.',
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
  daily_limit_exceeded: 'Wait for the time in Retry-After, or use the Workers Paid plan.',
  storage_full: 'Wait for the time in Retry-After; keep ended jobs for a shorter time, or use several queues.',
  backend_error: 'Try again; if it persists, look for the request id in the logs.',
  invalid_configuration: 'Correct the variables named in details and deploy again.',
  unavailable: 'Wait for the time in Retry-After, then send the same request again.',
  timeout: 'Try again later.',
};

/** Answers `error`, whatever was thrown. Defects are logged with the request id and reveal nothing of the inside. */
export function answerError(thrown: unknown, c: AppContext): Response {
  const error = errorData(thrown, c);
  return unredacted(c, { error: renderError(error, c) }, error.status, error.headers);
}

/** An error on the wire; also next to the other members of a refusal. */
export function renderError(error: Omit<ErrorData, 'status' | 'headers'>, c: AppContext): ErrorBody {
  return {
    code: error.code,
    type: error.type ?? error.code,
    message: error.message,
    retryable: error.retryable,
    request_id: c.get('requestId'),
    ...(error.details && { details: error.details }),
    hint: error.hint ?? HINTS[error.code],
    docs_url: `${DOCS_URL}#${error.code.toLowerCase()}`,
  };
}

/** 404 for a path that no route has, 405 with `Allow` for a known path and another method. */
export function answerNoRoute(c: AppContext, allowed: string[]): Response {
  if (allowed.length === 0)
    return answerError(notFound('route', c.req.path, 'Check the path and its version prefix.'), c);
  const message = `${c.req.method} is not allowed on ${quote(c.req.path)}.`;
  const headers = { Allow: allowed.join(', ') };
  return answerError(refusal(405, 'method_not_allowed', message, { details: { allowed }, headers }), c);
}

function errorData(thrown: unknown, c: AppContext): ErrorData {
  const told = errorDataOf(thrown);
  if (!apiErrorData(thrown)) console.error(`${c.get('requestId')} ${c.req.method} ${c.req.path} failed:`, thrown);
  if (storageFailure(thrown)) doubtStorage(c.env);
  if (told) return told;
  return { status: 500, code: 'backend_error', message: 'The request failed unexpectedly.', retryable: true };
}
