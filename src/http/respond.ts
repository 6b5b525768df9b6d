/** Answers with a JSON body; the common headers come from the middleware. */
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { AppContext } from './context';

/** The media type of every answer, without a charset. */
export const MEDIA_TYPE = 'application/openjobspec+json';

/** A JSON answer. `headers` are added to those the middleware set. */
export function json(
  c: AppContext,
  body: Record<string, unknown>,
  status: number = 200,
  headers: Record<string, string> = {},
): Response {
  return c.body(JSON.stringify(body), status as ContentfulStatusCode, { ...headers, 'Content-Type': MEDIA_TYPE });
}
