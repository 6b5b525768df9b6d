/**
 * The login of a browser: the key goes into a cookie that scripts cannot read and other sites cannot use. There is no
 * session besides it: removing a key ends its logins.
 */
import { readAccess, readConfig, readLogin } from '../../config';
import { sessions } from '../../contract/session';
import { defined } from '../../job/envelope/fields';
import { invalidRequest, refusal } from '../../job/errors';
import { type AppContext, type Caller, json, noContent, seesEverything } from '../context';
import { readBody } from '../request/body';
import { serve } from '../route';
import { attempts } from './attempts';
import { beginLogin, endLogin } from './code-flow';
import { COOKIE, cookieOf } from './cookies';
import { clientAddress, identify, isOwnOrigin } from './identify';

/** Longest key that is read, in characters: a cookie holds no more. And the body around it, in bytes. */
const MAX_KEY = 3_000;
const MAX_LOGIN_BYTES = 4_096;

export const adminSessionRoutes = serve(sessions, {
  show: (c) => show(c, c.get('caller') as Caller),
  logIn,
  beginLogin,
  endLogin,
  logOut,
});

async function logIn(c: AppContext) {
  refuseForeignPages(c);
  // If no key is required there is none to guess.
  const isClosed = readAccess(c.env).apiKeys.length > 0 || readLogin(c.env) !== undefined;
  const isGuess = c.get('caller') === undefined && isClosed;
  const forgive = isGuess ? attempts.begin(clientAddress(c), Date.now()) : undefined;
  const { key } = await readBody(c, MAX_LOGIN_BYTES);
  if (typeof key !== 'string' || key === '' || key.length > MAX_KEY) {
    throw invalidRequest('key', `key is required and must be a string of at most ${MAX_KEY} characters.`);
  }
  const caller = c.get('caller') ?? (await identify(c, () => key));
  forgive?.();
  // If no key is required there is nothing to remember.
  return show(c, caller, caller.open ? {} : { 'Set-Cookie': cookieOf(c, COOKIE, key) });
}

function logOut(c: AppContext) {
  refuseForeignPages(c);
  return noContent(c, { 'Set-Cookie': cookieOf(c, COOKIE, '', { maxAge: 0 }) });
}

function show(c: AppContext, caller: Caller, headers: Record<string, string> = {}) {
  const { open, name, role, scopes, via, key_id, subject, bounds } = caller;
  const redacts = readConfig(c.env).redact !== undefined && !seesEverything(caller);
  const known = defined({ via, key_id, subject, bounds });
  const who = { authenticated: true as const, open, name, role, scopes, ...known, redacts };
  return json(c, who, 200, { 'Cache-Control': 'no-store', ...headers });
}

/** A foreign page must not replace the reader's key by its own. */
function refuseForeignPages(c: AppContext): void {
  const origin = c.req.header('Origin');
  if (origin === undefined || isOwnOrigin(c, origin)) return;
  const own = new URL(c.req.url);
  const isOtherProtocol = URL.canParse(origin) && new URL(origin).host === own.host;
  throw refusal(403, 'forbidden', `Pages of ${origin} may not log in here.`, {
    details: { field: 'Origin', origin },
    ...(isOtherProtocol && {
      hint: `This server takes its own address to be ${own.origin}. Start tocsin serve with --behind-proxy if a proxy that sets X-Forwarded-Proto serves HTTPS for it.`,
    }),
  });
}
