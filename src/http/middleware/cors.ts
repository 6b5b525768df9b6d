/**
 * Which pages may call. With keys configured, pages of any origin: they need a key like every caller. Without keys a
 * page could use its reader's queue. So only pages of the server itself may call, and those that the deployment names.
 */
import { type Access, readAccess, readTokens } from '../../config';
import { refusal } from '../../job/errors';
import { safely } from '../../job/thrown';
import { type AppContext, respond } from '../context';
import type { Check, Rules } from '../route';
import { isOwnOrigin } from '../session/identify';
import { tokenIn } from '../tokens/bearer';

const EXPOSED = [
  'OJS-Version',
  'X-Request-ID',
  'Location',
  'Retry-After',
  'Allow',
  'Warning',
  'Preference-Applied',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-OJS-Progress',
  'X-OJS-Queue-Depth',
  'X-OJS-Queue-Bound',
  'X-OJS-Queue-Pressure',
].join(', ');

const ASKED_HEADERS = 'Access-Control-Request-Headers';

const DEFAULT_ALLOWED_HEADERS =
  'Authorization, Content-Type, OJS-Version, X-Request-ID, Idempotency-Key, X-OJS-Delivery-ID, Last-Event-ID, X-Audit-Reason, Prefer';

export const cors: Check = (c, rules) => {
  const headers = c.get('headers');
  const sharedWith = readers(c, rules);
  if (sharedWith !== '*') headers.Vary = 'Origin';
  if (sharedWith === undefined) return;
  headers['Access-Control-Allow-Origin'] = sharedWith;
  headers['Access-Control-Expose-Headers'] = EXPOSED;
};

/** Refuses pages that may not call. A request without an origin is not a page's, or changes nothing. */
export const foreignPages: Check = (c, rules) => {
  const origin = c.req.header('Origin');
  if (origin !== undefined && readers(c, rules) === undefined) {
    throw refusal(403, 'forbidden', `Pages of ${origin} may not call this server.`, {
      details: { field: 'Origin', origin },
      hint: `Name the origin in the variable ALLOWED_ORIGINS${rules.ownPages ? '' : ', or configure a key with API_KEYS'}.`,
    });
  }
};

/** Answers every OPTIONS: a browser asks before it knows any key, so this comes before authentication. */
export const preflight: Check = (c) => {
  if (c.req.method !== 'OPTIONS') return undefined;
  return respond(c, null, 204, {
    'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS',
    'Access-Control-Allow-Headers': c.req.header(ASKED_HEADERS) ?? DEFAULT_ALLOWED_HEADERS,
    'Access-Control-Max-Age': '86400',
  });
};

/** The pages that may read the answer, as the header names them: undefined if the calling page may not. */
function readers(c: AppContext, rules: Rules): string | undefined {
  const access = accessTo(c);
  // No credentials: a foreign page needs a key, and its reader's cookie is not sent.
  const isKeyed = !access || (access.apiKeys.length > 0 && !rules.ownPages);
  if (isKeyed || rules.anyOrigin || bringsToken(c, rules)) return '*';
  const origin = c.req.header('Origin');
  if (origin === undefined) return undefined;
  return isOwnOrigin(c, origin) || access.origins.has(origin) ? origin : undefined;
}

/** Is it judged by a token? Before such a request a browser asks, without the token. */
function bringsToken(c: AppContext, { token }: Rules): boolean {
  if (!token) return false;
  const isAsked = c.req.method === 'OPTIONS' && /\bauthorization\b/i.test(c.req.header(ASKED_HEADERS) ?? '');
  return safely(() => (isAsked ? readTokens(c.env).secrets.length > 0 : tokenIn(c) !== undefined), false);
}

/** Undefined when the variables cannot be read: then only the probes are served, and every caller gets that error. */
const accessTo = (c: AppContext): Access | undefined => safely(() => readAccess(c.env), undefined);
