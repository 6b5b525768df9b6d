/** URLs that send one signal, opened by a person in a browser. */
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type Audience, signToken } from '../../../src/access/token';
import { Attempts, attempts } from '../../../src/http/session/attempts';
import { HOUR } from '../../support/clock';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../support/server';

const SECRET = 's'.repeat(32);
const PUBLIC_URL = 'https://jobs.example/queue/';
const KEYS = [
  { key: 'worker', scopes: ['data:write'] },
  { key: 'reader', role: 'viewer' },
];
const withKeys = (keys: object[], variables: Json = {}) =>
  TestServer.with({ API_KEYS: JSON.stringify(keys), TOKEN_SECRET: SECRET, PUBLIC_URL, ...variables });
const guarded = withKeys(KEYS);
const as = (key: string) => ({ Authorization: `Bearer ${key}` });
const HTML = { Accept: 'text/html,*/*' };

let queue: string;
let id: string;
beforeEach(async () => {
  queue = freshName('signal');
  id = await server.enqueue(queue);
});

/** The path of a new URL. */
async function make(asked: Json = {}, from = guarded): Promise<string> {
  const body = { signal: 'approved', expires_in: '7d', ...asked };
  const { url } = await from.ok(201, 'POST', `${V1}/jobs/${id}/tokens`, body, as('worker'));
  expect(url).toMatch(/^https:\/\/jobs\.example\/queue\/ojs\/v1\/signal\/[\w.-]+$/);
  return (url as string).slice('https://jobs.example/queue'.length);
}

const forged = async (rights: Json, end = Date.now() + HOUR, audience: Audience = 'tocsin:signal', secret = SECRET) =>
  `${V1}/signal/${await signToken({ secrets: [secret] }, audience, { job: id, signal: 'approved', ...rights } as never, { end, jti: 'one' })}`;

