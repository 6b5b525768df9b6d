import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Env, readConfig } from '../../src/config';
import { ownsQueue, readTargets, takesFrom, targetFor } from '../../src/dispatch/config';
import { ApiError } from '../../src/job/errors';
import { server, TestServer } from '../support/server';

const bindings = { A: { fetch: async () => new Response() }, B: { fetch: async () => new Response() }, TEXT: 'text' };
const read = (handlers: unknown) => readTargets(handlers, bindings);

/** The details of the configuration error that `handlers` is. */
function mistake(handlers: unknown): Record<string, unknown> {
  try {
    read(handlers);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.data).toMatchObject({ code: 'invalid_configuration', details: { variable: 'HANDLERS' } });
    return { message: error.data.message, ...(error.data.details as Record<string, unknown>) };
  }
  throw new Error(`accepted: ${JSON.stringify(handlers)}`);
}

describe('HANDLERS', () => {
  it('may be absent, a table, or its text', () => {
    for (const nothing of [undefined, null, '', '{}', {}]) expect(read(nothing)).toEqual([]);
    expect(read({ 'a.*': 'A' })).toEqual(read('{"a.*":"A"}'));
  });

  it('gives each binding its defaults', () => {
    expect(read({ 'a.*': 'A' })).toMatchObject([
      { id: 'A', name: 'A', patterns: [{ type: 'a.*' }], batchSize: 10, timeoutMs: 30_000 },
    ]);
  });

  it('joins patterns of one binding with the same options, and tells others apart', () => {
    const targets = read({ 'a.*': 'A', 'b.*': { binding: 'A' }, c: { binding: 'A', batch_size: 5 }, d: 'B' });
    expect(targets.map(({ id, name, patterns }) => [id, name, patterns.map(({ type }) => type)])).toEqual([
      ['A', 'A', ['a.*', 'b.*']],
      ['A#2', 'A', ['c']],
      ['B', 'B', ['d']],
    ]);
  });

  it('says how jobs are gathered into calls, which then have the form of a batch', () => {
    const batch = { size: 100, wait_ms: 5_000, by: 'group' };
    expect(read({ 'a.*': { binding: 'A', batch } })).toMatchObject([{ payload: 'batch', chunk: batch }]);
    const wrong: [Record<string, unknown>, string][] = [
      [{ size: 0, wait_ms: 1 }, 'batch.size'],
      [{ size: 1001, wait_ms: 1 }, 'batch.size'],
      [{ size: 1, wait_ms: 3_600_001 }, 'batch.wait_ms'],
      [{ size: 1 }, 'batch.wait_ms'],
      [{ size: 1, wait_ms: 1, by: 'tenant' }, 'batch.by'],
      [{ size: 1, wait_ms: 1, wait: '1s' }, 'batch.wait'],
    ];
    for (const [one, option] of wrong) expect(mistake({ a: { binding: 'A', batch: one } })).toMatchObject({ option });
    expect(mistake({ a: { binding: 'A', batch: 100 } })).toMatchObject({ option: 'batch' });
    expect(mistake({ a: { binding: 'A', batch, payload: 'job' } })).toMatchObject({ option: 'payload' });
  });

  it('names the binding that does not exist, or is not a service', () => {
    expect(mistake({ 'a.*': 'GONE' })).toMatchObject({ key: 'a.*', missing: ['GONE'] });
    expect(mistake({ 'a.*': { binding: 'TEXT' } })).toMatchObject({ missing: ['TEXT'] });
    expect(mistake({ 'a.*': 'GONE' }).message).toContain('GONE');
  });

  it.each([
    '',
    '*.a',
    'a.*.b',
    'a*',
    'A.b',
    'queue/',
    '/a',
    'q/q/a',
    'Q/a',
    '-q/a',
    'a..b',
    'a.',
    `${'q'.repeat(129)}/*`,
  ])('refuses the pattern %j', (key) => {
    expect(mistake({ [key]: 'A' })).toMatchObject({ key });
  });

  it('refuses unknown options, and values out of range, by name', () => {
    expect(mistake({ a: { binding: 'A', bach_size: 3 } })).toMatchObject({ key: 'a', option: 'bach_size' });
    for (const [option, values] of Object.entries({
      batch_size: [0, 101, 1.5, '10', null, -1],
      timeout_ms: [0, 900_001, '1s'],
      max_concurrency: [0, 10_001, Number.NaN],
      payload: ['jobs', 1],
    })) {
      for (const value of values) {
        if (value === null) continue;
        expect([value, mistake({ a: { binding: 'A', [option]: value } }).option]).toEqual([value, option]);
      }
    }
  });

  it.each([['["a"]'], ['{'], ['7'], [[]], [7]])('refuses %j as a whole', (handlers) => {
    mistake(handlers);
  });

  it.each([[7], [null], [[]], [{}], [{ binding: 7 }], [''], [{ binding: '' }]])('refuses %j as a target', (value) => {
    expect(mistake({ a: value })).toMatchObject({ key: 'a' });
  });

  it('makes an error of the configuration of anything else', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (handlers) => {
        try {
          read(handlers);
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
        }
      }),
    );
  });
});

