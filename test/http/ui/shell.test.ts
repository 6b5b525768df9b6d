import { describe, expect, it } from 'vitest';
import { assets, first, shell } from '../../../src/http/ui/built';
import { TestServer } from '../../support/server';

const PAGE = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const guarded = TestServer.with({ API_KEYS: 'k' });

/** What the dashboard may weigh before it shows anything, in bytes. */
const MAX_SHELL = 25_000;

const send = async (method: string, path: string, headers: Record<string, string> = {}) =>
  await guarded.send(new Request(`http://localhost${path}`, { method, headers }));
const get = (path: string, headers?: Record<string, string>) => send('GET', path, headers);

async function gzippedSize(text: string): Promise<number> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'));
  return (await new Response(packed).arrayBuffer()).byteLength;
}

describe('the dashboard', () => {
  it.each([
    ['/ui', 'ui/', '../ojs/v1/'],
    ['/ui/', './', '../ojs/v1/'],
    ['/ui/queues', './', '../ojs/v1/'],
    ['/ui/queues/mail.send', '../', '../ojs/v1/'],
    ['/ui/a/b/c', '../../', '../ojs/v1/'],
    ['/ojs/ui', 'ui/', '../v1/'],
    ['/ojs/ui/jobs', './', '../v1/'],
  ])('is one page without data at %s, for everyone', async (path, base, api) => {
    const response = await get(path);
    expect([response.status, response.headers.get('Content-Type')]).toEqual([200, 'text/html; charset=utf-8']);
    const html = await response.text();
    expect(html).toContain(`<base href="${base}">`);
    expect(html).toContain(`data-api="${api}"`);
    expect(html).not.toMatch(/%[A-Z]+%/);
    const policy = response.headers.get('Content-Security-Policy') ?? '';
    expect(policy).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(policy).not.toContain('unsafe');
    expect(html).not.toMatch(/<script(?![^>]*src=)|<style| style=| on\w+=/);
    expect(response.headers.get('X-Content-Type-Options')).toBe('nosniff');
    expect(response.headers.get('Cache-Control')).toBe('no-cache');
    const again = await get(path, { 'If-None-Match': response.headers.get('ETag') ?? '' });
    expect([again.status, await again.text()]).toEqual([304, '']);
  });

  it('has files that browsers keep for good, and knows no others', async () => {
    for (const [name, { type, body }] of Object.entries(assets)) {
      const response = await get(`/ui/assets/${name}`);
      expect([name, response.status, response.headers.get('Content-Type')]).toEqual([name, 200, type]);
      expect(response.headers.get('Cache-Control')).toBe('public, max-age=31536000, immutable');
      expect(await response.text()).toBe(body);
    }
    const found = [...shell.matchAll(/(?:src|href)="assets\/([^"]+)"/g)].map(([, name]) => name);
    expect(found.length).toBeGreaterThan(3);
    expect(found.filter((name) => !assets[name as string])).toEqual([]);
    for (const name of ['app.js', 'constructor', '..%2F..%2Findex.html', first[0]?.replace('-', '-0') ?? '']) {
      expect([name, (await get(`/ui/assets/${name}`)).status]).toEqual([name, 404]);
    }
  });

  it('answers HEAD without a body, and 405 to what changes something', async () => {
    const head = await send('HEAD', '/ui/queues');
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await send('POST', '/ui/queues');
    expect([post.status, post.headers.get('Allow')]).toEqual([405, 'GET, HEAD']);
  });

  it('is where a browser at the root is led; others get what they always got', async () => {
    const led = await get('/', PAGE);
    expect([led.status, led.headers.get('Location')]).toEqual([302, '/ui']);
    expect((await get('/', { Accept: 'application/json' })).status).toBe(401);
    expect((await get('/', { Authorization: 'Bearer k' })).status).toBe(404);
    expect((await get('/nothing', PAGE)).status).toBe(401);
    expect((await get('/uix', PAGE)).status).toBe(401);
  });

  it('is small: all that is loaded before anything is shown', async () => {
    const sizes = await Promise.all([shell, ...first.map((name) => assets[name]?.body ?? '')].map(gzippedSize));
    const total = sizes.reduce((sum, size) => sum + size, 0);
    expect(total).toBeGreaterThan(5_000);
    expect(total).toBeLessThanOrEqual(MAX_SHELL);
    // The code of charts is not among it.
    const plot = Object.keys(assets).filter((name) => name.startsWith('plot-'));
    expect(plot).toHaveLength(1);
    expect(first).not.toContain(plot[0]);
  });
});
