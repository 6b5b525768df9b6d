/**
 * Identifies the caller of a request. Keys come as `Authorization: Bearer`, as `?access_token=` or as a cookie (pages
 * and EventSource can send no header). Without any key configured nothing is served: a forgotten setting must not open
 * a queue to the world.
 *
 * On a developer's machine the variable `ALLOW_LOCALHOST` opens it to requests for localhost. The host alone would not
 * suffice: a proxy in front of a deployment may name any. Nor would the variable: an attacker's host name may lead to
 * this machine.
 */

import { type ApiKey, roleOf, SCOPES } from '../../access/access';
import { isKeyId, type KeyMembers, keyIdIn } from '../../access/keys';
import { findKey, keyWithId } from '../../across/known-keys';
import { readAccess, readLogin } from '../../config';
import { hexOf, sha256Of } from '../../job/bytes';
import { defined } from '../../job/envelope/fields';
import { type ApiError, refusal } from '../../job/errors';
import { getOrInsert } from '../../job/get-or-insert';
import type { AppContext, Caller } from '../context';
import { mountPrefix } from '../request/path';
import { ADMIN_PREFIX } from '../route';
import { COOKIE, cookieIn } from './cookies';

/** URLs of a loopback host; nothing may come between it and its port or path. */
const LOOPBACK = /^https?:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(?=[/?#]|$)/i;

/** A loopback host in the header `Host`, which a browser takes from the address of its page. */
const LOOPBACK_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/i;

const PARAMETER = 'access_token';

/** A caller that needs no key may do everything. */
export const ANYONE: Caller = { open: true, name: null, role: 'admin', scopes: SCOPES, key_hint: null };

/**
 * The caller of a request.
 * @param presented the key of the request; asked for only where keys are configured
 * @throws {ApiError} 401; 503 where the keys made at run time cannot be read
 */
export async function identify(c: AppContext, presented: () => string | undefined): Promise<Caller> {
  const { apiKeys, localhost, localhostSecret } = readAccess(c.env);
  if (apiKeys.length === 0 && keyIdIn(sentToken(c)) === undefined && !readLogin(c.env)) {
    // A server may make the URL of what the client says in other headers, so `Host` is judged itself.
    const isLocal =
      LOOPBACK.test(c.req.url) &&
      LOOPBACK_HOST.test(c.req.header('Host') ?? 'localhost') &&
      isVouchedFor(c, localhostSecret);
    if (!localhost || !isLocal)
      throw unauthorized('This deployment has no API key, so it is closed.', howToOpen(isLocal));
    return ANYONE;
  }
  const token = presented();
  if (token === undefined) throw loginNeeded(c, 'An API key is required.');
  const caller = (await callerWith(apiKeys, token)) ?? (await callerMade(c, token));
  if (caller === undefined) throw unauthorized('This API key is not known.');
  return caller;
}

/**
 * wrangler's development server takes the URL from a header of the client. `npm start` and `tocsin dev` mark requests
 * that reached this machine by its own name with a secret. Other Workers call without an address of a client.
 */
function isVouchedFor(c: AppContext, secret: string | undefined): boolean {
  if (secret === undefined || c.req.header('CF-Connecting-IP') === undefined) return true;
  return c.req.header('Tocsin-Localhost-Secret') === secret;
}

function howToOpen(isLocal: boolean): string {
  const key = 'Set a key with "wrangler secret put API_KEYS", then send it as "Authorization: Bearer <key>".';
  return isLocal ? `${key} For development, set ALLOW_LOCALHOST=true in .dev.vars or .env.` : key;
}

/** What a request itself brings: a key or a token. */
export function sentToken(c: AppContext): string | undefined {
  const header = c.req.header('Authorization');
  return header === undefined ? c.req.query(PARAMETER) : /^Bearer +(\S+) *$/i.exec(header)?.[1];
}

/** The key in a request. @throws {ApiError} 401 for a cookie that may not be used */
export function presentedToken(c: AppContext): string | undefined {
  const sent = sentToken(c);
  if (sent !== undefined || c.req.header('Authorization') !== undefined) return sent;
  const cookie = cookieIn(c, COOKIE);
  if (cookie !== undefined) ownPagesOnly(c, 'The cookie');
  return cookie;
}

/** For what browsers, or the proxy before this server, add by themselves. @throws {ApiError} 401 */
export function ownPagesOnly(c: AppContext, what: string): void {
  if (mayUseCookie(c)) return;
  const hint = 'Send the key as "Authorization: Bearer <key>", or an Origin header that names this server.';
  throw unauthorized(`${what} counts only in requests of pages of this server.`, hint);
}

/**
 * Browsers send cookies with requests of foreign pages, too. They name the origin of writes, WebSockets and
 * EventSources: it must be this server's. A write without it comes from another client, which has no cookie.
 */
function mayUseCookie(c: AppContext): boolean {
  const origin = c.req.header('Origin');
  if (origin !== undefined) return isOwnOrigin(c, origin);
  const isRead = c.req.method === 'GET' || c.req.method === 'HEAD';
  return isRead || c.req.header('Sec-Fetch-Site') === 'same-origin';
}

/**
 * The address of the client: as Cloudflare or a trusted proxy says it, else that of the connection. `tocsin serve`
 * removes the header from requests that come through no proxy.
 */
export function clientAddress(c: AppContext): string | undefined {
  const { clientIp } = (c.req.raw.cf ?? {}) as { clientIp?: string };
  return c.req.header('CF-Connecting-IP') ?? clientIp?.replace(/:\d+$/, '').replace(/^\[|\]$/g, '');
}

export const isOwnOrigin = (c: AppContext, origin: string): boolean => origin === new URL(c.req.url).origin;

/** The caller with a key made at run time. @throws {ApiError} 401 if it has expired; 503 */
async function callerMade(c: AppContext, token: string): Promise<Caller | undefined> {
  const now = Date.now();
  const found = await findKey(c.env, token, now);
  if (found && found.end <= now) throw unauthorized('This API key has expired.', 'Create another key.');
  return found && { ...callerOfKey(found), key_hash: found.hash };
}

const callerOfKey = ({ id, name, scopes, bounds, rate }: KeyMembers & { id: string }): Caller =>
  defined({
    open: false,
    name,
    role: roleOf(scopes),
    scopes,
    key_hint: id,
    via: 'key' as const,
    key_id: id,
    bounds,
    rate,
  });

/** Has the key of this request, its token or its login, ended since? A key of `API_KEYS` has not. */
export async function hasEnded(c: AppContext): Promise<boolean> {
  const { token, end = token?.end, key_id: id, key_hash: hash } = c.get('caller') ?? ANYONE;
  const now = Date.now();
  if (end !== undefined && end <= now) return true;
  // Where this cannot be known for too long, the client may come back and be refused.
  return id !== undefined && !(await keyWithId(c.env, id, now, hash).catch(() => undefined));
}

interface Known {
  digest: Uint8Array;
  caller: Caller;
}

const known = new WeakMap<readonly ApiKey[], Promise<Known[]>>();

const knownKeys = (keys: readonly ApiKey[]): Promise<Known[]> =>
  getOrInsert(known, keys, () => Promise.all(keys.map(knownBy)));

export const isKey = async (c: AppContext, text: string): Promise<boolean> =>
  (await callerWith(readAccess(c.env).apiKeys, text)) !== undefined;

/** The key of this deployment that has this hint, or this id. @throws {ApiError} 503 */
export async function keyWithHint(c: AppContext, hint: string): Promise<Caller | undefined> {
  const all = await knownKeys(readAccess(c.env).apiKeys);
  const found = all.find(({ caller }) => caller.key_hint === hint)?.caller;
  if (found || !isKeyId(hint)) return found;
  const made = await keyWithId(c.env, hint, Date.now());
  return made && callerOfKey(made);
}

/** Compares digests of equal length in constant time, and all of them, so that timing reveals nothing of the keys. */
async function callerWith(keys: readonly ApiKey[], token: string): Promise<Caller | undefined> {
  const presented = await sha256Of(token);
  let found: Caller | undefined;
  for (const { digest, caller } of await knownKeys(keys)) {
    if (crypto.subtle.timingSafeEqual(digest, presented)) found = caller;
  }
  return found;
}

async function knownBy({ key, scopes, name, bounds }: ApiKey): Promise<Known> {
  const digest = await sha256Of(key);
  const hint = hexOf(digest.subarray(0, 3));
  const caller = { open: false, name: name ?? null, role: roleOf(scopes), scopes, key_hint: hint, via: 'key' as const };
  return { digest, caller: bounds ? { ...caller, bounds } : caller };
}

export const unauthorized = (message: string, hint?: string, details?: Record<string, unknown>): ApiError =>
  refusal(401, 'unauthorized', message, { hint, details, headers: { 'WWW-Authenticate': 'Bearer' } });

/** 401 with the path at which a browser logs in, if there is one. */
export function loginNeeded(c: AppContext, message: string): ApiError {
  if (!readLogin(c.env)?.client) return unauthorized(message);
  const login = `${mountPrefix(c)}${ADMIN_PREFIX}/session/login`;
  return unauthorized(message, 'Send a key as "Authorization: Bearer <key>", or log in with a browser.', { login });
}
