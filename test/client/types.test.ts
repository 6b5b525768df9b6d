/** What does not make sense does not compile: each line that must not stands under a `@ts-expect-error`. */
import { describe, expectTypeOf, it } from 'vitest';
import {
  type Callbacks,
  type ClientOptions,
  type CronEntry,
  type Duration,
  type EnqueueOptions,
  type EnqueueOutcome,
  type JobOutcome,
  type JobPatch,
  type QueueConfigChange,
  type QueueRemoval,
  type RateLimitOptions,
  type RateLimitOverride,
  type RunWorkerOptions,
  TocsinClient,
  type UniqueOptions,
} from '../../src/client';
import type { HandlerContext } from '../../src/handler';

interface Jobs {
  'mail.send': [{ to: string }];
  'mail.report': [];
}

/** Checked by the compiler; nothing of it has to run. */
const compiles = <T>(_accepted: readonly T[]): void => undefined;

describe('a duration', () => {
  it('is one that the queue reads', () => {
    compiles<Duration>([
      10_000,
      '500ms',
      '12.5s',
      '5m',
      '1h',
      '7d',
      '2w',
      '1500',
      'PT1M30S',
      // @ts-expect-error the queue reads no words
      '10 seconds',
      // @ts-expect-error no such unit
      '5y',
      // @ts-expect-error no such thing
      'soon',
    ]);
    compiles<EnqueueOptions>([
      { delay: '10s' },
      // @ts-expect-error the queue reads no words
      { delay: '10 seconds' },
    ]);
  });
});

describe('a unique policy', () => {
  it('has one spelling of each thing', () => {
    compiles<UniqueOptions>([
      {},
      { key: 'user-1', period: '1h', uniqueWhile: 'exists', onConflict: 'ignore' },
      { keys: ['type', 'args'], argsKeys: ['id'], within: 1000 },
      { key: ['queue', 'args'], states: ['available'] },
      { key: 'user-1', keys: ['queue'] },
      { keys: ['meta'], metaKeys: ['tenant'] },
      { metaKeys: ['tenant'] },
      { key: 'user-1', onConflict: 'replace', maxWait: '1m' },
      { key: 'user-1', onConflict: 'accumulate', maxWait: '1m', maxCount: 100 },
      { key: 'user-1', sample: 'trailing', period: '1h' },
      // @ts-expect-error nothing waits for an ignored newcomer
      { onConflict: 'ignore', maxWait: '1m' },
      // @ts-expect-error nothing accumulates
      { onConflict: 'replace', maxCount: 2 },
      // @ts-expect-error only jobs that have not started accumulate
      { onConflict: 'accumulate', states: ['active'] },
      // @ts-expect-error a sample of no window
      { sample: 'leading' },
      // @ts-expect-error a sample says what becomes of the others
      { sample: 'leading', period: '1h', onConflict: 'ignore' },
      // @ts-expect-error two periods
      { period: '1h', within: '2h' },
      // @ts-expect-error two sets of states
      { states: ['active'], uniqueWhile: 'queued' },
      // @ts-expect-error the same twice
      { key: ['type'], keys: ['type'] },
      // @ts-expect-error meta counts by its members only
      { keys: ['meta'] },
      // @ts-expect-error no such action
      { onConflict: 'merge' },
    ]);
  });
});

describe('limits', () => {
  it('of a job have a key or a limit, and one rate at most', () => {
    compiles<RateLimitOptions>([
      { key: 'stripe' },
      { concurrency: 2 },
      { key: 'stripe', rate: 10, period: 'minute', throttle: { limit: 1, period: '1s' }, onLimit: 'drop' },
      { rate: { limit: 10, period: 60_000 } },
      { maxPerSecond: 5, onLimit: 'reschedule' },
      // @ts-expect-error limits nothing
      {},
      // @ts-expect-error limits nothing either
      { onLimit: 'drop' },
      // @ts-expect-error a number of starts needs a period
      { rate: 10 },
      // @ts-expect-error the period is in the rate
      { rate: { limit: 1, period: 'minute' }, period: 'minute' },
      // @ts-expect-error two rates
      { maxPerSecond: 5, rate: 10, period: 'minute' },
      // @ts-expect-error a period of nothing
      { key: 'stripe', period: 'minute' },
    ]);
  });

  it('of a key name what is to hold instead', () => {
    compiles<RateLimitOverride>([
      { concurrency: 0 },
      { limit: 5, period: 'minute', expiresAt: '+PT15M' },
      { concurrency: 1, limit: 5 },
      // @ts-expect-error nothing
      { expiresAt: '+PT15M' },
      // @ts-expect-error a period of nothing
      { concurrency: 1, period: 'minute' },
    ]);
  });

  it('of a queue are a rate, a concurrency, or both', () => {
    compiles<QueueConfigChange>([
      { rateLimit: { concurrency: 5 }, concurrency: null },
      { rateLimit: { limit: 5, period: 'minute', concurrency: 2 } },
      { rateLimit: null, defaultRetry: { maxAttempts: null } },
      // @ts-expect-error a rate needs a period
      { rateLimit: { limit: 5 } },
      // @ts-expect-error limits nothing
      { rateLimit: {} },
      // @ts-expect-error a request cannot wait for room
      { overflowPolicy: 'block' },
      // @ts-expect-error there is no such setting
      { concurency: 5 },
    ]);
  });
});

