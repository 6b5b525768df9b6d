/** The cookies of this server. With their prefix on HTTPS no other host, such as a sibling domain, can set them. */
import { generateCookie, getCookie } from 'hono/cookie';
import type { AppContext } from '../context';

const PREFIX = '__Host-';

/** A key or a session. */
export const COOKIE = 'tocsin_key';
/** A login that is under way at the identity provider. */
export const LOGIN_COOKIE = 'tocsin_login';

/** All names, the plain ones first. */
export const COOKIES = ['', PREFIX].flatMap((prefix) => [COOKIE, LOGIN_COOKIE].map((name) => prefix + name));

export const isForWholeHost = (cookie: string): boolean => cookie.startsWith(PREFIX);

const isSecure = (c: AppContext): boolean => new URL(c.req.url).protocol === 'https:';
const nameOf = (c: AppContext, name: string) => (isSecure(c) ? PREFIX : '') + name;

export const cookieIn = (c: AppContext, name: string): string | undefined => getCookie(c, nameOf(c, name));

/**
 * What sets a cookie. A browser accepts it on plain localhost only without `Secure`.
 * @param more `maxAge` in seconds: 0 removes it
 */
export function cookieOf(
  c: AppContext,
  name: string,
  value: string,
  more: { maxAge?: number; sameSite?: 'Lax' } = {},
): string {
  const options = { path: '/', httpOnly: true, sameSite: 'Strict', secure: isSecure(c), ...more } as const;
  return generateCookie(nameOf(c, name), value, options);
}
