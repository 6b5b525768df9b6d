/** What the handlers of pulled jobs say while they run, against a queue that answers from a script. */
import { describe, expect, it, vi } from 'vitest';
import { ConflictError } from '../../src/client';
import { type HandlerContext, type Job, snooze } from '../../src/handler';
import { errorAnswer } from './fake-queue';
import { job, jobsInTurn, startWorker, stopOfEach } from './scripted-worker';

const stop = stopOfEach();

describe('what a handler says while it runs', () => {
  const speak = (run: (ctx: HandlerContext, job: Job) => unknown) => ({
    'a.b': (own: Job, ctx: HandlerContext) => run(ctx, own),
  });
  const noted = (): string => '2026-01-01T00:00:00.000Z';

  it('is sent as requests that name the attempt', async () => {
    const handlers = speak(async (ctx) => {
      await ctx.progress(0.5, 'half', { files: 1 });
      await ctx.checkpoint({ page: 2 });
      const child = await ctx.enqueue('mail.send', ['ada'], { queue: 'mail' });
      return [child.id, await ctx.step('charge card', () => 7)];
    });
    const answers = {
      fetch: jobsInTurn([job('1', { meta: { traceparent: '00-a-b-01' } })]),
      progress: () => ({ job_id: '1' }),
      checkpoint: () => ({ checkpoint: { state: {}, sequence: 1, created_at: noted() } }),
      jobs: () => ({ job: { id: 'child' } }),
      'charge%20card': () => ({ job_id: '1', name: 'charge card', recorded: true }),
    };
    const { sent, errors } = startWorker(stop.signal, answers, handlers);
    await vi.advanceTimersByTimeAsync(0);
    const named = { attempt: 1, worker_id: 'w' };
    expect(sent('progress')).toEqual([{ ...named, progress: 0.5, message: 'half', data: { files: 1 } }]);
    expect(sent('checkpoint')).toEqual([{ ...named, state: { page: 2 } }]);
    expect(sent('charge%20card')).toEqual([{ ...named, result: 7 }]);
    const meta = { parent_id: '1', traceparent: '00-a-b-01' };
    expect(sent('jobs')).toEqual([{ type: 'mail.send', args: ['ada'], meta, options: { queue: 'mail' } }]);
    expect(sent('ack')).toMatchObject([{ result: ['child', 7] }]);
    expect(errors).toEqual([]);
  });

  it('in its log is sent after a while, and the rest with the report', async () => {
    let finish: (value: unknown) => void = () => undefined;
    const handlers = speak(async (ctx) => {
      ctx.log.info('begun', { n: 1 });
      await new Promise((resolve) => (finish = resolve));
      ctx.log.warn('done');
    });
    const { sent } = startWorker(stop.signal, { fetch: jobsInTurn([job('1')]) }, handlers);
    await vi.advanceTimersByTimeAsync(4_999);
    expect(sent('log')).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    const begun = { level: 'info', message: 'begun', fields: { n: 1 }, at: expect.any(Number) };
    expect(sent('log')).toMatchObject([{ lines: [begun], attempt: 1 }]);
    finish('');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(sent('ack')).toMatchObject([{ log: [{ level: 'warn', message: 'done' }] }]);
    expect(sent('log')).toHaveLength(1);
  });

  it('may end the run until later, which uses no attempt', async () => {
    const handlers = speak(async (ctx, { id }) => {
      if (id === '1') throw snooze('10m', 'not ready');
      await (id === '2' ? ctx.sleep('night', '8h') : ctx.waitFor('approved', { timeout: '1d' }));
    });
    const started_at = noted();
    const batch = ['1', '2', '3'].map((id) => job(id, { started_at }));
    const { sent, errors } = startWorker(stop.signal, { fetch: jobsInTurn(batch) }, handlers);
    // A run that waits ends a turn of the event loop later, and its report is gathered.
    await vi.advanceTimersByTimeAsync(100);
    const back = { requeue: true, attempt_used: false };
    const [night, day] = [8, 24].map((hours) => Date.parse(started_at) + hours * 3_600_000);
    const byJob = sent('nack').sort((one, other) => (String(one?.job_id) < String(other?.job_id) ? -1 : 1));
    expect(byJob).toMatchObject([
      { ...back, job_id: '1', snooze: { in: 600_000 }, log: [{ message: 'not ready' }] },
      { ...back, job_id: '2', snooze: { until: night, steps: { night: { until: night } } } },
      { ...back, job_id: '3', snooze: { until: day, signal: 'approved', steps: { approved: { until: day } } } },
    ]);
    expect(errors).toEqual([]);
  });

  it('was said in earlier runs, and is found in the job', async () => {
    const steps = { first: { result: 1 }, approved: { signal: { payload: { by: 'ada' }, at: 1 } }, gone: { until: 5 } };
    const handlers = speak(async (ctx) => {
      const first = await ctx.step('first', () => expect.unreachable());
      const approved = await ctx.waitFor('approved');
      return [first, approved, await ctx.waitFor('gone').catch((error) => error.name)];
    });
    const gone = () => ({ job_id: '1', name: 'gone', recorded: true });
    const { sent } = startWorker(stop.signal, { fetch: jobsInTurn([job('1', { steps })]), gone }, handlers);
    await vi.advanceTimersByTimeAsync(10);
    expect(sent('gone')).toMatchObject([{ timed_out: true }]);
    expect(sent('ack')).toMatchObject([{ result: [1, { by: 'ada' }, 'SignalTimeoutError'] }]);
  });

  it('is answered with the news that the job was cancelled', async () => {
    const reasons: string[] = [];
    const handlers = speak(async (ctx) => {
      await ctx.progress(0.5);
      reasons.push(ctx.signal.reason?.name);
    });
    const progress = () => ({ job_id: '1', cancelled: true });
    const { sent } = startWorker(stop.signal, { fetch: jobsInTurn([job('1')]), progress }, handlers);
    await vi.advanceTimersByTimeAsync(0);
    expect([reasons, sent('ack')]).toEqual([['CancelledError'], []]);
  });

  it('is refused when the attempt is over', async () => {
    const refused: unknown[] = [];
    const handlers = speak(async (ctx) => {
      refused.push(await ctx.checkpoint(1).catch((error) => error));
    });
    const checkpoint = () => errorAnswer(409, 'conflict');
    startWorker(stop.signal, { fetch: jobsInTurn([job('1')]), checkpoint }, handlers);
    await vi.advanceTimersByTimeAsync(0);
    expect(refused).toEqual([expect.any(ConflictError)]);
  });
});