describe('a URL in HANDLERS', () => {
  const secrets = { TARGET_SECRET: 'secret-of-the-tests', OTHER: 'other-secret-of-tests' };
  const url = 'https://app.example/jobs';
  const readUrls = (handlers: unknown, env: Record<string, unknown> = secrets, allows = { loopback: false }) =>
    readTargets(handlers, { ...bindings, ...env }, allows);
  const wrongWith = (value: unknown, env: Record<string, unknown> = secrets) => {
    try {
      readUrls({ 'a.*': value }, env);
    } catch (error) {
      if (error instanceof ApiError) return error.data.details;
      throw error;
    }
    throw new Error(`accepted: ${JSON.stringify(value)}`);
  };

  it('is a target with the name of its host', () => {
    expect(readUrls({ 'a.*': url, b: { url, payload: 'job' }, c: url, d: 'A' })).toMatchObject([
      {
        id: 'app.example',
        name: 'app.example',
        isRemote: true,
        timeoutMs: 30_000,
        patterns: [{ type: 'a.*' }, { type: 'c' }],
      },
      { id: 'app.example#2', name: 'app.example', payload: 'job', patterns: [{ type: 'b' }] },
      { id: 'A' },
    ]);
    expect(readUrls({ a: url, b: `${url}/2` }).map(({ id }) => id)).toEqual(['app.example', 'app.example#2']);
  });

  it('needs a secret, and names the variable that has none', () => {
    expect(wrongWith(url, {})).toMatchObject({ variable: 'TARGET_SECRET', missing: ['TARGET_SECRET'] });
    expect(wrongWith({ url, secret_binding: 'GONE' })).toMatchObject({ variable: 'GONE', missing: ['GONE'] });
    expect(wrongWith({ url, secret_binding: 'A' })).toEqual({ variable: 'A' });
    expect(wrongWith(url, { TARGET_SECRET: 'short' })).toEqual({ variable: 'TARGET_SECRET' });
    expect(readUrls({ a: { url, secret: 'secret-in-the-table' } }, {})).toHaveLength(1);
    expect(readUrls({ a: { url, secret_binding: 'OTHER' } }, { OTHER: secrets.OTHER })).toHaveLength(1);
  });

  it('enqueues nowhere but in the queues that it lists', () => {
    const may = (more: object) => readUrls({ a: { url, ...more } }).map(({ mayEnqueue }) => mayEnqueue);
    expect(may({})).toEqual([[]]);
    expect(may({ may_enqueue: ['mail', 'reports'] })).toEqual([['mail', 'reports']]);
    expect(may({ may_enqueue: '*' })).toEqual([['*']]);
    expect(read({ a: 'A' }).map(({ mayEnqueue }) => mayEnqueue)).toEqual([undefined]);
    expect(mistake({ a: { binding: 'A', may_enqueue: ['mail'] } })).toMatchObject({ option: 'may_enqueue' });
  });

  it.each([
    ['url', { url: 'http://app.example/' }],
    ['url', { url: 'https://10.0.0.1/' }],
    ['url', { url: 7 }],
    ['url', 'https://user@app.example/'],
    ['url', 'http://localhost:8787/jobs'],
    ['binding', { url, binding: 'A' }],
    ['secret', { url, secret: 'short' }],
    ['secret', { url, secret: ['secret-of-the-tests'] }],
    ['secret', { url, secret: 'secret-of-the-tests', secret_binding: 'OTHER' }],
    ['secret_binding', { url, secret_binding: 7 }],
    ['signature', { url, signature: [] }],
    ['signature', { url, signature: 'hmac' }],
    ['signature', { url, signature: ['ojs', 'hmac'] }],
    ['signature', { url, signature: ['ojs', 'ojs'] }],
    ['may_enqueue', { url, may_enqueue: 'mail' }],
    ['may_enqueue', { url, may_enqueue: ['Mail'] }],
    ['may_enqueue', { url, may_enqueue: [7] }],
    ['payload', { url, payload: 'body' }],
    ['retries', { url, retries: 3 }],
    ['binding', { binding: 'A', secret: 'secret-of-the-tests', url: null }],
  ])('has no wrong %s: %j', (option, value) => {
    expect(wrongWith(value)).toMatchObject({ variable: 'HANDLERS', key: 'a.*', option });
  });

  it('may lead to this machine in development', () => {
    const [target] = readUrls({ a: 'http://localhost:8787/jobs' }, secrets, { loopback: true });
    expect(target).toMatchObject({ id: 'localhost:8787', isRemote: true });
  });
});

