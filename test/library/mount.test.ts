import { env } from 'cloudflare:workers';
import { Hono } from 'hono';
import { describe, expect, it } from 'vitest';
import { createApp } from '../../src/http/app';
import { isOurs, mountable } from '../../src/library/mount';

const PAGE = { headers: { Accept: 'text/html,*/*;q=0.8' } };

describe('the dashboard in a Worker with pages of its own', () => {
  const served = createApp();
  const queue = mountable(async (request, bindings) => await served.fetch(request, bindings));
  const bindings = { ...env, API_KEYS: 'k' };

  it('is below the path at which the queue is mounted, and nowhere else', async () => {
    const app = new Hono().route('/tocsin', queue).get('*', (c) => c.text('mine'));
    const get = async (path: string, init?: RequestInit) => await app.request(path, init, bindings);
    expect(await (await get('/tocsin/ui/jobs')).text()).toContain('<base href="./">');
    for (const path of ['/tocsin', '/tocsin/']) {
      const led = await get(path, PAGE);
      expect([led.status, led.headers.get('Location')]).toEqual([302, '/tocsin/ui']);
      expect(await (await get(path)).text()).toBe('mine');
    }
    expect(await (await get('/ui', PAGE)).text()).toBe('mine');
    const manifest = (await (await get('/tocsin/ojs/manifest', { headers: { Authorization: 'Bearer k' } })).json()) as {
      endpoints: Record<string, string>;
    };
    expect(manifest.endpoints.base_url).toBe('http://localhost/tocsin/ojs/v1');
  });

  it('leaves the root and /ui to the app that mounts the queue at its root', async () => {
    const app = new Hono().route('/', queue).get('*', (c) => c.text('mine'));
    for (const path of ['/', '/ui']) expect(await (await app.request(path, PAGE, bindings)).text()).toBe('mine');
    expect(await (await app.request('/ojs/ui', PAGE, bindings)).text()).toContain('<base href="ui/">');
  });

  it('is at /ojs/ui where only the paths below /ojs/ go to the queue', () => {
    expect(['/ojs/ui', '/ojs/ui/jobs', '/ui', '/', '/ojsx'].map(isOurs)).toEqual([true, true, false, false, false]);
  });

  it('is found below a parameter, whatever the parameter is', async () => {
    const app = new Hono().route('/:tenant/:place', queue);
    for (const base of ['/a%20b/c', '/caf%C3%A9/%F0%9F%94%94', '/a%2Fb/%', '/x/y']) {
      const answer = await app.request(`${base}/ojs/v1/health`, undefined, bindings);
      expect([base, answer.status]).toEqual([base, 200]);
      const led = await app.request(base, PAGE, bindings);
      expect(led.headers.get('Location')).toBe(`${base}/ui`);
    }
  });

  it('has a login of its own, beside those of other queues and of the app', async () => {
    const app = new Hono().route('/a', queue).route('/:tenant/b', queue);
    const session = '/ojs/v1/admin/session';
    const logIn = async (origin: string, base: string) => {
      const init = { method: 'POST', body: '{"key":"k"}', headers: { 'Content-Type': 'application/json' } };
      const answer = await app.request(`${origin}${base}${session}`, init, bindings);
      return answer.headers.getSetCookie();
    };
    expect(await logIn('http://localhost', '/a')).toEqual(['tocsin_key.a=k; Path=/a/; HttpOnly; SameSite=Strict']);
    const rest = '; Path=/; HttpOnly; Secure; SameSite=Strict';
    expect(await logIn('https://app.example', '/a')).toEqual([`__Host-tocsin_key.a=k${rest}`]);
    expect(await logIn('https://app.example', '/x y/b')).toEqual([`__Host-tocsin_key.x%2520y%2Fb=k${rest}`]);
    const status = async (path: string, Cookie: string) =>
      (await app.request(`https://app.example${path}${session}`, { headers: { Cookie } }, bindings)).status;
    expect(await status('/a', 'access_token=mine; __Host-tocsin_key.a=k; tocsin_key=x')).toBe(200);
    for (const other of ['__Host-tocsin_key=k', '__Host-tocsin_key.c=k', 'tocsin_key.a=k', 'access_token=k'])
      expect([other, await status('/a', other)]).toEqual([other, 401]);
  });
});