async function page(method: string, path: string, body?: string, from = guarded, headers = {}) {
  const type = body === undefined ? {} : { 'Content-Type': 'application/x-www-form-urlencoded' };
  const request = new Request(`http://localhost${path}`, {
    method,
    headers: { ...HTML, ...type, ...headers },
    ...(body !== undefined && { body }),
  });
  const response = await from.send(request);
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const steps = async () => (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps as Json;
const post = (path: string, body?: unknown, from = guarded) => from.call('POST', path, body);

describe('the page of a signal URL', () => {
  it('asks with a button for each choice, and sends nothing', async () => {
    const path = await make({ choices: ['approve', 'reject <b>'], title: 'Refund "17 €" <script>alert(1)</script>?' });
    const { status, headers, text } = await page('GET', path);
    expect(status).toBe(200);
    expect(text).toContain('<h1>Refund &#34;17 €&#34; &#60;script&#62;alert(1)&#60;/script&#62;?</h1>');
    expect(text).toContain('<button name="choice" value="approve">approve</button>');
    expect(text).toContain('value="reject &#60;b&#62;"');
    expect(text).not.toContain('<script');
    expect(headers.get('Content-Type')).toBe('text/html; charset=utf-8');
    const policy = headers.get('Content-Security-Policy') ?? '';
    expect(policy).toMatch(
      /^default-src 'none'; style-src 'nonce-[\w-]+'; form-action 'self'; base-uri 'none'; frame-/,
    );
    expect(headers.get('Cache-Control')).toBe('no-store');
    expect(headers.get('Referrer-Policy')).toBe('no-referrer');
    const head = await page('HEAD', path);
    expect([head.status, head.text]).toEqual([200, '']);
    expect(await steps()).toEqual({});
  });

  it('shows long titles and names of three bytes each, and the name where there is no title', async () => {
    const [title, choice, signal] = ['承'.repeat(200), '認'.repeat(64), '可'.repeat(124)];
    const path = await make({ title, signal, choices: Array.from({ length: 10 }, (_, n) => `${n}${choice.slice(1)}`) });
    expect((await page('GET', path)).text).toContain(`<h1>${title}</h1>`);
    expect((await post(path, { choice: `9${choice.slice(1)}` })).body.signal).toMatchObject({ name: signal });
    const plain = (await page('GET', await make())).text;
    expect(plain).toContain('<h1>approved</h1>');
    expect(plain).toContain('<button>Confirm</button>');
  });

  it('says what became of the answer', async () => {
    const path = await make({ choices: ['yes', 'no'], title: 'Well?' });
    // A page without referrer names no origin.
    const first = await page('POST', path, 'choice=yes', guarded, { Origin: 'null' });
    expect([first.status, first.text]).toEqual([200, expect.stringContaining('Your answer was sent.')]);
    const second = await page('POST', path, 'choice=no');
    expect([second.status, second.text]).toEqual([200, expect.stringContaining('answered before')]);
    expect(await steps()).toMatchObject({ approved: { signal: { payload: { choice: 'yes' } } } });
    const wrong = await page('POST', path, 'choice=maybe');
    expect([wrong.status, wrong.text]).toEqual([422, expect.stringContaining('choice must be one of')]);
  });

  it('works where there is no key, from any origin', async () => {
    const open = TestServer.with({ TOKEN_SECRET: SECRET, PUBLIC_URL, ALLOW_LOCALHOST: '' });
    const path = await make();
    const { status } = await page('POST', path, '', TestServer.with({ TOKEN_SECRET: SECRET }), { Origin: 'null' });
    expect(status).toBe(404);
    const own = await forged({});
    const ask = { Origin: 'https://shop.example', 'Access-Control-Request-Headers': 'content-type' };
    const preflight = await open.call('OPTIONS', own, undefined, ask);
    expect([preflight.status, preflight.headers.get('Access-Control-Allow-Origin')]).toEqual([204, '*']);
    const answer = await page('POST', own, '', open, { Origin: 'null' });
    expect([answer.status, answer.headers.get('Access-Control-Allow-Origin')]).toEqual([200, '*']);
    expect(await steps()).toMatchObject({ approved: { signal: { payload: null } } });
  });
});

describe('a POST to a signal URL', () => {
  it('sends the JSON body, and the first one wins', async () => {
    const path = await make();
    const first = await post(path, { by: 'ada', note: ['x'] });
    expect(first).toMatchObject({ status: 200, body: { job_id: id, signal: { name: 'approved' }, first: true } });
    expect(first.headers.get('Access-Control-Allow-Origin')).toBe('*');
    expect(await post(path, { by: 'bob' })).toMatchObject({ status: 200, body: { first: false } });
    expect(await steps()).toMatchObject({ approved: { signal: { payload: { by: 'ada', note: ['x'] } } } });
  });

  it('sends one of the choices, and nothing else', async () => {
    const path = await make({ choices: ['yes', 'no'] });
    for (const body of [{}, { choice: 'maybe' }, { choice: ['yes'] }, undefined, '["yes"]']) {
      expect(await post(path, body)).toMatchObject({ status: 422, body: { error: { details: { field: 'choice' } } } });
    }
    expect(await post(path, { choice: 'yes', comment: 'x' })).toMatchObject({ status: 400 });
    expect(await post(path, 'x'.repeat(70_000))).toMatchObject({ status: 413 });
    expect(await post(path, '{')).toMatchObject({ status: 400 });
    expect(await steps()).toEqual({});
    expect(await post(path, { choice: 'no' })).toMatchObject({ status: 200 });
    expect(await steps()).toMatchObject({ approved: { signal: { payload: { choice: 'no' } } } });
  });

  it('wakes the job that waits for it', async () => {
    await server.takeOne(queue);
    await server.nack(id, { requeue: true, attempt_used: false, snooze: { in: '1h', signal: 'approved' } });
    expect(await server.state(id)).toBe('scheduled');
    await post(await make(), null);
    expect(await server.state(id)).toBe('available');
  });

  it('comes too late when the job has ended, or waits no longer', async () => {
    const path = await make();
    const { attempt } = await server.takeOne(queue);
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/late`, { attempt, timed_out: true });
    expect(await post(await make({ signal: 'late' }))).toMatchObject({ status: 409 });
    await server.ack(id);
    expect(await post(path)).toMatchObject({ status: 409, body: { error: { code: 'conflict' } } });
    const shown = await page('POST', path, '');
    expect([shown.status, shown.text]).toEqual([409, expect.stringContaining('too late')]);
    id = UNKNOWN_ID;
    expect(await post(await forged({}))).toMatchObject({ status: 404 });
  });

  it('is 410 when the URL has expired', async () => {
    const path = await forged({}, Date.now() - 1000);
    expect(await post(path, {})).toMatchObject({ status: 410, body: { error: { code: 'token_expired' } } });
    expect(await page('GET', path)).toMatchObject({ status: 410, text: expect.stringContaining('has expired') });
    expect(await steps()).toEqual({});
  });

  it('is 404 for what is not a signal URL, and counts as a failed login', async () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    const limited = new Attempts();
    const begin = vi.spyOn(attempts, 'begin').mockImplementation((_, now) => limited.begin('192.0.2.9', now));
    const good = await make();
    const [head = '', body = '', signature = ''] = good.slice(`${V1}/signal/`.length).split('.');
    const none = btoa('{"alg":"none"}').replaceAll('=', '');
    const paths = [
      await forged({}, Date.now() + HOUR, 'tocsin'),
      await forged({}, Date.now() + HOUR, 'tocsin:signal', 'x'.repeat(32)),
      await forged({}, Date.now() + 91 * 24 * HOUR),
      ...[
        `${none}.${body}.`,
        `${none}.${body}.${signature}`,
        `${head}.${body}`,
        `${head}.${body}.${signature}.x`,
        'x',
      ].map((token) => `${V1}/signal/${token}`),
    ];
    for (const path of paths) {
      expect([path, (await post(path, {})).status]).toEqual([path, 404]);
      expect([path, warn.mock.calls.length]).toEqual([path, paths.indexOf(path) + 1]);
    }
    await page('GET', `${V1}/signal/${'y'.repeat(20_000)}`);
    await post(`${V1}/signal/%3Cscript%3E`, {});
    const over = await page('GET', `${V1}/signal/z`);
    expect([over.status, over.headers.get('Retry-After')]).toEqual([429, expect.any(String)]);
    expect(await post(good)).toMatchObject({ status: 200 });
    begin.mockRestore();
    warn.mockRestore();
  });
});

describe('making a signal URL', () => {
  it('needs a key that may signal, and the URL goes with that key', async () => {
    const asked = { signal: 'approved', expires_in: '1h' };
    const { status } = await guarded.call('POST', `${V1}/jobs/${id}/tokens`, asked, as('reader'));
    expect(status).toBe(403);
    const path = await make();
    for (const keys of [KEYS.slice(1), [{ key: 'worker', scopes: ['data:read'] }]]) {
      expect((await post(path, {}, withKeys(keys))).status).toBe(404);
    }
    expect((await post(path, {})).status).toBe(200);
  });

  it.each(['TOKEN_SECRET', 'PUBLIC_URL'])('needs %s', async (variable) => {
    const from = withKeys(KEYS, { [variable]: '' });
    const body = { signal: 'approved', expires_in: '1h' };
    const answer = await from.call('POST', `${V1}/jobs/${id}/tokens`, body, as('worker'));
    expect(answer).toMatchObject({
      status: 500,
      body: { error: { code: 'invalid_configuration', details: { variable } } },
    });
  });

  it.each<[string, Json]>([
    ['signal', { signal: undefined }],
    ['signal', { signal: 'x'.repeat(125) }],
    ['signal', { signal: '..' }],
    ['choices', { choices: [] }],
    ['choices', { choices: Array(11).fill('x') }],
    ['choices[0]', { choices: [' '] }],
    ['choices[0]', { choices: ['x'.repeat(65)] }],
    ['choices[1]', { choices: ['x', 'a\nb'] }],
    ['title', { title: 'x'.repeat(201) }],
    ['title', { title: 'a\u0000b' }],
    ['expires_in', { expires_in: '91d' }],
    ['expires_in', { expires_in: -1 }],
    ['job', { job: 'x' }],
  ])('is refused with a wrong %s: %j', async (field, change) => {
    const body = { signal: 'approved', expires_in: '1h', ...change };
    const answer = await guarded.call('POST', `${V1}/jobs/${id}/tokens`, body, as('worker'));
    expect(answer).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  });

  it('is shown on record only to those who may signal, and not copied into a fork', async () => {
    const { attempt } = await server.takeOne(queue);
    const url = `https://jobs.example/queue${await make()}`;
    const record = (name: string, result: unknown) =>
      server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/${name}`, { attempt, result });
    await record('charge', 1);
    await record('url:approved', url);
    await record('url:mine', 'https://other.example');
    await record('last', 2);
    const seenBy = async (key: string) =>
      (await guarded.ok(200, 'GET', `${V1}/jobs/${id}/steps`, undefined, as(key))).steps as Record<string, Json>;
    const reader = await seenBy('reader');
    expect([reader.charge?.result, reader['url:approved']?.result]).toEqual([1, '[redacted]']);
    expect(reader['url:mine']?.result).toBe('https://other.example');
    const story = await guarded.ok(200, 'GET', `${V1}/admin/jobs/${id}?timeline=true`, undefined, as('reader'));
    expect(JSON.stringify(story)).not.toContain(url);
    expect((await steps())['url:approved']).toMatchObject({ result: url });
    const fork = (await server.ok(201, 'POST', `${V1}/admin/jobs/${id}/clone`, { from: 'last' })).job as Json;
    const copied = (await server.ok(200, 'GET', `${V1}/jobs/${fork.id}/steps`)).steps as Json;
    expect(Object.keys(copied).sort()).toEqual(['charge', 'url:mine']);
  });
});
