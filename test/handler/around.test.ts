/** Middleware around handlers, and hooks after failures. */
import { describe, expect, it } from 'vitest';
import {
  deadLetter,
  defineHandlers,
  discard,
  fail,
  type HandlerContext,
  kill,
  type LogLine,
  retryIn,
  snooze,
  UnrecoverableError,
  type WorkerOptions,
} from '../../src/handler';
import { deliverOne, quiet, type TestJob } from './deliver';
import { openCall } from './live-call';

describe('middleware', () => {
  it('runs around every handler, the first outermost, and may change the result', async () => {
    const order: string[] = [];
    const use: WorkerOptions['use'] = ['outer', 'inner'].map((name) => async (job, ctx, next) => {
      order.push(`${name} before ${job.type} ${ctx.attempt}`);
      const result = await next();
      order.push(`${name} after ${result}`);
      return `${name}(${result})`;
    });
    const worker = defineHandlers({ 'a.b': () => 'ran', '*': async () => 'any' }, { ...quiet(), use });
    expect((await deliverOne(worker, {}, { type: 'a.b' })).result).toBe('outer(inner(ran))');
    expect(order).toEqual(['outer before a.b 1', 'inner before a.b 1', 'inner after ran', 'outer after inner(ran)']);
    expect((await deliverOne(worker, {}, { type: 'c.d' })).result).toBe('outer(inner(any))');
  });

  it('may fail a job without running it, and sees what its handler throws', async () => {
    const seen: unknown[] = [];
    const use: WorkerOptions['use'] = [
      (_job, _ctx, next) =>
        next().catch((error) => {
          seen.push(error.message);
          throw error;
        }),
      (job, _ctx, next) => {
        if (job.args[0] === 'closed') throw discard('closed');
        return next();
      },
    ];
    const worker = defineHandlers(() => Promise.reject(new Error('own')), { ...quiet(), use });
    expect((await deliverOne(worker, {}, { type: 'a', args: ['closed'] })).error?.code).toBe('DISCARD');
    expect((await deliverOne(worker, {}, { type: 'a' })).error?.message).toBe('own');
    expect(seen).toEqual(['closed', 'own']);
  });

  it('that calls next twice fails the attempt, and the handler runs once', async () => {
    let runs = 0;
    const use: WorkerOptions['use'] = [(_job, _ctx, next) => next().then(next)];
    const result = await deliverOne(
      defineHandlers(() => ++runs, { ...quiet(), use }),
      {},
      { type: 'a' },
    );
    expect(result.error?.message).toMatch(/next\(\) was called twice/);
    expect(runs).toBe(1);
  });

  it.each<[string, object]>([
    ['use', { use: () => 1 }],
    ['use', { use: [1] }],
    ['onFailed', { onFailed: 'log' }],
    ['onDiscarded', { onDiscarded: {} }],
  ])('and hooks that are not functions are rejected: %s', (name, options) => {
    expect(() => defineHandlers(() => 1, options)).toThrow(new RegExp(`option ${name}`));
  });
});

describe('hooks', () => {
  /** The hooks that were told of a run that throws this. */
  async function told(thrown: unknown, job: Partial<TestJob> = {}): Promise<string[]> {
    const calls: string[] = [];
    const hook = (name: string) => (hooked: { id: string }, ctx: HandlerContext, error: unknown) => {
      expect([hooked.id, ctx.attempt, error]).toEqual(['job-0', job.attempt ?? 1, thrown]);
      calls.push(name);
    };
    const options = { ...quiet(), onFailed: hook('failed'), onDiscarded: hook('discarded') };
    const worker = defineHandlers(() => Promise.reject(thrown), options);
    await deliverOne(worker, {}, { type: 'a', max_attempts: 3, ...job });
    return calls;
  }

  it.each<[string, unknown, Partial<TestJob>]>([
    ['an error', new Error('x'), {}],
    ['a text', 'x', { attempt: 2 }],
    ['a retry', retryIn('1h'), {}],
  ])('hear of %s while attempts are left', async (_, thrown, job) => {
    expect(await told(thrown, job)).toEqual(['failed']);
  });

  it.each<[string, unknown, Partial<TestJob>]>([
    ['discard', discard('x'), {}],
    ['fail', fail('x'), {}],
    ['a dead letter', deadLetter('x'), {}],
    ['kill', kill('x'), {}],
    ['an error that is unrecoverable', new UnrecoverableError('x'), {}],
    ['an error that is not retried', new RangeError('x'), { retry: { non_retryable_errors: ['RangeError'] } }],
    ['the last attempt', new Error('x'), { attempt: 3 }],
    ['a retry in the last attempt', retryIn('1h'), { attempt: 3 }],
  ])('hear that the job ends with %s', async (_, thrown, job) => {
    expect(await told(thrown, job)).toEqual(['failed', 'discarded']);
  });

  it('hear nothing of a run that was snoozed', async () => {
    expect(await told(snooze('1h'))).toEqual([]);
  });

  it('that throw change nothing, and are logged', async () => {
    const lines: LogLine[] = [];
    const boom = () => {
      throw new Error('hook');
    };
    const options = { ...quiet(lines), onFailed: boom, onDiscarded: async () => boom() };
    const worker = defineHandlers(() => Promise.reject(discard('gone')), options);
    expect((await deliverOne(worker, {}, { type: 'a' })).error).toMatchObject({ code: 'DISCARD', message: 'gone' });
    expect(lines.filter(({ level }) => level === 'error').map(({ message }) => message)).toEqual([
      'onFailed threw',
      'onDiscarded threw',
    ]);
  });

  it('that hang are not waited for beyond the time of the job', async () => {
    const options = { ...quiet(), onFailed: () => new Promise(() => undefined) };
    const worker = defineHandlers(() => Promise.reject(new Error('x')), options);
    expect((await deliverOne(worker, {}, { type: 'a', timeout_ms: 1 })).error?.message).toBe('x');
  });

  it('may speak before the queue is notified of the failure', async () => {
    const onDiscarded = async (job: { id: string }, ctx: HandlerContext) => {
      await ctx.enqueue('refund.pay', [job.id]);
    };
    const worker = defineHandlers({ 'a.b': () => Promise.reject(discard('x')) }, { ...quiet(), onDiscarded });
    const call = openCall(worker, [{ type: 'a.b' }]);
    await call.results;
    expect(call.said).toMatchObject([
      { enqueue: [{ type: 'refund.pay', args: ['job-0'], meta: { parent_id: 'job-0' } }] },
      { status: 'failed', error: { code: 'DISCARD' } },
    ]);
  });
});
