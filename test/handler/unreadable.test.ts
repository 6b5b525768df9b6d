/** Values that cannot be read, thrown by handlers, hooks, steps, loggers and tracing. */
import { describe, expect, it } from 'vitest';
import { defineHandlers, type HandlerContext, type Job, tracing, type WorkerOptions } from '../../src/handler';
import { failureOf } from '../../src/handler/failure';
import { messageOf } from '../../src/job/thrown';
import { deliver, deliverOne, quiet } from './deliver';

const refuse = (): never => {
  throw new Error('unreadable');
};
const revoked = (target: object = {}): object => {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
};
const getters = (target: object, ...names: PropertyKey[]): object =>
  Object.defineProperties(target, Object.fromEntries(names.map((name) => [name, { get: refuse }])));

/** What a program may throw. */
const STRANGE: [string, () => unknown][] = [
  ['a revoked proxy', () => revoked()],
  ['a revoked function', () => revoked(() => 1)],
  ['a proxy whose traps throw', () => new Proxy({}, { get: refuse, getPrototypeOf: refuse, ownKeys: refuse })],
  [
    'an error whose getters throw',
    () => getters(new Error('x'), 'name', 'message', 'stack', 'cause', 'type', 'details'),
  ],
  [
    'an error whose verdict throws',
    () => getters(new Error('x'), Symbol.for('tocsin.verdict'), Symbol.for('tocsin.suspended')),
  ],
  ['a text that cannot be', () => ({ toString: refuse, [Symbol.toPrimitive]: refuse, toJSON: refuse })],
  ['an error whose message is no text', () => Object.assign(new Error('x'), { message: { deep: [1] } })],
  ['an aggregate whose errors throw', () => getters(new AggregateError([], 'x'), 'errors')],
  ['an aggregate of the unreadable', () => new AggregateError([revoked(), getters(new Error('x'), 'message')], 'x')],
  ['an error behind which is none', () => new Error('x', { cause: revoked() })],
  [
    'an instance of a class that cannot be named',
    () =>
      new (class extends Error {
        static override get name(): string {
          return refuse();
        }
      })('x'),
  ],
];

describe('a handler that throws what cannot be read', () => {
  it.each(STRANGE)('%s fails its own job only', async (_, make) => {
    const worker = defineHandlers(
      {
        'a.bad': () => {
          throw make();
        },
        'a.good': () => 'fine',
      },
      { ...quiet(), onFailed: refuse, onDiscarded: () => Promise.reject(make()) },
    );
    const [bad, good] = await deliver(worker, {}, { type: 'a.bad', max_attempts: 1 }, { type: 'a.good' });
    expect(bad).toMatchObject({ status: 'failed', error: { code: 'handler_error', message: expect.any(String) } });
    expect(good).toMatchObject({ status: 'completed', result: 'fine' });
  });

  it.each(STRANGE)('%s is a failure with a message, wherever it is read', (_, make) => {
    expect(failureOf(make())).toMatchObject({ code: 'handler_error', message: expect.any(String) });
    expect(messageOf(make())).toEqual(expect.any(String));
  });

  const around: Record<string, (thrown: () => unknown) => WorkerOptions> = {
    middleware: (make) => ({ use: [() => Promise.reject(make())] }),
    tracing: () => ({ use: [tracing(telemetry)] }),
    'a logger': (make) => ({
      log: () => {
        throw make();
      },
    }),
    'a logger that is asynchronous': (make) => ({ log: () => Promise.reject(make()) }),
  };
  it.each(Object.keys(around))('passes through %s', async (name) => {
    for (const [, make] of STRANGE) {
      const run = (_: Job, ctx: HandlerContext): never => {
        ctx.log.info('begun', { at: make() });
        throw make();
      };
      const worker = defineHandlers({ 'a.b': run }, { ...quiet(), ...around[name]?.(make) });
      expect(await deliverOne(worker, {}, { type: 'a.b' })).toMatchObject({ status: 'failed' });
    }
  });

  it.each<[string, (ctx: HandlerContext, value: unknown) => unknown]>([
    ['returns', (_, value) => value],
    ['returns in a list', (_, value) => [value]],
    ['has as the result of a step', (ctx, value) => ctx.step('s', () => value)],
    ['throws in a step', (ctx, value) => ctx.step('s', () => Promise.reject(value))],
    ['reports as progress', (ctx, value) => ctx.progress(value as number)],
    ['saves', (ctx, value) => ctx.checkpoint(value)],
    ['enqueues', (ctx, value) => ctx.enqueue('a.b', [value])],
    ['passes as options', (ctx, value) => ctx.enqueue('a.b', [], { meta: value as Record<string, unknown> })],
  ])('is the failure of a handler that %s it', async (_, run) => {
    const worker = defineHandlers((_job, ctx: HandlerContext) => run(ctx, revoked()), quiet());
    const [bad] = await deliver(worker, {}, { type: 'a.b' }, { type: 'a.b' });
    expect(bad?.status).toMatch(/failed|again/);
  });
});

