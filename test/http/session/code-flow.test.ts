/** The login of a browser at the identity provider: authorization code, PKCE, and what must be the same at its end. */

import { env } from 'cloudflare:workers';
import type { JWTPayload } from 'jose';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { signToken } from '../../../src/access/token';
import { createApp } from '../../../src/http/app';
import { attempts } from '../../../src/http/session/attempts';
import { sha256Of, unpaddedBase64UrlOf } from '../../../src/job/bytes';
import { mountable } from '../../../src/library/mount';
import { clock, HOUR, MINUTE, T0 } from '../../support/clock';
import { Issuer } from '../../support/issuer';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';

const SESSION = `${V1}/admin/session`;
const HOST = 'https://queue.example';
const issuer = new Issuer();
const LOGIN = {
  issuer: issuer.url,
  audience: 'jobs',
  client_id: 'tocsin client',
  roles: { claim: 'groups', admin: ['ops'], viewer: ['team-a'], bounds: { 'team-a': { queues: ['a-*'] } } },
};
const VARIABLES = { LOGIN, LOGIN_SECRET: 'pass: word', API_KEYS: 'root', TOKEN_SECRET: 't'.repeat(32) };
const queue = TestServer.with(VARIABLES);

/** The first cookie of this name that an answer sets, as a browser sends it back. */
function cookieOf(answer: Response, name: string): string {
  const set = answer.headers.getSetCookie().filter((cookie) => cookie.startsWith(`${name}=`));
  return set.at(-1)?.split(';')[0] ?? '';
}

const get = async (path: string, headers: Record<string, string> = {}, to = queue) =>
  await to.send(new Request(new URL(path, HOST), { headers, redirect: 'manual' }));

async function begin(query = '', to = queue) {
  const answer = await get(`${SESSION}/login${query}`, {}, to);
  const url = new URL(answer.headers.get('Location') ?? 'none:');
  return { answer, url, asked: Object.fromEntries(url.searchParams), Cookie: cookieOf(answer, '__Host-tocsin_login') };
}

/** The provider's answer to the code, for the login that was begun last. */
function confirms({ asked }: { asked: Record<string, string> }, claims: JWTPayload = {}): void {
  issuer.answer = () => ({
    aud: LOGIN.client_id,
    nonce: asked.nonce,
    email: 'o@acme.example',
    groups: ['ops'],
    ...claims,
  });
}

const end = async (query: Record<string, string>, Cookie = '', to = queue) =>
  await get(`${SESSION}/callback?${new URLSearchParams(query)}`, Cookie === '' ? {} : { Cookie }, to);

const error = async (answer: Response) => {
  const { error: said } = (await answer.json()) as { error: Json };
  return [answer.status, said.code];
};

/** A browser that has logged in: its cookie. */
async function loggedIn(claims: JWTPayload = {}): Promise<string> {
  const login = await begin();
  confirms(login, claims);
  return cookieOf(await end({ code: 'c', state: login.asked.state ?? '' }, login.Cookie), '__Host-tocsin_key');
}

const who = async (Cookie: string, headers = {}, to = queue) =>
  await to.call('GET', HOST + SESSION, undefined, { Cookie, ...headers });

beforeAll(() => issuer.addKey('one'));
issuer.listenInEachTest();

