/**
 * Who may call what. Keys come as `Authorization: Bearer`, as `?access_token=` or as a cookie (EventSource can send no
 * header); each key has scopes, and the route says which one is needed (`routes.ts`). Without any key configured nothing is
 * served, so that nobody opens a queue to the world by forgetting a setting. On a developer's machine the variable
 * `ALLOW_LOCALHOST` opens it to requests for localhost. The host alone would not do: a proxy in front of a deployment may name
 * any. Nor would the variable: a name that an attacker's page has may lead to this machine.
 */
import { getCookie } from 'hono/cookie';
import { type ApiKey, readAccess, SCOPES, type Scope } from '../../config';
import { ApiError } from '../../job/errors';
import type { AppContext, Middleware } from '../context';
import { scopeOf } from '../routes';

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/** Cookie and query parameter that carry a key. */
const TOKEN_NAME = 'access_token';

export const authentication: Middleware = async (c, next) => {
  const scope = scopeOf(c);
  if (scope !== 'public') await authorize(c, scope);
  await next();
};

/** Lets everything in: the caller is trusted. */
export const everything: Middleware = async (c, next) => {
  c.set('scopes', SCOPES);
  await next();
};

async function authorize(c: AppContext, scope: Scope): Promise<void> {
  const { apiKeys, localhost } = readAccess(c.env);
  if (apiKeys.length === 0) {
    // The URL's own host is what the client connected to; forwarding headers are only what it claims.
    const isLocal = LOOPBACK.has(new URL(c.req.url).hostname);
    if (!localhost || !isLocal)
      throw unauthorized('This deployment has no API key, so it is closed.', howToOpen(isLocal));
    c.set('scopes', SCOPES);
    return;
  }
  const token = presentedToken(c);
  if (token === undefined) throw unauthorized('An API key is required.');
  const key = await findKey(apiKeys, token);
  if (key === undefined) throw unauthorized('This API key is not known.');
  if (!key.scopes.includes(scope)) throw forbidden(scope);
  c.set('scopes', key.scopes);
}

function howToOpen(isLocal: boolean): string {
  const key = 'Set a key with "wrangler secret put API_KEYS", then send it as "Authorization: Bearer <key>".';
  return isLocal ? `${key} For development, set ALLOW_LOCALHOST=true in .dev.vars or .env.` : key;
}

function presentedToken(c: AppContext): string | undefined {
  const header = c.req.header('Authorization');
  if (header !== undefined) return /^Bearer +(\S+) *$/i.exec(header)?.[1];
  return c.req.query(TOKEN_NAME) ?? (mayUseCookie(c) ? getCookie(c, TOKEN_NAME) : undefined);
}

/**
 * A browser sends cookies along with requests of foreign pages, and says whose they are: of every one that changes anything, of
 * a WebSocket, and of an EventSource. A page that the reader of the cookie did not open must not read along either.
 */
function mayUseCookie(c: AppContext): boolean {
  const origin = c.req.header('Origin');
  return origin === undefined || origin === new URL(c.req.url).origin;
}

const digests = new WeakMap<readonly ApiKey[], Promise<ArrayBuffer[]>>();

/** Compares digests of equal length in constant time, and all of them, so that timing tells nothing of the keys. */
async function findKey(keys: readonly ApiKey[], token: string): Promise<ApiKey | undefined> {
  let known = digests.get(keys);
  if (known === undefined) {
    known = Promise.all(keys.map(({ key }) => sha256(key)));
    digests.set(keys, known);
  }
  const presented = await sha256(token);
  let found: ApiKey | undefined;
  for (const [index, digest] of (await known).entries()) {
    if (crypto.subtle.timingSafeEqual(digest, presented)) found = keys[index];
  }
  return found;
}

function sha256(text: string): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
}

function unauthorized(message: string, hint?: string): ApiError {
  return new ApiError({
    status: 401,
    code: 'unauthorized',
    message,
    retryable: false,
    ...(hint && { hint }),
    headers: { 'WWW-Authenticate': 'Bearer' },
  });
}

function forbidden(scope: Scope): ApiError {
  return new ApiError({
    status: 403,
    code: 'forbidden',
    message: `This API key lacks the scope ${scope}.`,
    retryable: false,
    details: { required_scope: scope },
  });
}
