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
  });

  it('leaves the root and /ui to the app that mounts the queue at its root', async () => {
    const app = new Hono().route('/', queue).get('*', (c) => c.text('mine'));
    for (const path of ['/', '/ui']) expect(await (await app.request(path, PAGE, bindings)).text()).toBe('mine');
    expect(await (await app.request('/ojs/ui', PAGE, bindings)).text()).toContain('<base href="ui/">');
  });

  it('is at /ojs/ui where only the paths below /ojs/ go to the queue', () => {
    expect(['/ojs/ui', '/ojs/ui/jobs', '/ui', '/', '/ojsx'].map(isOurs)).toEqual([true, true, false, false, false]);
  });
});
