/**
 * The login of a browser at the identity provider: the authorization code flow with PKCE. A cookie holds what must
 * match at its end: no other browser can end a login, and no page can log its visitor in as another person.
 */
import { type LoginSettings, personIn } from '../../access/login';
import { LONGEST_MS, signToken } from '../../access/token';
import { readLogin, readSessions } from '../../config';
import { sha256Of, unpaddedBase64UrlOf } from '../../job/bytes';
import { invalidRequest, notFound } from '../../job/errors';
import { quote } from '../../job/text';
import { type AnswerOf, type AppContext, respond } from '../context';
import { mountPrefix } from '../request/path';
import { ADMIN_PREFIX } from '../route';
import { refuseForged, verified } from '../tokens/bearer';
import { COOKIE, cookieIn, cookieOf, LOGIN_COOKIE } from './cookies';
import { loginNeeded } from './identify';
import { callerOf } from './login';

const MAX_RETURN = 1_000;

/** Sends a browser to the provider. */
export async function beginLogin(c: AppContext) {
  const { provider, login, redirect_uri } = await flowOf(c);
  const to = returnTo(c);
  const [state, nonce, verifier] = [random(), random(), random()];
  const url = new URL(await provider.addressOf('authorization_endpoint'));
  const asked = {
    response_type: 'code',
    client_id: login.client.id,
    redirect_uri,
    scope: await provider.scopes(),
    ...{ state, nonce, code_challenge: unpaddedBase64UrlOf(await sha256Of(verifier)), code_challenge_method: 'S256' },
  };
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
  const kept = await cookieWith(c, LOGIN_COOKIE, 'tocsin:login', { state, nonce, verifier, to });
  return redirect(c, url.href, kept);
}

/** The way back: trades the code for a session. */
export async function endLogin(c: AppContext) {
  const { provider, login, redirect_uri } = await flowOf(c);
  // It counts once, whatever comes of it.
  c.get('headers')['Set-Cookie'] = cookieOf(c, LOGIN_COOKIE, '', { maxAge: 0, sameSite: 'Lax' });
  const { state, code = '', error } = c.req.query();
  const invalid = loginNeeded(c, 'This login was not begun by this browser, or too long ago.');
  const { claims: kept, end } = await verified(
    c,
    cookieIn(c, LOGIN_COOKIE) ?? '',
    'tocsin:login',
    invalid,
    readSessions(c.env),
  );
  if (kept.state !== state) refuseForged(c, invalid);
  if (end <= Date.now()) throw invalid;
  if (error !== undefined) throw loginNeeded(c, `The identity provider refused the login: ${quote(error)}.`);
  const code_verifier = String(kept.verifier);
  const { id_token } =
    (await provider.redeem({ grant_type: 'authorization_code', code, redirect_uri, code_verifier })) ?? {};
  const claims = await provider.claimsOf(String(id_token), login.client.id);
  const isOurs = claims?.nonce === kept.nonce && (claims?.azp ?? login.client.id) === login.client.id;
  const person = claims && isOurs ? personIn(login, claims) : undefined;
  if (!person) refuseForged(c, loginNeeded(c, 'The identity provider does not confirm this login.'));
  // Refused now rather than by every request.
  callerOf(login, person, 0);
  return redirect(c, String(kept.to), await cookieWith(c, COOKIE, 'tocsin:session', { iss: login.issuer, person }));
}

const random = () => unpaddedBase64UrlOf(crypto.getRandomValues(new Uint8Array(32)));

/** @throws {ApiError} 404 where browsers do not log in so */
async function flowOf(c: AppContext) {
  const login = readLogin(c.env);
  if (!login?.client) throw notFound('route', c.req.path, 'LOGIN has no client_id: log in with a key.');
  const { providerOf } = await import('./provider');
  const redirect_uri = `${new URL(c.req.url).origin}${mountPrefix(c)}${ADMIN_PREFIX}/session/callback`;
  return {
    provider: providerOf(login),
    login: login as LoginSettings & Required<Pick<LoginSettings, 'client'>>,
    redirect_uri,
  };
}

/** Where the browser goes in the end: a page of the dashboard. @throws {ApiError} 400 for any other */
function returnTo(c: AppContext): string {
  const places = ['/ojs/ui', '/ui'].map((place) => mountPrefix(c) + place);
  const given = c.req.query('return_to') ?? places[0] ?? '';
  const url = given.length <= MAX_RETURN && URL.canParse(given, c.req.url) ? new URL(given, c.req.url) : undefined;
  const isPage = places.some((place) => url?.pathname === place || url?.pathname.startsWith(`${place}/`));
  if (url && isPage && url.origin === new URL(c.req.url).origin) return url.href;
  throw invalidRequest('return_to', `return_to must be a page of the dashboard, such as ${places[0]}/jobs.`);
}

async function cookieWith(c: AppContext, name: string, kind: 'tocsin:login' | 'tocsin:session', claims: object) {
  const ms = LONGEST_MS[kind];
  const issue = { end: Date.now() + ms, jti: crypto.randomUUID() };
  const value = await signToken(readSessions(c.env), kind, claims, issue);
  // The way back begins at the provider, from where a browser sends no stricter cookie.
  const more = { maxAge: ms / 1_000, ...(kind === 'tocsin:login' && { sameSite: 'Lax' as const }) };
  return cookieOf(c, name, value, more);
}

function redirect(c: AppContext, Location: string, cookie: string) {
  const response = respond(c, null, 302, { Location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' });
  response.headers.append('Set-Cookie', cookie);
  return response as AnswerOf<null, 302>;
}
