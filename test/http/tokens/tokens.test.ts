/** Tokens for a browser: what they allow, and everything that they do not. */
import { describe, expect, it, vi } from 'vitest';
import { signToken } from '../../../src/access/token';
import { TocsinClient } from '../../../src/client';
import { Attempts, attempts } from '../../../src/http/session/attempts';
import { unpaddedBase64UrlOf } from '../../../src/job/bytes';
import { clock, HOUR } from '../../support/clock';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, TestServer, UNKNOWN_ID, V1 } from '../../support/server';
import { StreamReader } from '../../support/streams';

const [NEW, OLD] = ['n'.repeat(32), 'ö'.repeat(16)];
const KEYS = [
  { key: 'backend', name: 'Backend' },
  { key: 'reader', scopes: ['data:read'] },
  { key: 'writer', scopes: ['data:write'] },
  { key: 'looks.like.token' },
];
const withKeys = (keys: object[], variables: Json = {}) =>
  TestServer.with({ API_KEYS: JSON.stringify(keys), TOKEN_SECRET: NEW, ...variables });
const guarded = withKeys(KEYS);
const open = TestServer.with({ TOKEN_SECRET: NEW });

/** An answer to a token holds less than the contract says, so it is not compared with it. */
async function send(token: string, method: string, path: string, body?: unknown, to = guarded, headers = {}) {
  const request = new Request(`http://localhost${V1}${path}`, {
    method,
    headers: { 'Content-Type': 'application/json', ...(token && { Authorization: `Bearer ${token}` }), ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const response = await to.send(request);
  const text = await response.text();
  return { status: response.status, headers: response.headers, body: (text ? JSON.parse(text) : {}) as Json };
}

async function make(rights: Json, key = 'backend', from = guarded): Promise<string> {
  const made = await from.ok(201, 'POST', `${V1}/tokens`, rights, { Authorization: `Bearer ${key}` });
  return made.token as string;
}

const refused = async (...call: Parameters<typeof send>) => {
  const { status, body } = await send(...call);
  return [status, (body.error as Json | undefined)?.code];
};

const part = (value: unknown) => unpaddedBase64UrlOf(new TextEncoder().encode(JSON.stringify(value)));
const parts = (token: string) => token.split('.').map((each) => each.replaceAll('-', '+').replaceAll('_', '/'));
const decode = (token: string, at: number) => JSON.parse(atob(parts(token)[at] as string)) as Json;
const inAnHour = () => Date.now() + HOUR;
const signed = (secret: string, rights: Json, end = inAnHour(), kid?: string) =>
  signToken({ secrets: [secret] }, 'tocsin', rights as never, { end, kid, jti: crypto.randomUUID() });

describe('a token that reads a job', () => {
  it('shows its state, result and error, but nothing that it was given', async () => {
    const queue = freshName('token');
    const secret = 'not for the browser';
    const extra = { meta: { secret }, name: secret, message: secret };
    const id = await server.add('test.read', [{ secret }], { queue, retry: { max_attempts: 1 } }, extra);
    const token = await make({ job: id, read: true });
    const { body } = await send(token, 'GET', `/jobs/${id}`);
    expect(body).toMatchObject({ id, state: 'available', queue, job: { id, type: 'test.read', state: 'available' } });
    const { attempt } = await server.takeOne(queue);
    await server.ok(200, 'POST', `${V1}/jobs/${id}/log`, {
      attempt,
      lines: [{ at: 1, level: 'info', message: secret }],
    });
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/checkpoint`, { attempt, state: { secret } });
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/progress`, { attempt, progress: 0.5, data: { seats: 3 } });
    expect((await send(token, 'GET', `/jobs/${id}/progress`)).body).toMatchObject({
      progress: 0.5,
      data: { seats: 3 },
    });
    const stream = await StreamReader.open(`/jobs/${id}/events?access_token=${token}`, {}, guarded);
    const error = { code: 'E', type: 'Boom', message: 'no seats', stack: secret, details: { secret } };
    await server.nack(id, { attempt, error });
    await vi.waitFor(() => expect(stream.isOver).toBe(true));
    const reads = ['', '/result', '/progress'].map((path) => send(token, 'GET', `/jobs/${id}${path}`));
    const [job, result] = await Promise.all(reads);
    expect(job?.body).toMatchObject({ state: 'discarded', error: { type: 'Boom', message: 'no seats' } });
    expect(result?.body).toMatchObject({ state: 'discarded', error: { message: 'no seats' } });
    const shown = JSON.stringify([body, ...(await Promise.all(reads)).map((each) => each.body), stream.messages]);
    expect(shown).not.toContain(secret);
    expect(shown).not.toMatch(/"(args|meta|log|stack|errors|checkpoint|details|retry_effective)"/);
    expect(stream.messages.map(({ event }) => event)).toContain('job.discarded');
  });

  it('shows the keys by which a client knows repeated events of a job', async () => {
    const queue = freshName('token');
    const id = await server.enqueue(queue);
    const { attempt } = await server.takeOne(queue);
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/charge`, { attempt, result: 'private' });
    await server.ack(id);
    const token = await make({ job: id, read: true });
    for (const format of ['flat', 'cloudevents']) {
      const stream = await StreamReader.open(`/jobs/${id}/events?format=${format}&access_token=${token}`, {}, guarded);
      await stream.over();
      const [step] = stream.of('job.step').map(({ data }) => (format === 'flat' ? data : data.data));
      expect(step).toMatchObject({ name: 'charge', is: 'result', key: expect.stringMatching(/^step:charge:result:/) });
      expect(JSON.stringify(stream.messages)).not.toContain('private');
    }
  });

  it('costs no row', async () => {
    const queue = freshName('token');
    const id = await server.enqueue(queue);
    const object = new TestQueue(queue);
    await object.startCounting();
    const token = await make({ job: id, read: true, signals: ['x'] });
    for (const path of ['', '/result', '/progress']) await send(token, 'GET', `/jobs/${id}${path}`);
    expect((await object.counted()).written).toBe(0);
  });

  it('shows the result as it is, unless a rule of redaction hides it', async () => {
    const queue = freshName('token');
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await server.ack(id, { result: { args: 'mine', pin: 7 } });
    const token = await make({ job: id, read: true });
    expect((await send(token, 'GET', `/jobs/${id}/result`)).body.result).toEqual({ args: 'mine', pin: 7 });
    const redacting = withKeys(KEYS, { REDACT: 'pin' });
    const { body } = await send(token, 'GET', `/jobs/${id}`, undefined, redacting);
    expect((body.job as Json).result).toEqual({ args: 'mine', pin: '[redacted]' });
  });

  it('ends its streams when it expires', async () => {
    clock.set(Date.now());
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
    try {
      const id = await server.enqueue(freshName('token'));
      const token = await make({ job: id, read: true, expires_in: '20s' });
      const stream = await StreamReader.open(`/jobs/${id}/events?access_token=${token}`, {}, guarded);
      vi.advanceTimersByTime(15_000);
      expect(stream.isOver).toBe(false);
      vi.advanceTimersByTime(15_000);
      vi.useRealTimers();
      await vi.waitFor(() => expect(stream.isOver).toBe(true));
    } finally {
      vi.useRealTimers();
    }
  });
});

describe('a token that signals', () => {
  it('sends these signals to this job, and shows little of it', async () => {
    const id = await server.enqueue(freshName('token'), { args: ['private'] });
    const name = '承'.repeat(128);
    const token = await make({ job: id, signals: ['approved', name] });
    const { status, body } = await send(token, 'POST', `/jobs/${id}/signals/approved`, { payload: { by: 'ada' } });
    expect([status, body.signal]).toMatchObject([200, { name: 'approved' }]);
    expect(JSON.stringify(body)).not.toContain('private');
    expect(await refused(token, 'POST', `/jobs/${id}/signals/${encodeURIComponent(name)}`, {})).toEqual([
      200,
      undefined,
    ]);
    const steps = (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps as Json;
    expect(steps).toMatchObject({ approved: { signal: { payload: { by: 'ada' } } } });
    expect(await refused(token, 'POST', `/jobs/${id}/signals/rejected`, {})).toEqual([403, 'token_scope']);
    expect(await refused(token, 'GET', `/jobs/${id}`)).toEqual([403, 'token_scope']);
  });
});

describe('a token that enqueues', () => {
  it('makes one job, however often it is sent', async () => {
    const queue = freshName('token');
    const token = await make({ enqueue: { type: 'order.place', queue, group: 'acme' } });
    const first = await send(token, 'POST', '/jobs', { type: 'order.place', args: [1] });
    expect([first.status, first.body]).toMatchObject([201, { type: 'order.place', queue, state: 'available' }]);
    expect(first.body).not.toHaveProperty('args');
    const places = [{}, { queue, group: 'acme' }, { options: { queue } }];
    for (const place of places) {
      const again = await send(token, 'POST', '/jobs', { type: 'order.place', args: [1], ...place });
      expect([again.headers.get('Idempotency-Replayed'), again.body.id]).toEqual(['true', first.body.id]);
    }
    expect(await refused(token, 'POST', '/jobs', { type: 'order.place', args: [2] })).toEqual([409, 'conflict']);
    expect(await server.jobs(queue)).toMatchObject([{ type: 'order.place', args: [1], group: 'acme' }]);
  });

  it.each<[string, Json]>([
    ['another type', { type: 'order.refund' }],
    ['another queue', { queue: 'other' }],
    ['another queue among the options', { options: { queue: 'other' } }],
    ['another group', { options: { group: 'other' } }],
    ['a priority', { options: { priority: 9 } }],
    ['a target', { target_url: 'https://evil.example' }],
    ['meta', { meta: { parent_id: UNKNOWN_ID } }],
    ['an id', { id: UNKNOWN_ID }],
  ])('does not set %s', async (_, change) => {
    const queue = freshName('token');
    const token = await make({ enqueue: { type: 'order.place', queue } });
    const body = { type: 'order.place', args: [], ...change };
    expect(await refused(token, 'POST', '/jobs', body)).toEqual([403, 'token_scope']);
    expect(await server.jobs(queue)).toEqual([]);
  });

  it('works in the client', async () => {
    const queue = freshName('token');
    const fetch = (input: string, init?: object) => guarded.send(new Request(input, init as RequestInit));
    const tocsin = (key: string) => new TocsinClient({ url: 'http://localhost', key, fetch: fetch as never });
    const token = await tocsin('backend').token({ enqueue: { type: 'order.place', queue }, expiresIn: '1m' });
    const job = await tocsin(token).enqueue('order.place', [{ seats: 2 }], { queue });
    expect(await server.job(job.id)).toMatchObject({ queue, args: [{ seats: 2 }] });
    await expect(tocsin(token).get(job.id)).rejects.toMatchObject({ code: 'token_scope', status: 403 });
  });
});

describe('a token', () => {
  it('is refused on all other routes, and for other jobs', async () => {
    const [id, other] = [await server.enqueue(freshName('token')), await server.enqueue(freshName('token'))];
    const token = await make({ job: id, read: true, signals: ['x'], enqueue: { type: 'a.b' } });
    const calls = [
      ['GET', '/jobs'],
      ['GET', `/jobs/${other}`],
      ['GET', `/jobs/${UNKNOWN_ID}`],
      ['GET', `/jobs/${id}/steps`],
      ['GET', `/jobs/${id}/log`],
      ['DELETE', `/jobs/${id}`],
      ['GET', `/admin/jobs/${id}`],
      ['GET', '/admin/session'],
      ['POST', '/tokens'],
      ['POST', `/jobs/${id}/tokens`],
      ['POST', '/jobs/batch'],
      ['POST', '/workers/ack'],
      ['GET', '/nothing'],
    ] as const;
    for (const [method, path] of calls) {
      const body = method === 'POST' ? {} : undefined;
      expect([path, ...(await refused(token, method, path, body))]).toEqual([path, 403, 'token_scope']);
    }
    const login = await guarded.call('POST', `${V1}/admin/session`, { key: token });
    expect(login.status).toBe(401);
  });

  it('names the key that made it, has no more rights, and goes with it', async () => {
    const id = await server.enqueue(freshName('token'));
    const asked = (key: string, rights: Json) =>
      guarded.call('POST', `${V1}/tokens`, rights, { Authorization: `Bearer ${key}` });
    const reading = await asked('writer', { job: id, read: true });
    expect(reading).toMatchObject({ status: 403, body: { error: { details: { required_scope: 'data:read' } } } });
    for (const rights of [{ job: id, signals: ['x'] }, { enqueue: { type: 'a.b' } }]) {
      expect((await asked('reader', rights)).status).toBe(403);
    }
    const token = await make({ job: id, read: true }, 'reader');
    expect(await refused(token, 'GET', `/jobs/${id}`)).toEqual([200, undefined]);
    const removed = withKeys(KEYS.slice(0, 1));
    expect(await refused(token, 'GET', `/jobs/${id}`, undefined, removed)).toEqual([401, 'unauthorized']);
    const narrowed = withKeys([{ key: 'reader', scopes: ['data:write'] }]);
    expect(await refused(token, 'GET', `/jobs/${id}`, undefined, narrowed)).toEqual([403, 'token_scope']);
    // Signed elsewhere with a secret that is known there: rights must lie within those of the key it names.
    const kid = decode(token, 0).kid as string;
    const own = await signed(NEW, { job: id, signals: ['x'] }, inAnHour(), kid);
    expect(await refused(own, 'POST', `/jobs/${id}/signals/x`, {})).toEqual([403, 'token_scope']);
  });

  it('holds while its secret is there, old or new', async () => {
    const id = await server.enqueue(freshName('token'));
    const token = await signed(OLD, { job: id, read: true });
    const both = withKeys(KEYS, { TOKEN_SECRET: `${NEW}, ${OLD}` });
    expect(await refused(token, 'GET', `/jobs/${id}`, undefined, both)).toEqual([200, undefined]);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    expect(await refused(token, 'GET', `/jobs/${id}`)).toEqual([401, 'unauthorized']);
    warn.mockRestore();
    const none = withKeys(KEYS, { TOKEN_SECRET: '' });
    expect(await refused(token, 'GET', `/jobs/${id}`, undefined, none)).toEqual([401, 'unauthorized']);
    expect(await refused('backend', 'POST', '/tokens', { enqueue: { type: 'a.b' } }, none)).toEqual([
      500,
      'invalid_configuration',
    ]);
  });

  it('that was forged is refused, and counts as a failed login', async () => {
    const id = await server.enqueue(freshName('token'));
    const good = await make({ job: id, read: true });
    const [head = '', body = '', signature = ''] = good.split('.');
    const claims = decode(good, 1);
    const by = (header: Json, change: Json = {}) => `${part(header)}.${part({ ...claims, ...change })}`;
    const url = await signToken(
      { secrets: [NEW] },
      'tocsin:signal',
      { job: id, signal: 'x' },
      { end: inAnHour(), jti: 'one' },
    );
    const forged = [
      `${by({ alg: 'none', typ: 'JWT' })}.`,
      `${by({ alg: 'none', typ: 'JWT' })}.${signature}`,
      `${by({ alg: 'HS512' })}.${signature}`,
      `${head}.${part({ ...claims, job: UNKNOWN_ID })}.${signature}`,
      `${by({ ...decode(good, 0), kid: 'other' })}.${signature}`,
      `${head}.${body}.`,
      `${head}.${body}.${'A'.repeat(43)}`,
      `${head}.${body}.!`,
      `!.!.!`,
      'a.b.c',
      url,
      await signed('x'.repeat(32), { job: id, read: true }),
      await signed(NEW, { job: id, read: true }, inAnHour() + 48 * HOUR),
    ];
    const begin = vi.spyOn(attempts, 'begin').mockImplementation(() => () => undefined);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    for (const token of forged) {
      expect([token, ...(await refused(token, 'GET', `/jobs/${id}`))]).toEqual([token, 401, 'unauthorized']);
    }
    expect(begin).toHaveBeenCalledTimes(forged.length);
    expect(warn).toHaveBeenCalledTimes(forged.length);
    expect(JSON.stringify(warn.mock.calls)).not.toContain(body);
    const limited = new Attempts();
    begin.mockImplementation((...given) => limited.begin(...given));
    const from = { 'CF-Connecting-IP': '192.0.2.7' };
    for (let n = 0; n < 10; n++) await send('a.b.c', 'GET', `/jobs/${id}`, undefined, guarded, from);
    expect((await send('a.b.c', 'GET', `/jobs/${id}`, undefined, guarded, from)).status).toBe(429);
    expect((await send(good, 'GET', `/jobs/${id}`, undefined, guarded, from)).status).toBe(200);
    vi.restoreAllMocks();
  });

  it('that has expired is 401, and no forgery', async () => {
    const id = await server.enqueue(freshName('token'));
    const begin = vi.spyOn(attempts, 'begin');
    const token = await signed(NEW, { job: id, read: true }, Date.now() - 1000);
    expect(await refused(token, 'GET', `/jobs/${id}`)).toEqual([401, 'token_expired']);
    expect(begin).not.toHaveBeenCalled();
    begin.mockRestore();
  });

  it('may be signed by a backend that has the secret', async () => {
    const id = await server.enqueue(freshName('token'));
    const token = await signed(NEW, { job: id, read: true });
    expect(await refused(token, 'GET', `/jobs/${id}`)).toEqual([200, undefined]);
    const wrong = await signed(NEW, { job: id, read: 'yes' });
    expect(await refused(wrong, 'GET', `/jobs/${id}`)).toEqual([400, 'invalid_request']);
  });

  it('looks like a key without being one: keys come first', async () => {
    expect(await refused('looks.like.token', 'GET', '/jobs')).toEqual([200, undefined]);
  });

  it.each<[string, Json]>([
    ['read', {}],
    ['job', { read: true }],
    ['job', { signals: ['x'] }],
    ['signals', { job: 'x', signals: [] }],
    ['signals', { job: 'x', signals: Array(11).fill('x') }],
    ['signals[0]', { job: 'x', signals: ['..'] }],
    ['signals[0]', { job: 'x', signals: ['承'.repeat(129)] }],
    ['enqueue', { enqueue: 'a.b' }],
    ['enqueue.type', { enqueue: {} }],
    ['enqueue.type', { enqueue: { type: 'A B' } }],
    ['enqueue.queue', { enqueue: { type: 'a.b', queue: 'A' } }],
    ['typ', { enqueue: { type: 'a.b', typ: 'x' } }],
    ['signal', { job: 'x', signal: 'x', read: true }],
    ['expires_in', { job: 'x', read: true, expires_in: '25h' }],
    ['expires_in', { job: 'x', read: true, expires_in: 0 }],
    ['expires_in', { job: 'x', read: true, expires_in: 'soon' }],
  ])('is refused with a wrong %s: %j', async (field, rights) => {
    expect(await open.refusal('POST', `${V1}/tokens`, rights)).toEqual({ status: 400, code: 'invalid_request', field });
  });
});

describe('pages of any origin', () => {
  const FOREIGN = { Origin: 'https://shop.example' };

  it('may call with a token, without credentials, also where there is no key', async () => {
    const id = await server.enqueue(freshName('token'));
    const token = (await open.ok(201, 'POST', `${V1}/tokens`, { job: id, read: true })).token as string;
    const ask = { ...FOREIGN, 'Access-Control-Request-Headers': 'authorization' };
    const preflight = await open.call('OPTIONS', `${V1}/jobs/${id}`, undefined, ask);
    expect([preflight.status, preflight.headers.get('Access-Control-Allow-Origin')]).toEqual([204, '*']);
    const byQuery = await open.call('OPTIONS', `${V1}/jobs?access_token=${token}`, undefined, FOREIGN);
    expect(byQuery.status).toBe(204);
    const read = await send(token, 'GET', `/jobs/${id}`, undefined, open, FOREIGN);
    expect([read.status, read.headers.get('Access-Control-Allow-Origin')]).toEqual([200, '*']);
    expect(read.headers.get('Access-Control-Allow-Credentials')).toBeNull();
  });

  it('may not call without one, or with a forged one', async () => {
    const id = await server.enqueue(freshName('token'));
    const ask = { ...FOREIGN, 'Access-Control-Request-Headers': 'authorization' };
    expect((await open.call('OPTIONS', `${V1}/queues`, undefined, ask)).status).toBe(403);
    expect((await open.call('OPTIONS', `${V1}/jobs`, undefined, FOREIGN)).status).toBe(403);
    expect(await refused('', 'GET', `/jobs/${id}`, undefined, open, FOREIGN)).toEqual([403, 'forbidden']);
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => undefined);
    expect(await refused('a.b.c', 'GET', `/jobs/${id}`, undefined, open, FOREIGN)).toEqual([401, 'unauthorized']);
    warn.mockRestore();
    const without = TestServer.with({ TOKEN_SECRET: '' });
    expect(await refused('a.b.c', 'GET', `/jobs/${id}`, undefined, without, FOREIGN)).toEqual([403, 'forbidden']);
  });
});

describe('TOKEN_SECRET and PUBLIC_URL', () => {
  it.each<[string, Json]>([
    ['TOKEN_SECRET', { TOKEN_SECRET: 'short' }],
    ['TOKEN_SECRET', { TOKEN_SECRET: `${NEW} short` }],
    ['TOKEN_SECRET', { TOKEN_SECRET: `${NEW} ${OLD} ${'x'.repeat(32)}` }],
    ['TOKEN_SECRET', { TOKEN_SECRET: 7 }],
    ['PUBLIC_URL', { PUBLIC_URL: 'jobs.example' }],
    ['PUBLIC_URL', { PUBLIC_URL: 'ftp://jobs.example' }],
    ['PUBLIC_URL', { PUBLIC_URL: 'https://user:pass@jobs.example' }],
    ['PUBLIC_URL', { PUBLIC_URL: 'https://jobs.example/?x=1' }],
  ])('close the deployment while %s is wrong: %j', async (variable, variables) => {
    const { status, body } = await TestServer.with(variables).call('GET', `${V1}/jobs`);
    expect([status, body.error]).toMatchObject([500, { code: 'invalid_configuration', details: { variable } }]);
    expect(JSON.stringify(body)).not.toMatch(/short|pass@/);
  });
});