describe('the history of a failure', () => {
  it('has the causes of an error, and the errors of an aggregate', () => {
    const socket = Object.assign(new Error('connect failed'), { code: 'ECONNREFUSED' });
    const thrown = new AggregateError([new RangeError('one'), new Error('two', { cause: socket })], 'both failed', {
      cause: 'a text',
    });
    expect(failureOf(thrown).details).toEqual({
      cause: { message: 'a text' },
      errors: [
        { type: 'RangeError', message: 'one' },
        { type: 'Error', message: 'two', cause: { type: 'Error', code: 'ECONNREFUSED', message: 'connect failed' } },
      ],
    });
  });

  it('keeps details of the error beside its cause', () => {
    const thrown = Object.assign(new Error('x', { cause: new Error('y') }), { details: { order: 7 } });
    expect(failureOf(thrown).details).toEqual({ order: 7, cause: { type: 'Error', message: 'y' } });
    expect(failureOf(Object.assign(thrown, { details: [7] })).details).toEqual([7]);
  });

  it('is bounded in bytes, however many causes there are', () => {
    const long = '縦'.repeat(10_000);
    const chain: Error = Array.from({ length: 100 }).reduce<Error>(
      (cause) => new Error(long, { cause }),
      new Error('x'),
    );
    const circle = new Error('round');
    circle.cause = circle;
    for (const thrown of [
      chain,
      circle,
      new AggregateError(
        Array.from({ length: 10_000 }, () => new Error(long)),
        'x',
      ),
    ]) {
      const { details } = failureOf(thrown);
      expect(new TextEncoder().encode(JSON.stringify(details)).length).toBeLessThan(8_192);
      expect(details).toMatchObject(thrown instanceof AggregateError ? { omitted: expect.any(Number) } : { cause: {} });
    }
  });

  it('has the status of a thrown Response', async () => {
    const worker = defineHandlers(() => {
      throw new Response('upstream broke', { status: 502, statusText: 'Bad Gateway' });
    }, quiet());
    expect((await deliverOne(worker, {}, { type: 'a.b' })).error).toEqual({
      code: 'handler_error',
      type: 'http_502',
      message: 'The handler threw a Response with the status 502 Bad Gateway.',
      classes: ['Response'],
      details: { status: 502, status_text: 'Bad Gateway' },
    });
  });
});

/** As little of OpenTelemetry as tracing needs. */
const span = {
  spanContext: () => ({ traceId: '', spanId: '', traceFlags: 0 }),
  setAttribute: () => undefined,
  setStatus: () => undefined,
  recordException: () => undefined,
  end: () => undefined,
};
const telemetry = {
  context: { active: () => ({}), with: <T>(_: unknown, run: () => T) => run() },
  trace: {
    getTracer: () => ({ startSpan: () => span }),
    getSpanContext: () => undefined,
    setSpan: () => ({}),
    setSpanContext: () => ({}),
  },
};
