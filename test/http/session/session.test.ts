/** Roles, and the login of a browser. */
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import { ROLES, SCOPES } from '../../../src/access/access';
import type { Env } from '../../../src/config';
import { createApp } from '../../../src/http/app';
import { server, TestServer, V1 } from '../../support/server';

const SESSION = `${V1}/admin/session`;
const OWN = { Origin: 'http://localhost' };
const FOREIGN = { Origin: 'https://evil.example' };

const guarded = TestServer.with({
  API_KEYS: JSON.stringify([
    { key: 'v', role: 'viewer', name: 'Vera' },
    { key: 'o', role: 'operator' },
    { key: 'a', role: 'admin' },
    { key: 'all' },
    { key: 'mixed', role: 'viewer', scopes: ['data:reveal'] },
    { key: 'scraper', scopes: ['metrics:read'] },
    { key: 'ümläut;key=1' },
  ]),
});

const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

describe('a role', () => {
  it('is a named set of scopes', async () => {
    const of = async (key: string) => await guarded.ok(200, 'GET', SESSION, undefined, bearer(key));
    expect(await of('v')).toEqual({
      authenticated: true,
      open: false,
      name: 'Vera',
      role: 'viewer',
      scopes: ['data:read', 'admin:read', 'metrics:read'],
      via: 'key',
      redacts: false,
    });
    expect(await of('o')).toMatchObject({ name: null, role: 'operator' });
    expect(((await of('o')).scopes as string[]).sort()).toEqual([...ROLES.operator].sort());
    expect(await of('a')).toMatchObject({ role: 'admin', scopes: SCOPES });
    expect(await of('all')).toMatchObject({ role: 'admin', scopes: SCOPES });
    expect(await of('mixed')).toMatchObject({ role: 'custom', scopes: [...ROLES.viewer, 'data:reveal'] });
    expect(await of('scraper')).toMatchObject({ role: 'custom', scopes: ['metrics:read'] });
  });

  it('says what its keys may do', async () => {
    const status = async (key: string, method: string, path: string, body?: unknown) =>
      (await guarded.call(method, V1 + path, body, bearer(key))).status;
    expect(await status('v', 'GET', '/admin/jobs')).toBe(200);
    expect(await status('v', 'POST', '/queues/x/pause')).toBe(403);
    expect(await status('v', 'POST', '/admin/queues/x/pause')).toBe(403);
    await server.enqueue('x');
    expect(await status('o', 'POST', '/admin/queues/x/pause')).toBe(200);
    expect(await status('o', 'POST', '/queues/x/purge')).toBe(403);
    expect(await status('a', 'POST', '/queues/x/purge', { confirm: true, states: ['completed'] })).toBe(200);
    expect(await status('scraper', 'GET', '/queues')).toBe(403);
  });

  it.each([
    [[{ key: 'k', role: 'boss' }]],
    [[{ key: 'k', role: 'toString' }]],
    [[{ key: 'k', role: 1 }]],
    [[{ key: 'k', scopes: ['data:reed'] }]],
  ])('that is none is a mistake of the deployment: %j', async (keys) => {
    const answer = await TestServer.with({ API_KEYS: JSON.stringify(keys) }).call('GET', `${V1}/queues`);
    expect(answer).toMatchObject({ status: 500, body: { error: { details: { variable: 'API_KEYS' } } } });
  });
});