describe('a job', () => {
  it('starts at one time and has one number of runs', () => {
    compiles<EnqueueOptions>([
      { delay: '1h', maxAttempts: 3, retry: { preset: 'sidekiq' } },
      { delayUntil: new Date(0), retry: { maxAttempts: 3 } },
      // @ts-expect-error two times
      { delay: '1h', delayUntil: new Date(0) },
      // @ts-expect-error two numbers
      { maxAttempts: 3, retry: { maxAttempts: 4 } },
    ]);
    compiles<JobPatch>([
      { delayUntil: null, maxAttempts: null, retry: { maxInterval: null } },
      // @ts-expect-error two times
      { delay: '1h', delayUntil: null },
      // @ts-expect-error two numbers
      { maxAttempts: 3, retry: { maxAttempts: null } },
      // @ts-expect-error what a job does cannot be changed
      { args: [] },
    ]);
  });

  it('of a workflow has no id, no key and no unique policy, and is one of the map', () => {
    const { flow } = new TocsinClient<Jobs>({ url: 'http://localhost' });
    const report = { type: 'mail.report', args: [] } as const satisfies { type: string; args: [] };
    flow.chain(
      { type: 'mail.send', args: [{ to: 'a' }], options: { queue: 'mail' } },
      flow.group({ type: 'mail.report', args: [] }),
    );
    // @ts-expect-error each step is enqueued once anyway
    flow.chain({ type: 'mail.report', args: [], options: { unique: { key: 'a' } } });
    // @ts-expect-error a mail goes to somebody
    flow.group({ type: 'mail.send', args: [] });
    // @ts-expect-error there is no such job
    flow.graph({ a: { step: { type: 'mail.sent', args: [] } } });
    compiles<Callbacks>([
      { onSuccess: { type: report.type, args: [] } },
      // @ts-expect-error a batch without a callback is a group
      {},
    ]);
  });
});

describe('an option that does not exist', () => {
  const { flow, ...client } = new TocsinClient<Jobs>({ url: 'http://localhost' });
  const report: { type: 'mail.report'; args: [] } = { type: 'mail.report', args: [] };

  it('is not accepted for a job, wherever one is enqueued', () => {
    compiles<EnqueueOptions>([
      { maxAttempts: 1, queue: 'mail' },
      // @ts-expect-error a letter is missing
      { maxAttemps: 1 },
      // @ts-expect-error a letter too many
      { queue: 'mail', prioritty: 5 },
      // @ts-expect-error the name on the wire
      { max_attempts: 1 },
    ]);
    const enqueue = (tocsin: TocsinClient<Jobs>, { env: _, ...ctx }: HandlerContext) => [
      // @ts-expect-error a letter is missing
      tocsin.enqueue('mail.report', [], { maxAttemps: 1 }),
      // @ts-expect-error a letter too many
      tocsin.enqueueMany([{ type: 'mail.report', args: [], options: { prioritty: 5 } }]),
      // @ts-expect-error it stands in the options
      tocsin.enqueueEach([{ type: 'mail.report', args: [], priority: 5 }]),
      // @ts-expect-error of a job on its own
      tocsin.enqueueMany([{ type: 'mail.report', args: [], options: { idempotencyKey: 'a' } }]),
      // @ts-expect-error a letter is missing
      ctx.enqueue('mail.report', [], { maxAttemps: 1 }),
      // @ts-expect-error a letter too many
      tocsin.jobs.patch('id', { prioritty: 5 }),
    ];
    compiles<typeof enqueue>([enqueue]);
  });

  it('is not accepted for a step of a workflow', () => {
    flow.graph({ a: { step: report }, b: { step: report, after: ['a'] } });
    // @ts-expect-error a letter is missing
    flow.chain({ type: 'mail.report', args: [], options: { maxAttemps: 1 } });
    // @ts-expect-error which steps it follows is in `after`
    flow.graph({ a: { step: report }, b: { step: report, dependsOn: ['a'] } });
    // @ts-expect-error a batch has its callbacks itself
    flow.group({ type: 'mail.report', args: [], callbackType: 'on_success' });
    // @ts-expect-error a letter is missing
    const start = () => client.workflows.start(flow.group(report), { jobOptions: { maxAttemps: 1 } });
    compiles<typeof start>([start]);
  });

  it('is not accepted for a schedule', () => {
    const entry = { name: 'a', expression: '@daily', job: report };
    compiles<CronEntry>([
      // @ts-expect-error schedules are exact
      { ...entry, jitter: '5m' },
      // @ts-expect-error the whole name
      { ...entry, overlap: 'skip' },
      // @ts-expect-error a letter too many
      { ...entry, job: { type: 'mail.report', args: [], options: { prioritty: 5 } } },
    ]);
  });
});

