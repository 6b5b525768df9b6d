/** The only place where an error becomes JSON. */
import { doubtStorage } from '../across/statistics';
import type { ErrorBody } from '../contract/errors';
import { errorDataOf } from '../durable/platform-errors';
import { apiErrorData, type ErrorData, HINTS, notFound, refusal } from '../job/errors';
import { storageFailure } from '../job/storage-failure';
import { quote } from '../job/text';
import { type AppContext, unredacted } from './context';

const DOCS_URL = 'https://openjobspec.org/docs/errors';

/** Answers `error`, whatever was thrown. Defects are logged with the request id and reveal nothing of the inside. */
export function answerError(thrown: unknown, c: AppContext): Response {
  const error = errorData(thrown, c);
  return unredacted(c, { error: renderError(error, c) }, error.status, error.headers);
}

/** An error on the wire; also next to the other members of a refusal. */
export const renderError = (error: Omit<ErrorData, 'status' | 'headers'>, c: AppContext): ErrorBody => ({
  code: error.code,
  type: error.type ?? error.code,
  message: error.message,
  retryable: error.retryable,
  request_id: c.get('requestId'),
  ...(error.details && { details: error.details }),
  hint: error.hint ?? HINTS[error.code],
  docs_url: `${DOCS_URL}#${error.code.toLowerCase()}`,
});

/** 404 for a path that no route has, 405 with `Allow` for a known path and another method. */
export function answerNoRoute(c: AppContext, allowed: string[]): Response {
  if (allowed.length === 0)
    return answerError(notFound('route', c.req.path, 'Check the path and its version prefix.'), c);
  const message = `${c.req.method} is not allowed on ${quote(c.req.path)}.`;
  const headers = { Allow: allowed.join(', ') };
  return answerError(refusal(405, 'method_not_allowed', message, { details: { allowed }, headers }), c);
}

function errorData(thrown: unknown, c: AppContext): ErrorData {
  const known = errorDataOf(thrown);
  if (!apiErrorData(thrown)) console.error(`${c.get('requestId')} ${c.req.method} ${c.req.path} failed:`, thrown);
  if (storageFailure(thrown)) doubtStorage(c.env);
  if (known) return known;
  return { status: 500, code: 'backend_error', message: 'The request failed unexpectedly.', retryable: true };
}