describe('the target of a job', () => {
  const targets = read({ '*': 'A', 'a.*': 'B', 'a.b': 'A', 'q/*': { binding: 'B', batch_size: 2 }, 'q/a.b.c': 'A' });
  const named = (queue: string, type: string) => targetFor(targets, queue, type)?.id;

  it('is the one of the most specific pattern', () => {
    expect(named('x', 'z')).toBe('A');
    expect(named('x', 'a.z')).toBe('B');
    expect(named('x', 'a.b')).toBe('A');
    expect(named('x', 'a.b.c')).toBe('B');
    expect(named('x', 'a')).toBe('A');
    expect(named('q', 'a.b')).toBe('B#2');
    expect(named('q', 'a.b.c')).toBe('A');
  });

  it('undoes the steps of the types that it takes, unless a longer pattern fits', () => {
    const some = read({ '*': 'A', 'a.b': 'B', 'c.d': 'B', 'c.d.*': 'A' });
    const of = (type: string) => targetFor(some, 'x', type)?.id;
    expect(['a.b.undo', 'a.b.undo.undo', 'a.bundo', 'c.d.undo', 'z.undo'].map(of)).toEqual(['B', 'A', 'A', 'A', 'A']);
  });

  it('is none where no pattern fits', () => {
    const some = read({ 'mail/a.*': 'A', 'b.*': 'B' });
    expect(targetFor(some, 'other', 'a.x')).toBeUndefined();
    expect(targetFor(some, 'mail', 'ab')).toBeUndefined();
    expect(ownsQueue(some, 'mail')).toBe(true);
    expect(ownsQueue(some, 'other')).toBe(false);
    expect(some.map((target) => takesFrom(target, 'other'))).toEqual([false, true]);
  });
});

describe('a deployment whose HANDLERS are wrong', () => {
  const variables = { HANDLERS: { 'a.*': 'GONE' } };

  it('cannot be read', () => {
    expect(() => readConfig({ ...env, ...variables } as unknown as Env)).toThrow(/GONE/);
  });

  it('answers every request but the probes with what is missing, and enqueues nothing', async () => {
    const wrong = TestServer.with(variables);
    for (const [method, path, body] of [
      ['POST', '/ojs/v1/jobs', { type: 'a.b', args: [], options: { queue: 'misconfigured' } }],
      ['GET', '/ojs/v1/queues', undefined],
      ['POST', '/ojs/v1/workers/fetch', { queues: ['misconfigured'] }],
    ] as const) {
      expect(await wrong.call(method, path, body)).toMatchObject({
        status: 500,
        body: { error: { code: 'invalid_configuration', retryable: false, details: { missing: ['GONE'] } } },
      });
    }
    expect(await wrong.call('GET', '/health')).toMatchObject({ status: 200 });
    expect((await server.call('GET', '/ojs/v1/queues/misconfigured/stats')).body).toMatchObject({ available: 0 });
  });
});
