import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import worker from '../../examples/documents/src/index';
import { deliver, deliverOne } from '../handler/deliver';

type Page = Response | Error | 'never';

/** Stands in for the servers that are visited; answers what `pages` holds for an address, in turn. */
function serve(pages: Record<string, Page[]>): string[] {
  const visited: string[] = [];
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (input, init) => {
    const address = String(input);
    visited.push(address);
    const page = pages[address]?.shift() ?? new Response('no such page', { status: 404 });
    if (page instanceof Error) throw page;
    if (page !== 'never') return page;
    const signal = init?.signal;
    return await new Promise<Response>((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason));
    });
  });
  return visited;
}

const check = (markdown: string, more: object = {}) => ({
  type: 'link.check',
  args: [
    { path: 'a.md', markdown, files: { 'a.md': [] }, origins: { 'http://p.example': 'http://127.0.0.1:1' }, ...more },
  ],
});

describe('the example handler Worker', () => {
  beforeEach(() => {
    // The Worker logs each failure it is made to have here.
    for (const method of ['log', 'info', 'error'] as const)
      vi.spyOn(console, method).mockImplementation(() => undefined);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('announces its job types, with the policy of the one that has one', async () => {
    const response = await worker.fetch(new Request('http://handler/.well-known/tocsin'), {});
    expect(await response.json()).toMatchObject({
      payload: 'batch',
      types: [
        { type: 'document.render' },
        { type: 'document.digest' },
        {
          type: 'link.check',
          timeout_ms: 10_000,
          retry: { max_attempts: 5, initial_interval: '2s', max_interval: '1m' },
        },
      ],
    });
  });

  it('does the jobs of one call side by side', async () => {
    const args = [{ path: 'a.md', markdown: '# Hello\n\nIt works.' }];
    const [rendered, digested] = await deliver(
      worker,
      {},
      { type: 'document.render', args },
      { type: 'document.digest', args },
    );
    expect(rendered?.result).toMatchObject({ html: '<h1 id="hello">Hello</h1>\n<p>It works.</p>\n' });
    expect(digested?.result).toMatchObject({ words: 3, headings: 1 });
  });

  it('discards the digest of an empty document', async () => {
    const result = await deliverOne(worker, {}, { type: 'document.digest', args: [{ path: 'a.md', markdown: ' \n' }] });
    expect(result.error).toMatchObject({ code: 'DISCARD', message: expect.stringContaining('a.md is empty') });
  });

  it.each([
    ['document.render', []],
    ['document.digest', ['# Hello']],
    ['document.render', [{ path: '', markdown: '' }]],
    ['document.digest', [{ path: 'a.md' }]],
    ['link.check', [{ path: 'a.md', markdown: '' }]],
    ['link.check', [{ path: 'a.md', markdown: '', files: { 'a.md': 'x' } }]],
    ['link.check', [{ path: 'a.md', markdown: '', files: {}, origins: { 'http://p.example': 'there' } }]],
  ])('calls wrong arguments of %s unrecoverable: %j', async (type, args) => {
    const { error } = await deliverOne(worker, {}, { type, args });
    expect(error?.classes?.slice(0, 2)).toEqual(['InvalidArguments', 'UnrecoverableError']);
    expect(error?.message).toMatch(/^args\[0\]/);
  });

  it('counts links by what was done about them', async () => {
    const visited = serve({ 'http://127.0.0.1:1/x?y=1': [new Response('ok')] });
    const markdown = '# Top\n[a](#top) [b](http://p.example/x?y=1#z) [c](https://elsewhere.example/) [d](mailto:d@e.f)';
    const { result } = await deliverOne(worker, {}, check(markdown));
    expect(result).toEqual({ links: 4, local: 1, visited: 1, skipped: 2 });
    expect(visited).toEqual(['http://127.0.0.1:1/x?y=1']);
  });

  it('visits only the hosts that the job names', async () => {
    const visited = serve({});
    const { status } = await deliverOne(worker, {}, check('[a](http://127.0.0.1:1/secret) [b](http://p.example:81/)'));
    expect(status).toBe('completed');
    expect(visited).toEqual([]);
  });

  it('makes broken links unrecoverable, all in one message, and visits no host then', async () => {
    const visited = serve({});
    const { error } = await deliverOne(worker, {}, check('[a](x.md) [b](#y) [c](http://p.example/)'));
    expect(error).toMatchObject({
      type: 'BrokenLink',
      classes: ['BrokenLink', 'UnrecoverableError', 'Error'],
      message: 'a.md: x.md (there is no file x.md), #y (a.md has no heading #y)',
      details: { broken: [{ href: 'x.md' }, { href: '#y' }] },
    });
    expect(visited).toEqual([]);
  });

  it.each([404, 410])('makes a page that answers %i unrecoverable', async (status) => {
    serve({ 'http://127.0.0.1:1/': [new Response('', { status })] });
    const { error } = await deliverOne(worker, {}, check('[a](http://p.example/)'));
    expect(error?.classes).toContain('UnrecoverableError');
  });

  it.each([301, 401, 403, 405])('takes a page that answers %i to be there', async (status) => {
    serve({ 'http://127.0.0.1:1/': [new Response(null, { status })] });
    expect((await deliverOne(worker, {}, check('[a](http://p.example/)'))).status).toBe('completed');
  });

  it.each([408, 429, 500, 503])('fails with a plain error while a page answers %i, then completes', async (status) => {
    serve({ 'http://127.0.0.1:1/': [new Response('', { status }), new Response('')] });
    const first = await deliverOne(worker, {}, check('[a](http://p.example/)'));
    expect(first.error).toMatchObject({
      code: 'handler_error',
      classes: ['PageUnavailable', 'Error'],
      details: { url: 'http://p.example/', status },
    });
    expect((await deliverOne(worker, {}, check('[a](http://p.example/)'))).status).toBe('completed');
  });

  it('comes back when the server says so', async () => {
    serve({ 'http://127.0.0.1:1/': [new Response('', { status: 503, headers: { 'Retry-After': '7' } })] });
    const { error } = await deliverOne(worker, {}, check('[a](http://p.example/)'));
    expect(error).toMatchObject({ code: 'RETRY', type: 'PageUnavailable', retry_in: 7_000 });
  });

  it('fails with a plain error when a server cannot be reached', async () => {
    serve({ 'http://127.0.0.1:1/': [new TypeError('connection refused')] });
    const { error } = await deliverOne(worker, {}, check('[a](http://p.example/)'));
    expect(error).toMatchObject({ type: 'PageUnavailable', message: 'p.example cannot be reached' });
  });

  it('times out on a page that never answers, and aborts the request', async () => {
    serve({ 'http://127.0.0.1:1/': ['never'] });
    const { error } = await deliverOne(worker, {}, { ...check('[a](http://p.example/)'), timeout_ms: 20 });
    expect(error).toMatchObject({ code: 'timeout', type: 'timeout' });
    expect(vi.mocked(fetch).mock.calls[0]?.[1]?.signal?.aborted).toBe(true);
  });
});
