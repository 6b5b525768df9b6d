/** Lets browsers of any origin call with a key: preflights are answered, the contract's headers exposed. */
import type { Middleware } from '../context';

const EXPOSED = [
  'OJS-Version',
  'X-Request-ID',
  'Location',
  'Retry-After',
  'Allow',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-OJS-Progress',
  'X-OJS-Queue-Depth',
  'X-OJS-Queue-Bound',
  'X-OJS-Queue-Pressure',
].join(', ');

const DEFAULT_ALLOWED_HEADERS =
  'Authorization, Content-Type, OJS-Version, X-Request-ID, Idempotency-Key, X-OJS-Delivery-ID, Last-Event-ID';

/** Sets the headers that let a page read the answer. */
export const cors: Middleware = async (c, next) => {
  // Any origin, but no credentials: a foreign page needs a key, a cookie of the reader's does not travel with it.
  c.header('Access-Control-Allow-Origin', '*');
  c.header('Access-Control-Expose-Headers', EXPOSED);
  await next();
};

/** Answers every OPTIONS: a browser asks before it knows any key, so this stands before authentication. */
export const preflight: Middleware = async (c, next) => {
  if (c.req.method !== 'OPTIONS') return next();
  c.header('Access-Control-Allow-Methods', 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS');
  c.header('Access-Control-Allow-Headers', c.req.header('Access-Control-Request-Headers') ?? DEFAULT_ALLOWED_HEADERS);
  c.header('Access-Control-Max-Age', '86400');
  return c.body(null, 204);
};
