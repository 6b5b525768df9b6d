/**
 * The login of a browser: the key goes into a cookie that no script can read and that no other site can use. There is no session
 * beside it: whoever takes a key away takes its logins away.
 */
import { deleteCookie, setCookie } from 'hono/cookie';
import { readConfig } from '../../config';
import { invalidRequest, refusal } from '../../job/errors';
import { type AppContext, type Caller, json, seesEverything } from '../context';
import { readBody } from '../request/body';
import { DATA, del, get, post, type Route } from '../route';
import { identify, isOwnOrigin, TOKEN_NAME } from './identify';

/** Longest key that is looked at, in characters: a cookie holds no more. */
const MAX_KEY = 3_000;

/** Routes below `/ojs/v1/admin`. */
export const adminSessionRoutes: readonly Route[] = [
  get('/session', (c) => show(c, c.get('caller') as Caller), { scope: 'key' }),
  post('/session', logIn, { ...DATA, scope: 'public' }),
  del('/session', logOut, { ...DATA, scope: 'public' }),
];

async function logIn(c: AppContext): Promise<Response> {
  refuseForeignPages(c);
  const { key } = await readBody(c);
  if (typeof key !== 'string' || key === '' || key.length > MAX_KEY) {
    throw invalidRequest('key', `key is required and must be a text of at most ${MAX_KEY} characters.`);
  }
  const caller = c.get('caller') ?? (await identify(c, () => key));
  // Where no key is asked for there is nothing to remember.
  if (!caller.open) setCookie(c, TOKEN_NAME, key, attributes(c));
  return show(c, caller);
}

function logOut(c: AppContext): Response {
  refuseForeignPages(c);
  deleteCookie(c, TOKEN_NAME, attributes(c));
  return c.body(null, 204);
}

/** Who asks, and what they may do. */
function show(c: AppContext, caller: Caller): Response {
  const { open, name, role, scopes } = caller;
  const redacts = readConfig(c.env).redact !== undefined && !seesEverything(caller);
  return json(c, { authenticated: true, open, name, role, scopes, redacts }, 200, { 'Cache-Control': 'no-store' });
}

/** A browser drops a cookie without `Secure` on HTTPS only if it is told to; on plain localhost it takes none with it. */
function attributes(c: AppContext) {
  const secure = new URL(c.req.url).protocol === 'https:';
  return { path: '/', httpOnly: true, sameSite: 'Strict', secure } as const;
}

/** A page elsewhere must not put its own key in the place of the reader's. */
function refuseForeignPages(c: AppContext): void {
  const origin = c.req.header('Origin');
  if (origin === undefined || isOwnOrigin(c, origin)) return;
  throw refusal(403, 'forbidden', `Pages of ${origin} may not log in here.`, { details: { field: 'Origin', origin } });
}