describe('a browser without a proxy before the queue', () => {
  it('is led to the provider, with what only this browser and this server know', async () => {
    const { answer, url, asked } = await begin();
    expect(answer.status).toBe(302);
    expect(url.origin + url.pathname).toBe('https://id.example/realm/auth');
    expect(asked).toEqual({
      theme: 'dark',
      response_type: 'code',
      client_id: LOGIN.client_id,
      redirect_uri: `${HOST}${SESSION}/callback`,
      scope: 'openid profile email',
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
    expect(new Set([asked.state, asked.nonce, asked.code_challenge]).size).toBe(3);
    const rest = '; Max-Age=600; Path=/; HttpOnly; Secure; SameSite=Lax';
    expect(answer.headers.getSetCookie()).toEqual([
      expect.stringMatching(new RegExp(`^__Host-tocsin_login=[^;]+${rest}$`)),
    ]);
    expect([answer.headers.get('Cache-Control'), answer.headers.get('Referrer-Policy')]).toEqual([
      'no-store',
      'no-referrer',
    ]);
  });

  it('comes back with a code, gets a session, and the page that it asked for', async () => {
    const login = await begin('?return_to=/ui/jobs%3Fq%3Dx');
    confirms(login);
    const answer = await end({ code: 'the code', state: login.asked.state ?? '' }, login.Cookie);
    expect([answer.status, answer.headers.get('Location')]).toEqual([302, `${HOST}/ui/jobs?q=x`]);
    const [over, session] = answer.headers.getSetCookie();
    expect(over).toBe('__Host-tocsin_login=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Lax');
    expect(session).toMatch(/^__Host-tocsin_key=[^;]+; Max-Age=28800; Path=\/; HttpOnly; Secure; SameSite=Strict$/);
    const { form, headers } = issuer.arrivals.find(({ path }) => path === '/realm/token') ?? {
      form: {} as Record<string, string>,
    };
    expect(form).toEqual({
      grant_type: 'authorization_code',
      code: 'the code',
      redirect_uri: login.asked.redirect_uri,
      code_verifier: expect.stringMatching(/^[\w-]{43}$/),
    });
    expect(unpaddedBase64UrlOf(await sha256Of(form.code_verifier ?? ''))).toBe(login.asked.code_challenge);
    expect(headers?.get('Authorization')).toBe(`Basic ${btoa('tocsin%20client:pass%3A%20word')}`);
    const { body } = await who(cookieOf(answer, '__Host-tocsin_key'));
    expect(body).toMatchObject({ name: 'o@acme.example', role: 'admin', via: 'login', subject: 'u-1' });
  });

  it('has the secret in the form where the provider wants it there, and asks for its scope of groups', async () => {
    const to = TestServer.with({ ...VARIABLES });
    issuer.document = {
      token_endpoint_auth_methods_supported: ['client_secret_post'],
      scopes_supported: ['openid', 'groups', 'email'],
    };
    const login = await begin('', to);
    expect(login.asked.scope).toBe('openid email groups');
    confirms(login);
    expect((await end({ code: 'c', state: login.asked.state ?? '' }, login.Cookie, to)).status).toBe(302);
    const { form, headers } = issuer.arrivals.find(({ path }) => path === '/realm/token') ?? {};
    expect(form).toMatchObject({ client_id: LOGIN.client_id, client_secret: 'pass: word' });
    expect(headers?.get('Authorization')).toBeNull();
  });

  it('is shown where it can log in when it has no key', async () => {
    const answer = await queue.call('GET', `${HOST}${SESSION}`);
    expect(answer).toMatchObject({ status: 401, body: { error: { details: { login: `${SESSION}/login` } } } });
    const { client_id: _, ...alone } = LOGIN;
    const proxied = TestServer.with({ ...VARIABLES, LOGIN: alone, LOGIN_SECRET: '' });
    expect((await proxied.call('GET', SESSION)).body.error?.details).toBeUndefined();
    for (const path of ['login', 'callback'])
      expect(await error(await get(`${SESSION}/${path}`, {}, proxied))).toEqual([404, 'not_found']);
  });

  it.each([
    'https://evil.example/ui',
    '//evil.example/ui',
    '/\\evil.example/ui',
    'javascript:alert(1)',
    '/',
    '/uix',
    '/ui/../ojs/v1/admin/session',
    '/ui/%2e%2e/ojs/v1/jobs',
    'http://queue.example/ui',
    'https://queue.example@evil.example/ui',
    `/ui/${'x'.repeat(1_000)}`,
    'https://',
  ])('is led back to no other page: %s', async (to) => {
    const answer = await get(`${SESSION}/login?return_to=${encodeURIComponent(to)}`);
    expect(await error(answer)).toEqual([400, 'invalid_request']);
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  it('logs in below the path at which the queue is mounted', async () => {
    const served = createApp();
    const bindings = { ...env, ...VARIABLES };
    const app = mountable(async (request, given) => await served.fetch(request, given));
    const { Hono } = await import('hono');
    const mounted = new Hono().route('/tocsin', app);
    const ask = async (path: string, headers = {}) =>
      await mounted.request(`${HOST}/tocsin${path}`, { headers }, bindings);
    const first = await ask(`${SESSION}/login?return_to=/tocsin/ui/jobs`);
    const asked = Object.fromEntries(new URL(first.headers.get('Location') ?? '').searchParams);
    expect(asked.redirect_uri).toBe(`${HOST}/tocsin${SESSION}/callback`);
    confirms({ asked });
    const Cookie = cookieOf(first, '__Host-tocsin_login.tocsin');
    const back = await ask(`${SESSION}/callback?code=c&state=${asked.state}`, { Cookie });
    expect([back.status, back.headers.get('Location')]).toEqual([302, `${HOST}/tocsin/ui/jobs`]);
    const session = cookieOf(back, '__Host-tocsin_key.tocsin');
    expect((await ask(SESSION, { Cookie: session })).status).toBe(200);
    expect((await ask(`${SESSION}/login?return_to=/ui`)).status).toBe(400);
  });
});

describe('the end of a login', () => {
  it('is refused if another browser began it, if it was forged, repeated or is too late, as a failed login', async () => {
    clock.set(T0);
    const [mine, other] = [await begin(), await begin()];
    const [code, state] = ['c', mine.asked.state ?? ''];
    const counted = vi.spyOn(attempts, 'begin').mockImplementation(() => () => undefined);
    const own = VARIABLES.TOKEN_SECRET;
    const forged = await signToken(
      { secrets: [own] },
      'tocsin:login',
      { state, nonce: 'n', verifier: 'v', to: `${HOST}/ui` },
      { end: T0 + MINUTE, jti: 'j' },
    );
    const refused: [string, Record<string, string>, string][] = [
      ['no cookie, as after the attacker sends a link', { code, state }, ''],
      ['the cookie of another login', { code, state }, other.Cookie],
      ['another state', { code, state: other.asked.state ?? '' }, mine.Cookie],
      ['no state', { code }, mine.Cookie],
      ['a cookie signed by a backend that signs tokens', { code, state }, `__Host-tocsin_login=${forged}`],
      ['the session of another in the place of the cookie', { code, state }, mine.Cookie.replace(/\.[^.]*$/, '.AAAA')],
      ['a name that a sibling domain can set', { code, state }, mine.Cookie.replace('__Host-', '')],
    ];
    for (const [why, query, Cookie] of refused) {
      confirms(mine);
      counted.mockClear();
      const answer = await end(query, Cookie);
      expect([why, ...(await error(answer)), counted.mock.calls.length]).toEqual([why, 401, 'unauthorized', 1]);
      expect([why, cookieOf(answer, '__Host-tocsin_key')]).toEqual([why, '']);
      expect(cookieOf(answer, '__Host-tocsin_login')).toBe('__Host-tocsin_login=');
    }
    expect(issuer.asked('/realm/token')).toBe(0);
    clock.advance(10 * MINUTE);
    expect(await error(await end({ code, state }, mine.Cookie))).toEqual([401, 'unauthorized']);
    expect(issuer.asked('/realm/token')).toBe(0);
  });

  it('is refused if the provider does not confirm it', async () => {
    const login = await begin();
    const finish = async () => await error(await end({ code: 'c', state: login.asked.state ?? '' }, login.Cookie));
    const counted = vi.spyOn(attempts, 'begin').mockImplementation(() => () => undefined);
    const now = Math.floor(Date.now() / 1_000);
    // The ID token of another login is that of somebody else: its nonce is not ours.
    const wrong: JWTPayload[] = [
      { nonce: 'of another login' },
      { nonce: undefined },
      { aud: 'jobs' },
      { aud: ['tocsin client', 'other'], azp: 'other' },
      { iss: 'https://evil.example' },
      { exp: now - 90 },
      { sub: '' },
    ];
    for (const claims of wrong) {
      confirms(login, claims);
      expect([claims, ...(await finish())]).toEqual([claims, 401, 'unauthorized']);
    }
    // Such as a code that was used, or a verifier that does not fit the challenge.
    issuer.answer = () => 400;
    expect(await finish()).toEqual([401, 'unauthorized']);
    expect(counted).toHaveBeenCalledTimes(wrong.length + 1);
    issuer.answer = () => 502;
    expect(await finish()).toEqual([503, 'unavailable']);
    issuer.down = true;
    expect(await finish()).toEqual([503, 'unavailable']);
    expect(counted).toHaveBeenCalledTimes(wrong.length + 1);
    issuer.down = false;
    confirms(login, { groups: ['sales'] });
    expect(await finish()).toEqual([403, 'no_role']);
    confirms(login);
    expect((await end({ code: 'c', state: login.asked.state ?? '' }, login.Cookie)).status).toBe(302);
  });

  it('says what the provider refused', async () => {
    const { asked, Cookie } = await begin();
    const answer = await end({ error: 'access_denied', state: asked.state ?? '' }, Cookie);
    expect(await answer.text()).toContain('access_denied');
    expect([answer.status, issuer.asked('/realm/token')]).toEqual([401, 0]);
  });

  it('is 503 where the provider is not there, or has no safe address', async () => {
    issuer.down = true;
    const first = TestServer.with({ ...VARIABLES });
    expect(await error(await get(`${SESSION}/login`, {}, first))).toEqual([503, 'unavailable']);
    issuer.down = false;
    for (const address of [undefined, 'http://id.example/auth', 'javascript:alert(1)']) {
      issuer.document = { authorization_endpoint: address };
      const to = TestServer.with({ ...VARIABLES });
      expect(await error(await get(`${SESSION}/login`, {}, to))).toEqual([503, 'unavailable']);
    }
  });
});

describe('a session', () => {
  it('lasts eight hours, and as long as LOGIN and its secrets say so', async () => {
    clock.set(T0);
    const Cookie = await loggedIn();
    expect((await who(Cookie)).status).toBe(200);
    const status = async (change: Json) => (await who(Cookie, {}, TestServer.with({ ...VARIABLES, ...change }))).status;
    const rotated = { TOKEN_SECRET: `${'n'.repeat(32)} ${VARIABLES.TOKEN_SECRET}` };
    expect(await status(rotated)).toBe(200);
    expect(await status({ TOKEN_SECRET: 'n'.repeat(32) })).toBe(401);
    expect(await status({ LOGIN_SECRET: 'another' })).toBe(401);
    expect(await status({ LOGIN: '', LOGIN_SECRET: '' })).toBe(401);
    expect(await status({ LOGIN: { ...LOGIN, issuer: 'https://id.example/other' } })).toBe(401);
    expect(await status({ LOGIN: { ...LOGIN, roles: { claim: 'groups', admin: ['others'] } } })).toBe(403);
    clock.advance(8 * HOUR);
    const counted = vi.spyOn(attempts, 'begin');
    const late = await who(Cookie);
    expect(late).toMatchObject({ status: 401, body: { error: { details: { login: `${SESSION}/login` } } } });
    expect(counted).not.toHaveBeenCalled();
  });

  it('is a cookie only: no Bearer, no key, no token, and only the queue can sign one', async () => {
    const Cookie = await loggedIn();
    const jwt = Cookie.replace('__Host-tocsin_key=', '');
    const counted = vi.spyOn(attempts, 'begin').mockImplementation(() => () => undefined);
    expect((await queue.call('GET', SESSION, undefined, { Authorization: `Bearer ${jwt}` })).status).toBe(401);
    expect((await queue.call('POST', SESSION, { key: jwt })).status).toBe(401);
    const person = { subject: 'u-1', name: 'x', values: ['ops'] };
    const claims = { iss: issuer.url, person };
    const issue = { end: Date.now() + HOUR, jti: 'j' };
    // A backend that signs tokens has this secret.
    const bySecret = await signToken({ secrets: [VARIABLES.TOKEN_SECRET] }, 'tocsin:session', claims, issue);
    const login = (await begin()).Cookie.replace('__Host-tocsin_login=', '');
    counted.mockClear();
    for (const forged of [bySecret, login, jwt.replace(/\.[^.]*$/, '.AAAA'), `${jwt}x`]) {
      expect((await who(`__Host-tocsin_key=${forged}`)).status).toBe(401);
    }
    expect(counted).toHaveBeenCalledTimes(4);
    expect((await who(Cookie)).status).toBe(200);
  });

  it('is used by pages of this server alone, sees its bounds, and ends with a logout', async () => {
    const name = freshName();
    const ids = [await server.enqueue(`a-${name}`), await server.enqueue(`z-${name}`)];
    const Cookie = await loggedIn({ groups: ['team-a'] });
    expect((await who(Cookie)).body).toMatchObject({ role: 'viewer', bounds: { queues: ['a-*'] } });
    const read = async (id: unknown, headers = {}) =>
      (await queue.call('GET', `${HOST}${V1}/jobs/${id}`, undefined, { Cookie, ...headers })).status;
    expect([await read(ids[0]), await read(ids[1])]).toEqual([200, 404]);
    expect(await read(ids[0], { Origin: 'https://evil.example' })).toBe(401);
    const admin = await loggedIn();
    const pause = async (headers: Record<string, string>) =>
      (await queue.call('POST', `${HOST}${V1}/admin/queues/a-${name}/pause`, undefined, { Cookie: admin, ...headers }))
        .status;
    expect([await pause({}), await pause({ Origin: 'https://evil.example' }), await pause({ Origin: HOST })]).toEqual([
      401, 401, 200,
    ]);
    const out = await queue.call('DELETE', HOST + SESSION, undefined, { Cookie, Origin: HOST });
    expect(out.headers.getSetCookie()).toEqual([
      '__Host-tocsin_key=; Max-Age=0; Path=/; HttpOnly; Secure; SameSite=Strict',
    ]);
  });
});
