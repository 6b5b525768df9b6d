/** A worker that runs by itself, against the queue: it works, obeys, and ends. */

import { beforeEach, describe, expect, it } from 'vitest';
import { TocsinClient } from '../../src/client';
import {
  deadLetter,
  defineHandlers,
  discard,
  fail,
  type HandlerContext,
  kill,
  retryIn,
  UnrecoverableError,
} from '../../src/handler';
import { until } from '../support/clock';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { all, liveClient } from './live-client';

class PoisonPill extends UnrecoverableError {}

server.emptyBeforeEach();
const client = liveClient();
let queue: string;
let stop: AbortController;
beforeEach(() => {
  queue = freshName('run');
  stop = new AbortController();
});

const quiet = { log: () => undefined };

/** A handler that says when it has begun, and ends when it is told to. */
function slowHandler() {
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  let finish: (result: string) => void = () => undefined;
  const result = new Promise<string>((resolve) => {
    finish = resolve;
  });
  const handler = (): Promise<string> => {
    begin();
    return result;
  };
  return { begun, finish, handlers: { 'slow.one': handler } };
}

describe('a worker that runs', () => {
  it('reports what its handlers return and throw, and leaves when it is stopped', async () => {
    const options = { queue, maxAttempts: 1 };
    const jobs = await client.enqueueMany([
      { type: 'math.add', args: [1, 2], options },
      { type: 'math.fail', args: [], options },
    ]);
    const worker = client.worker('w1', { queues: [queue] });
    const running = worker.run(
      {
        'math.add': (job) => Number(job.args[0]) + Number(job.args[1]),
        'math.fail': () => {
          throw new RangeError('no');
        },
      },
      { ...quiet, signal: stop.signal, concurrency: 2, waitMs: 100 },
    );
    const outcomes = await Promise.all(jobs.map(({ id }) => client.jobs.wait(id)));
    stop.abort();
    await running;
    expect(outcomes).toMatchObject([
      { state: 'completed', result: 3 },
      { state: 'discarded', error: { type: 'RangeError' } },
    ]);
    expect(await all(client.workers.list())).toEqual([]);
  });

  it('makes dead letters of jobs that have no handler, where it is configured so', async () => {
    const { id } = await client.enqueue('nobody.knows', [], { queue });
    const handlers = { 'a.b': () => undefined };
    const options = { ...quiet, signal: stop.signal, unhandled: 'deadLetter' } as const;
    const running = client.worker('w1', { queues: [queue] }).run(handlers, options);
    const outcome = await client.jobs.wait(id);
    stop.abort();
    await running;
    expect(outcome).toMatchObject({ state: 'discarded', error: { code: 'handler_not_found' } });
    expect((await all(client.deadLetters.list({ queue }))).map((letter) => letter.id)).toEqual([id]);
  });

  it('has the queue heed the retry settings of its handlers, as if they were pushed', async () => {
    const [once, slowly] = await client.enqueueMany([
      { type: 'once.only', args: [], options: { queue } },
      { type: 'slow.retry', args: [], options: { queue } },
    ]);
    const boom = (): never => {
      throw new Error('no');
    };
    const handlers = defineHandlers({
      'once.only': { handler: boom, maxAttempts: 1 },
      'slow.retry': { handler: boom, retry: { initialInterval: '1h', maxInterval: '2h', jitter: false } },
    });
    const running = client.worker('w1', { queues: [queue] }).run(handlers, { ...quiet, signal: stop.signal });
    const outcome = await client.jobs.wait(once?.id as string);
    const retried = await until(async () => {
      const job = await client.jobs.get(slowly?.id as string);
      return job.state === 'retryable' && job;
    }, 'a retry');
    stop.abort();
    await running;
    expect(outcome).toMatchObject({ state: 'discarded' });
    expect(retried).toMatchObject({ retryDelayMs: 3_600_000 });
  });

  it('heeds what its handlers say about the job, as if they were pushed', async () => {
    const verdicts: Record<string, [thrown: unknown, seen: Record<string, unknown>]> = {
      'v.retry': [retryIn('1h', 'busy'), { state: 'retryable', retry_delay_ms: 3_600_000 }],
      'v.discard': [discard('gone'), { state: 'discarded', error: { reason: 'discard_code' } }],
      'v.fail': [fail('bounced'), { state: 'discarded', error: { reason: 'fail_code' } }],
      'v.dead': [deadLetter('look', { details: [1] }), { error: { reason: 'dead_letter_code', details: [1] } }],
      'v.kill': [kill('off'), { state: 'discarded', error: { reason: 'killed' } }],
      'v.poison': [new PoisonPill('never'), { error: { type: 'PoisonPill', reason: 'unrecoverable' } }],
      'v.text': ['just text', { state: 'retryable', error: { message: 'just text' } }],
      'v.circle': [undefined, { state: 'retryable', error: { type: 'UnserialisableResult' } }],
    };
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const run = (job: { type: string }) => {
      const thrown = verdicts[job.type]?.[0];
      if (thrown === undefined) return circle;
      throw thrown;
    };
    const options = { queue, retry: { maxAttempts: 3, initialInterval: '1h' as const } };
    const jobs = await client.enqueueMany(Object.keys(verdicts).map((type) => ({ type, args: [], options })));
    const running = client.worker('w1', { queues: [queue] }).run(run, { ...quiet, signal: stop.signal, waitMs: 50 });
    for (const { id, type } of jobs) {
      expect(await server.jobIn(id, ['retryable', 'discarded']), type).toMatchObject(verdicts[type]?.[1] ?? {});
    }
    stop.abort();
    await running;
  });

  it('fails the job whose result cannot be sent, and reports those that ended with it', async () => {
    let deep: unknown = 1;
    for (let level = 0; level < 150; level++) deep = [deep];
    const results: Record<string, [result: unknown, seen: Record<string, unknown>]> = {
      'r.good': ['fine', { state: 'completed', attempt: 1, result: 'fine' }],
      'r.half': [{ text: '\ud83d' }, { state: 'discarded', error: { code: 'result_not_text' } }],
      'r.deep': [deep, { state: 'discarded', error: { code: 'result_too_deep' } }],
      'r.large': ['x'.repeat(1_100_000), { state: 'discarded', error: { code: 'result_too_large' } }],
      'r.last': [1, { state: 'completed', attempt: 1, result: 1 }],
    };
    const run = (job: { type: string }) => results[job.type]?.[0];
    const jobs = await client.enqueueMany(
      Object.keys(results).map((type) => ({ type, args: [], options: { queue, maxAttempts: 3 } })),
    );
    const errors: unknown[] = [];
    const onError = (error: unknown) => errors.push(error);
    const running = client.worker('w1', { queues: [queue] }).run(run, { ...quiet, onError, signal: stop.signal });
    for (const { id, type } of jobs) {
      expect(await server.jobIn(id, ['completed', 'discarded']), type).toMatchObject(results[type]?.[1] ?? {});
    }
    stop.abort();
    await running;
    expect(errors).toEqual([]);
  });

  it('runs what was made for a handler Worker, and its functions get the same context', async () => {
    const lines: unknown[] = [];
    let seen: HandlerContext<{ greeting: string }> | undefined;
    const worker = defineHandlers<{ 'greeting.write': [string] }, { greeting: string }>(
      {
        'greeting.write': {
          timeoutMs: 30_000,
          handler: (job, ctx) => {
            seen = ctx;
            ctx.log.info('writing');
            ctx.waitUntil(Promise.resolve());
            return `${ctx.env.greeting}, ${job.args[0]}!`;
          },
        },
      },
      { log: (line) => void lines.push(line) },
    );
    const { id } = await client.enqueue('greeting.write', ['Ada'], { queue });
    const env = { greeting: 'Hello' };
    const running = client.worker('w1', { queues: [queue] }).run(worker, { env, signal: stop.signal, waitMs: 50 });
    expect(await client.jobs.wait(id)).toMatchObject({ state: 'completed', result: 'Hello, Ada!' });
    stop.abort();
    await running;
    expect(seen).toMatchObject({ job: { id }, attempt: 1, deliveryId: expect.stringContaining(id), env });
    expect(seen?.signal.aborted).toBe(false);
    expect(lines).toMatchObject([{ message: 'writing', job_id: id, type: 'greeting.write', attempt: 1 }]);
  });

  it('stops a job after its timeout', async () => {
    const retry = { maxAttempts: 2, initialInterval: '1h' as const };
    const { id } = await client.enqueue('slow.one', [], { queue, timeoutMs: 60, retry });
    const aborted = new Promise((resolve) => {
      const handler = (_job: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise(() => signal.addEventListener('abort', () => resolve(signal.reason)));
      const worker = client.worker('w1', { queues: [queue] });
      void worker.run({ 'slow.one': handler }, { ...quiet, signal: stop.signal, waitMs: 50, onError: () => undefined });
    });
    expect(await aborted).toMatchObject({ message: expect.stringContaining('60 ms') });
    expect(await server.jobIn(id, 'retryable')).toMatchObject({ error: { type: expect.stringContaining('timeout') } });
    stop.abort();
  });

  it('finishes what it has begun before it ends', async () => {
    const { id } = await client.enqueue('slow.one', [], { queue });
    const { begun, finish, handlers } = slowHandler();
    const worker = client.worker('w1', { queues: [queue] });
    const ended = worker.run(handlers, { ...quiet, signal: stop.signal, concurrency: 1 });
    await begun;
    stop.abort();
    expect(await client.jobs.result(id)).toMatchObject({ state: 'active' });
    finish('done');
    await ended;
    expect(await client.jobs.result(id)).toMatchObject({ state: 'completed', result: 'done' });
  });

  it('says that it drains, so that its waiting fetch takes nothing more', async () => {
    await client.enqueue('slow.one', [], { queue });
    const { begun, finish, handlers } = slowHandler();
    const worker = client.worker('w1', { queues: [queue] });
    const ended = worker.run(handlers, { ...quiet, signal: stop.signal, waitMs: 20_000 });
    await begun;
    stop.abort();
    const drains = async () => (await client.workers.health('w1')).state === 'draining';
    await until(drains, () => 'the worker to drain');
    const { id } = await client.enqueue('slow.one', [], { queue });
    finish('done');
    await ended;
    expect(await client.get(id)).toMatchObject({ state: 'available', attempt: 0 });
  });

  it('gives back what does not end in time', async () => {
    const { id } = await client.enqueue('slow.one', [], { queue });
    const { begun, handlers } = slowHandler();
    const worker = client.worker('w1', { queues: [queue] });
    const ended = worker.run(handlers, { ...quiet, signal: stop.signal, shutdownTimeoutMs: 20 });
    await begun;
    stop.abort();
    await ended;
    const job = await client.get(id);
    expect(job).toMatchObject({ state: 'available', attempt: 1 });
    expect(job).not.toHaveProperty('error');
    expect(await all(client.workers.list())).toEqual([]);
  });

  it('leaves types that it does not know to others, without using an attempt', async () => {
    const options = { queue, maxAttempts: 1 };
    const [unknown, known] = await client.enqueueMany([
      { type: 'x.unknown', args: [], options },
      { type: 'math.add', args: [1, 2], options },
    ]);
    const worker = client.worker('w1', { queues: [queue] });
    const running = worker.run({ 'math.add': () => 3 }, { ...quiet, signal: stop.signal, waitMs: 50 });
    expect(await client.jobs.wait(known?.id ?? '')).toMatchObject({ state: 'completed' });
    stop.abort();
    await running;
    expect(await client.get(unknown?.id ?? '')).toMatchObject({ state: 'available', attempt: 0 });
  });

  it('gives jobs back untouched that a fetch brought for nothing', async () => {
    const { id } = await client.enqueue('x.unknown', [], { queue, maxAttempts: 1 });
    const worker = client.worker('w1', { queues: [queue] });
    const [job] = await worker.fetch();
    if (!job) throw new Error('a job was enqueued');
    await worker.release(job, { attemptUsed: false });
    expect(await client.get(id)).toMatchObject({ state: 'available', attempt: 0 });
  });

  it("aborts the handler's signal when its job is cancelled, and reports nothing", async () => {
    const { id } = await client.enqueue('slow.one', [], { queue });
    const errors: unknown[] = [];
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const aborted = new Promise((resolve) => {
      const handler = (_job: unknown, { signal }: { signal: AbortSignal }) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => {
            resolve(signal.reason.message);
            reject(signal.reason);
          });
          begin();
        });
      const onError = (error: unknown): void => void errors.push(error);
      const options = { ...quiet, signal: stop.signal, heartbeatMs: 50, waitMs: 50, onError };
      void client.worker('w1', { queues: [queue] }).run({ 'slow.one': handler }, options);
    });
    await begun;
    await client.cancel(id);
    expect(await aborted).toBe('The job was cancelled.');
    stop.abort();
    expect(await client.get(id)).toMatchObject({ state: 'cancelled' });
    expect(errors).toEqual([]);
  });

  it('ends when an operator says so', async () => {
    const worker = client.worker('w1', { queues: [queue] });
    await worker.heartbeat();
    await client.workers.direct('terminate', 'w1');
    await worker.run({ 'a.b': () => undefined }, { signal: stop.signal });
  });

  it('knows the arguments of each type', () => {
    const typed = new TocsinClient<{ 'a.b': [string]; 'c.d': [number] }>({ url: 'http://localhost' });
    const worker = typed.worker('w', { queues: ['a'] });
    const run = () =>
      worker.run(
        {
          'a.b': (job) => job.args[0].toUpperCase(),
          // @ts-expect-error a number has no upper case
          'c.d': (job) => job.args[0].toUpperCase(),
        },
        { signal: stop.signal },
      );
    expect(run).toBeTypeOf('function');
  });
});