describe('a browser', () => {
  it('logs in with a key, is known by its cookie, and logs out', async () => {
    const login = await guarded.call('POST', SESSION, { key: 'v' }, OWN);
    expect(login).toMatchObject({ status: 200, body: { name: 'Vera', role: 'viewer' } });
    expect(login.headers.get('Set-Cookie')).toBe('tocsin_key=v; Path=/; HttpOnly; SameSite=Strict');
    expect(login.headers.get('Cache-Control')).toBe('no-store');
    const Cookie = (login.headers.get('Set-Cookie') ?? '').split(';')[0] as string;
    expect(await guarded.ok(200, 'GET', SESSION, undefined, { Cookie })).toEqual(login.body);
    const logout = await guarded.call('DELETE', SESSION, undefined, { Cookie, ...OWN });
    expect(logout.status).toBe(204);
    expect(logout.headers.get('Set-Cookie')).toBe('tocsin_key=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict');
    expect((await guarded.call('GET', SESSION)).status).toBe(401);
  });

  it('is given a cookie for HTTPS alone where it came by HTTPS, and any key survives it', async () => {
    const login = await guarded.call('POST', `https://queue.example${SESSION}`, { key: 'ümläut;key=1' });
    expect(login.headers.get('Set-Cookie')).toMatch(
      /^__Host-tocsin_key=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
    );
    const Cookie = (login.headers.get('Set-Cookie') ?? '').split(';')[0] as string;
    await guarded.ok(200, 'GET', `https://queue.example${SESSION}`, undefined, { Cookie });
    // On HTTPS no other name counts: a sibling domain may have set it.
    const planted = { Cookie: Cookie.replace('__Host-', '') };
    await guarded.ok(401, 'GET', `https://queue.example${SESSION}`, undefined, planted);
  });

  it('is refused with a wrong key, and gets an explanation without a key', async () => {
    const wrong = await guarded.call('POST', SESSION, { key: 'no' }, OWN);
    expect(wrong).toMatchObject({ status: 401, body: { error: { code: 'unauthorized' } } });
    expect(wrong.headers.get('Set-Cookie')).toBeNull();
    for (const body of [{}, { key: '' }, { key: 7 }, { key: 'x'.repeat(3_001) }]) {
      expect(await guarded.refusal('POST', SESSION, body)).toEqual({
        status: 400,
        code: 'invalid_request',
        field: 'key',
      });
    }
    expect((await guarded.call('GET', SESSION, undefined, { Cookie: 'tocsin_key=no' })).status).toBe(401);
  });

  it('cannot be logged in or out by a page of another origin', async () => {
    for (const [method, body] of [
      ['POST', { key: 'v' }],
      ['DELETE', undefined],
    ] as const) {
      const answer = await guarded.call(method, SESSION, body, FOREIGN);
      expect(answer).toMatchObject({ status: 403, body: { error: { details: { field: 'Origin' } } } });
      expect(answer.headers.get('Set-Cookie')).toBeNull();
    }
  });

  it('writes with its cookie only from a page of this server', async () => {
    await server.enqueue('x');
    const pause = async (headers: Record<string, string>) =>
      (await guarded.call('POST', `${V1}/admin/queues/x/pause`, undefined, { Cookie: 'tocsin_key=o', ...headers }))
        .status;
    expect(await pause(OWN)).toBe(200);
    expect(await pause({ 'Sec-Fetch-Site': 'same-origin' })).toBe(200);
    expect(await pause({})).toBe(401);
    expect(await pause(FOREIGN)).toBe(401);
    expect(await pause({ Origin: 'null' })).toBe(401);
    expect(await pause({ 'Sec-Fetch-Site': 'same-site' })).toBe(401);
    expect(await pause({ 'Sec-Fetch-Site': 'cross-site' })).toBe(401);
    // The key itself is no cookie: another page that has it may use it.
    expect(await pause({ ...FOREIGN, ...bearer('o') })).toBe(200);
  });
});

describe('where no key is asked for', () => {
  it('everybody may do everything and needs no cookie', async () => {
    const shown = { authenticated: true, open: true, name: null, role: 'admin', scopes: SCOPES, redacts: false };
    expect(await server.ok(200, 'GET', SESSION)).toEqual(shown);
    const login = await server.call('POST', SESSION, { key: 'anything' });
    expect(login.body).toEqual(shown);
    expect(login.headers.get('Set-Cookie')).toBeNull();
  });

  it('a closed deployment says so', async () => {
    const closed = TestServer.with({ ALLOW_LOCALHOST: 'false', API_KEYS: '' });
    for (const method of ['GET', 'POST']) {
      const body = method === 'POST' ? { key: 'k' } : undefined;
      expect((await closed.call(method, SESSION, body)).status).toBe(401);
    }
  });

  it('a request that did not come through the server before wrangler is not one of this machine', async () => {
    const guarded = TestServer.with({ ALLOW_LOCALHOST: 'true', LOCALHOST_SECRET: 'told at the start', API_KEYS: '' });
    const status = async (headers: Record<string, string>) =>
      (await guarded.call('GET', SESSION, undefined, headers)).status;
    const client = { 'CF-Connecting-IP': '127.0.0.1' };
    expect(await status(client)).toBe(401);
    expect(await status({ ...client, 'Tocsin-Localhost-Secret': 'a guess' })).toBe(401);
    expect(await status({ ...client, 'Tocsin-Localhost-Secret': 'told at the start' })).toBe(200);
    // Other Workers call over a binding.
    expect(await status({})).toBe(200);
  });

  it('a request with another Host than this machine is refused, whatever its URL was made of', async () => {
    const local = TestServer.with({ ALLOW_LOCALHOST: 'true', API_KEYS: '' });
    const status = async (host: string) => (await local.call('GET', SESSION, undefined, { Host: host })).status;
    for (const host of ['localhost', '127.0.0.1:8787', '[::1]:1']) expect(await status(host)).toBe(200);
    for (const host of ['evil.example', 'localhost.evil.example', 'localhost/x', 'evil@localhost', 'a, localhost'])
      expect(await status(host)).toBe(401);
  });

  it('code of the account is trusted whatever keys there are', async () => {
    const app = createApp({ trusted: true });
    const variables = { ...env, API_KEYS: 'k' } as unknown as Env;
    const trusted = new TestServer((request) => app.fetch(request, variables));
    expect(await trusted.ok(200, 'GET', SESSION)).toMatchObject({ open: true, role: 'admin' });
  });
});