describe('a schedule', () => {
  it('makes up for missed times only where their jobs may meet', () => {
    const entry = { name: 'a', expression: '@daily', job: { type: 'mail.report', args: [] } };
    compiles<CronEntry>([
      { ...entry, missedPolicy: 'fire_all', overlapPolicy: 'enqueue', maxCatchup: 5 },
      { ...entry, missedPolicy: 'skip', overlapPolicy: 'cancel_previous' },
      // @ts-expect-error all but one would be skipped
      { ...entry, missedPolicy: 'fire_all', overlapPolicy: 'skip' },
      // @ts-expect-error nothing is made up for
      { ...entry, missedPolicy: 'fire_once', maxCatchup: 5 },
    ]);
  });
});

describe('an operation', () => {
  it('names where jobs move to, and which states can be purged', () => {
    compiles<QueueRemoval>([
      { strategy: 'move', targetQueue: 'b' },
      { strategy: 'discard' },
      {},
      // @ts-expect-error where to?
      { strategy: 'move' },
      // @ts-expect-error nothing moves
      { strategy: 'discard', targetQueue: 'b' },
    ]);
    const { queues } = new TocsinClient({ url: 'http://localhost' });
    // @ts-expect-error jobs that run cannot be purged
    const purge = () => queues.purge('a', ['active']);
    compiles<() => unknown>([purge]);
  });
});

describe('an answer', () => {
  it('tells by its state what it holds', () => {
    expectTypeOf<Extract<JobOutcome<number>, { state: 'completed' }>['result']>().toEqualTypeOf<number>();
    expectTypeOf<Extract<JobOutcome<number>, { state: 'discarded' | 'cancelled' }>['result']>().toBeNull();
    expectTypeOf<Extract<EnqueueOutcome, { status: 'failed' }>['error']>().toHaveProperty('message');
  });

  it('has the arguments that were given', () => {
    const client = new TocsinClient<Jobs>({ url: 'http://localhost' });
    const enqueue = () => client.enqueue('mail.send', [{ to: 'a' }]);
    expectTypeOf<Awaited<ReturnType<typeof enqueue>>['args']>().toEqualTypeOf<[{ to: string }]>();
  });
});

describe('an option that is undefined', () => {
  it('is one that is not given, whatever the compiler option exactOptionalPropertyTypes says', () => {
    const queue: string | undefined = undefined;
    compiles<EnqueueOptions>([
      { queue, priority: undefined, delay: undefined, delayUntil: undefined, retry: undefined, unique: undefined },
      { id: undefined, idempotencyKey: undefined, meta: undefined, rateLimit: { key: 'x', concurrency: undefined } },
    ]);
    compiles<ClientOptions>([
      { url: 'http://localhost', timeoutMs: undefined, onWarning: undefined, retry: undefined },
    ]);
    compiles<RunWorkerOptions>([{ url: 'http://localhost', queues: [], concurrency: undefined, signal: undefined }]);
    compiles<CronEntry>([
      { name: 'x', expression: '@daily', timezone: undefined, job: { type: 'a.b', args: [], options: { queue } } },
    ]);
  });
});
