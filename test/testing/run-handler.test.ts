/** Handlers on their own, as a test of theirs runs them. */
import { describe, expect, it } from 'vitest';
import { defineHandlers, discard, type Job, retryIn, snooze } from '../../src/handler';
import { runHandler, runToEnd } from '../../src/testing';

const DAY = 86_400_000;
const NOW = Date.UTC(2030, 0, 1);

const handlers = defineHandlers(
  {
    'email.send': async (job: Job<[{ to: string }]>, ctx) => {
      const [{ to }] = job.args;
      if (to === '') throw discard('the address is empty');
      ctx.log.info('sending', { to });
      await ctx.progress(0.5, 'half');
      await ctx.progress(1);
      await ctx.checkpoint({ sent: to });
      await ctx.enqueue('audit.write', [to], { queue: 'audit' });
      return { accepted: to, at: new Date(0) };
    },
    'clock.read': (job, ctx) => ({ attempt: ctx.attempt, of: job.maxAttempts, meta: job.meta, env: ctx.env }),
    'file.copy': (job) => job.checkpoint?.state ?? 'from the start',
    'order.ship': async (_job: Job<[string]>, ctx) => {
      const charge = await ctx.step('charge', () => 7);
      await ctx.sleep('pause', '3d');
      const { by } = await ctx.waitFor<{ by: string }>('approved', { timeout: '7d' });
      ctx.log.info('approved');
      return { charge, by };
    },
    'refund.approve': async (_job, ctx) => {
      const url = await ctx.signalUrl('approved', { choices: ['yes', 'no'], expires: '7d' });
      return { url, ...(await ctx.waitFor<{ choice: string }>('approved')) };
    },
    'story.tell': async (_job, ctx) => {
      await ctx.step('write', () => ctx.pipe('story', new Blob(['once ', 'upon']).stream()));
      await ctx.stream('log').write({ run: 1 });
      await ctx.sleep('pause', '1h');
      await ctx.stream('log').write({ run: 2 });
    },
    'busy.wait': () => {
      throw snooze('10m', 'still busy');
    },
    'net.fail': {
      maxAttempts: 2,
      handler: () => {
        throw new RangeError('out of reach');
      },
    },
    'net.later': () => {
      throw retryIn('30s');
    },
    'hang.on': (_job, { signal }) =>
      new Promise((_, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
  },
  {
    use: [
      async (_job, ctx, next) => {
        ctx.log.debug('begins');
        return await next();
      },
    ],
  },
);

describe('one run of a handler', () => {
  it('gives the result as JSON, and all that was said', async () => {
    const run = await runHandler(handlers, 'email.send', [{ to: 'ada@example.com' }], { now: NOW });
    expect(run).toMatchObject({
      status: 'completed',
      isLast: true,
      result: { accepted: 'ada@example.com', at: '1970-01-01T00:00:00.000Z' },
      error: undefined,
      log: [{ level: 'debug' }, { level: 'info', message: 'sending', fields: { to: 'ada@example.com' } }],
      progress: [{ progress: 0.5, message: 'half' }, { progress: 1 }],
      checkpoint: { sent: 'ada@example.com' },
    });
    expect(run.enqueued).toMatchObject([
      {
        type: 'audit.write',
        args: ['ada@example.com'],
        options: { queue: 'audit' },
        meta: { parent_id: expect.any(String) },
      },
    ]);
  });

  it('has the jobs that it enqueues with the options that it gave them', async () => {
    const given = { queue: 'mail', priority: 3, tags: ['vip'], timeoutMs: 900, version: 2 };
    const plan = defineHandlers({ 'mail.plan': (_job, ctx) => ctx.enqueue('mail.send', ['ada'], given) });
    const { result } = await runHandler(plan, 'mail.plan', [], { now: NOW });
    expect(result).toMatchObject(given);
  });

  it('has the attempt, meta, environment and checkpoint that the test gives', async () => {
    const given = { attempt: 2, maxAttempts: 9, meta: { tenant: 'acme' }, env: { KEY: 'k' } };
    const { result } = await runHandler(handlers, 'clock.read', [], given);
    expect(result).toEqual({ attempt: 2, of: 9, meta: { tenant: 'acme' }, env: { KEY: 'k' } });
    expect(await runHandler(handlers, 'clock.read', [])).toMatchObject({
      result: { attempt: 1, of: 3, meta: {}, env: {} },
    });
    expect(await runHandler(handlers, 'file.copy', [])).toMatchObject({
      result: 'from the start',
      checkpoint: undefined,
    });
    const later = await runHandler(handlers, 'file.copy', [], { checkpoint: { page: 3 } });
    expect(later).toMatchObject({ result: { page: 3 }, checkpoint: { page: 3 } });
  });

  it('says what the queue is notified of a failure, and whether it is tried again', async () => {
    const error = { code: 'handler_error', type: 'RangeError', message: 'out of reach' };
    expect(await runHandler(handlers, 'net.fail', [])).toMatchObject({ status: 'failed', error, isLast: false });
    expect(await runHandler(handlers, 'net.fail', [], { attempt: 2 })).toMatchObject({ error, isLast: true });
    expect(await runHandler(handlers, 'email.send', [{ to: '' }])).toMatchObject({
      error: { code: 'DISCARD' },
      isLast: true,
    });
    expect(await runHandler(handlers, 'net.later', [])).toMatchObject({ error: { retryIn: 30_000 }, isLast: false });
  });

  it('ends at its time limit, and hears of the stop of its worker', async () => {
    expect(await runHandler(handlers, 'hang.on', [], { timeoutMs: 5 })).toMatchObject({ error: { code: 'timeout' } });
    const signal = AbortSignal.abort(new Error('shutting down'));
    const stopped = await runHandler(handlers, 'hang.on', [], { signal });
    expect(stopped).toMatchObject({ error: { message: 'shutting down' } });
  });

  it('names the known types for an unknown one', async () => {
    // @ts-expect-error the handlers have no such type
    const call = runHandler(handlers, 'email.sent', []);
    await expect(call).rejects.toThrow('there is no handler for "email.sent"; there are email.send, clock.read');
    // @ts-expect-error an email has a recipient
    const missing = await runHandler(handlers, 'email.send', [{}]);
    expect(missing.status).toBe('completed');
  });

  it('takes handlers as they are, or one function', async () => {
    expect(
      await runHandler({ 'math.add': (job: Job<[number, number]>) => job.args[0] + job.args[1] }, 'math.add', [1, 2]),
    ).toMatchObject({ result: 3 });
    expect(await runHandler((job: Job) => job.type, 'any.thing', [])).toMatchObject({ result: 'any.thing' });
  });
});

describe('output streams', () => {
  it('are what the last execution of their writers wrote, over all runs', async () => {
    const job = await runToEnd(handlers, 'story.tell', []);
    expect(job.runs.map(({ streams }) => streams)).toEqual([
      { story: ['once upon'], log: [{ run: 1 }] },
      { log: [{ run: 1 }, { run: 2 }] },
    ]);
  });
});

describe('a durable handler', () => {
  it('gets a signal URL that stays the same', async () => {
    const job = await runToEnd(handlers, 'refund.approve', [], { signals: { approved: { choice: 'yes' } } });
    const url = 'https://tocsin.test/ojs/v1/signal/approved';
    expect(job).toMatchObject({ status: 'completed', result: { url, choice: 'yes' } });
    expect(job.steps).toMatchObject({ 'url:approved': { result: url } });
  });

  it('stops at each sleep and signal, and continues with what was recorded', async () => {
    const first = await runHandler(handlers, 'order.ship', ['A17'], { now: NOW });
    expect(first).toMatchObject({ status: 'snoozed', isLast: false, wakes: { at: NOW + 3 * DAY } });
    expect(first.steps).toEqual({ charge: { result: 7 }, pause: { until: NOW + 3 * DAY } });
    const early = await runHandler(handlers, 'order.ship', ['A17'], { now: NOW + DAY, steps: first.steps });
    expect(early.wakes).toEqual({ at: NOW + 3 * DAY });
    const second = await runHandler(handlers, 'order.ship', ['A17'], { now: NOW + 3 * DAY, steps: first.steps });
    expect(second.wakes).toEqual({ at: NOW + 10 * DAY, signal: 'approved' });
    const signals = { approved: { by: 'Ada' } };
    const third = await runHandler(handlers, 'order.ship', ['A17'], {
      now: NOW + 4 * DAY,
      steps: second.steps,
      signals,
    });
    expect(third).toMatchObject({ status: 'completed', result: { charge: 7, by: 'Ada' } });
  });

  it('runs to its end at once', async () => {
    const job = await runToEnd(handlers, 'order.ship', ['A17'], { now: NOW, signals: { approved: { by: 'Ada' } } });
    expect(job).toMatchObject({ status: 'completed', result: { charge: 7, by: 'Ada' }, sleptMs: 3 * DAY });
    expect(job.runs.map(({ status }) => status)).toEqual(['snoozed', 'completed']);
    expect(job.log.map(({ message }) => message)).toEqual(['begins', 'begins', 'approved']);
  });

  it('waits in vain for a signal that is never sent', async () => {
    const job = await runToEnd(handlers, 'order.ship', ['A17'], { now: NOW });
    expect(job).toMatchObject({
      status: 'failed',
      isLast: true,
      sleptMs: 10 * DAY,
      steps: { approved: { timed_out: true } },
    });
    expect(job.error).toMatchObject({ type: 'SignalTimeoutError' });
  });

  it('is said to have no end when it has none', async () => {
    expect(await runHandler(handlers, 'busy.wait', [], { now: NOW })).toMatchObject({
      status: 'snoozed',
      wakes: { at: NOW + 600_000 },
    });
    await expect(runToEnd(handlers, 'busy.wait', [])).rejects.toThrow('"busy.wait" did not end within 1000 runs');
  });
});
