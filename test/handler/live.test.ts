/** What runs say while they go on, in calls that stay open. */
import { describe, expect, it } from 'vitest';
import { ConflictError, defineHandlers, type HandlerContext, type Job, UnavailableError } from '../../src/handler';
import { deliverOne, post, quiet } from './deliver';
import { accept, openCall, type Reply, type Said } from './live-call';

type Run = (ctx: HandlerContext, job: Job) => unknown;

/** A Worker whose handler is `run`. */
const worker = (run: Run) => defineHandlers((job, ctx) => run(ctx, job), quiet());

/** Delivers one job in an open call. */
const live = (run: Run, reply?: (said: Said) => Reply | Promise<Reply>) =>
  openCall(worker(run), [{ type: 'test.talk', meta: { traceparent: '00-a-b-01' } }], reply);

describe('an open call', () => {
  it('in which nothing is said is answered as ever', async () => {
    const call = live(() => 'quiet');
    expect((await call.response).headers.get('Content-Type')).toBe('application/json');
    expect(await call.results).toEqual({ del_0: { delivery_id: 'del_0', status: 'completed', result: 'quiet' } });
  });

  it('carries progress, checkpoints, steps and children, each with a number of its own', async () => {
    const call = live(async (ctx) => {
      await ctx.progress(0.25, 'a quarter', { files: 1 });
      await ctx.checkpoint({ page: 2 });
      const child = await ctx.enqueue('mail.send', ['ada'], { queue: 'mail', delay: '5s', meta: { own: 1 } });
      return [await ctx.step('charge', () => ({ at: new Date(0) })), child.id];
    });
    expect((await call.response).headers.get('Content-Type')).toBe('application/x-ndjson');
    const meta = { own: 1, parent_id: 'job-0', traceparent: '00-a-b-01' };
    const options = { queue: 'mail', delay_until: '5s' };
    // A result comes back as JSON does, as it will in a later run.
    const result = [{ at: '1970-01-01T00:00:00.000Z' }, 'child-0'];
    const { del_0 } = await call.results;
    expect(call.said).toEqual([
      { delivery_id: 'del_0', call: 1, progress: { progress: 0.25, message: 'a quarter', data: { files: 1 } } },
      { delivery_id: 'del_0', call: 2, checkpoint: { page: 2 } },
      { delivery_id: 'del_0', call: 3, enqueue: [{ type: 'mail.send', args: ['ada'], options, meta }] },
      { delivery_id: 'del_0', call: 4, step: { name: 'charge', result: { at: '1970-01-01T00:00:00.000Z' } } },
      { delivery_id: 'del_0', status: 'completed', result },
    ]);
    expect(del_0?.result).toEqual(result);
  });

  it('recalls a large result when its step is reached, once, and does not perform the step', async () => {
    let did = 0;
    const call = openCall(
      worker((ctx) => ctx.step('big', () => ++did)),
      [{ type: 'test.talk', steps: { big: { result_bytes: 70_000 }, unread: { result_bytes: 70_000 } } }],
      ({ recall }) => (recall === undefined ? {} : { value: { result: `${recall} one`, seq: 1 } }),
    );
    expect((await call.results).del_0).toMatchObject({ status: 'completed', result: 'big one' });
    expect(call.said).toHaveLength(2);
    expect(call.said[0]).toEqual({ delivery_id: 'del_0', call: 1, recall: 'big' });
    expect(did).toBe(0);
  });

  it('asks for a signal URL once, and records it as a step', async () => {
    const url = 'https://jobs.example/ojs/v1/signal/x';
    const options = { choices: ['yes', 'no'], title: 'Well?', expires: '7d' } as const;
    const run: Run = (ctx) => ctx.signalUrl('approved', options);
    const call = live(run, ({ signal_url }) => (signal_url ? { value: url } : {}));
    expect((await call.results).del_0?.result).toBe(url);
    const asked = { signal: 'approved', choices: ['yes', 'no'], title: 'Well?', expires_in: 604_800_000 };
    expect(call.said.slice(0, 2)).toEqual([
      { delivery_id: 'del_0', call: 1, signal_url: asked },
      { delivery_id: 'del_0', call: 2, step: { name: 'url:approved', result: url } },
    ]);
    const steps = { 'url:approved': { result: url } };
    const later = openCall(worker(run), [{ type: 'test.talk', steps }]);
    expect((await later.results).del_0?.result).toBe(url);
    expect(later.said).toHaveLength(1);
  });

  it('lets a run continue only once what it said is durable', async () => {
    const order: string[] = [];
    const call = live(
      async (ctx) => {
        await ctx.step('first', () => order.push('did first'));
        order.push('went on');
      },
      async () => {
        await Promise.resolve();
        order.push('durable');
        return {};
      },
    );
    await call.results;
    expect(order).toEqual(['did first', 'durable', 'went on']);
  });

  it('brings the outcome of each job as it comes, while others continue', async () => {
    let finish: () => void = () => undefined;
    const slow = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const handlers = {
      'test.slow': async (_job: Job, ctx: HandlerContext) => {
        await ctx.progress(0.5);
        await slow;
      },
      'test.fast': async () => 'fast',
    };
    const call = openCall(defineHandlers(handlers, quiet()), [{ type: 'test.slow' }, { type: 'test.fast' }]);
    await call.response;
    finish();
    const results = await call.results;
    expect(results).toMatchObject({ del_0: { status: 'completed' }, del_1: { status: 'completed', result: 'fast' } });
    expect(call.said.map(({ delivery_id, status }) => [delivery_id, status])).toEqual([
      ['del_0', undefined],
      ['del_1', 'completed'],
      ['del_0', 'completed'],
    ]);
  });

  it('still cancels a run that has spoken', async () => {
    const call = live(
      async (ctx) => {
        await ctx.progress(0.1);
        await new Promise(() => undefined);
      },
      (said) => {
        call.say({ cancel: 'del_0' });
        return accept(said);
      },
    );
    expect((await call.results).del_0).toMatchObject({ status: 'failed', error: { code: 'cancelled' } });
  });

  it('keeps what a run logs with its outcome, within bounds', async () => {
    const call = live((ctx) => {
      for (let line = 0; line < 150; line++) ctx.log.info(`line ${line}`, { line });
      ctx.log.warn('no JSON', { big: 1n });
      ctx.log.error('x'.repeat(10_000), { large: 'y'.repeat(10_000) });
    });
    const log = (await call.results).del_0?.log ?? [];
    expect(log).toHaveLength(100);
    expect(log[0]).toMatchObject({ level: 'info', message: 'line 52', fields: { line: 52 }, at: expect.any(Number) });
    expect(log.at(-2)).toMatchObject({ level: 'warn', fields: { truncated: true, reason: 'not JSON' } });
    expect(log.at(-1)?.message).toHaveLength(4096);
    expect(log.at(-1)?.fields).toEqual({ truncated: true, original_length: 10_012 });
    expect(new TextEncoder().encode(JSON.stringify(log)).length).toBeLessThan(33_000);
  });
});

describe('a refusal', () => {
  it('is thrown where it belongs, as the error of its kind', async () => {
    let thrown: unknown;
    const call = live(
      async (ctx) => {
        const other = ctx.progress(0.5);
        thrown = await ctx.checkpoint(1).catch((error) => error);
        await other;
        return 'went on';
      },
      ({ checkpoint }) => (checkpoint === undefined ? {} : { error: { code: 'conflict', message: 'over' } }),
    );
    expect((await call.results).del_0).toMatchObject({ status: 'completed', result: 'went on' });
    expect(thrown).toBeInstanceOf(ConflictError);
    expect(thrown).toMatchObject({ code: 'conflict', message: 'over', retryable: false });
  });

  it('fails the attempt when the handler does not catch it', async () => {
    const call = live(
      (ctx) => ctx.step('large', () => 'x'),
      () => ({ error: { code: 'payload_too_large', message: 'too much' } }),
    );
    expect((await call.results).del_0?.error).toMatchObject({ type: 'InvalidJobError', message: 'too much' });
  });

  it('is what a run gets when the queue is gone', async () => {
    let thrown: unknown;
    const call = live(
      async (ctx) => {
        thrown = await ctx.checkpoint(1).catch((error) => error);
        thrown = [thrown, await ctx.checkpoint(2).catch((error) => error)];
      },
      () => {
        call.hangUp();
        return undefined;
      },
    );
    await call.results;
    expect(thrown).toEqual([expect.any(UnavailableError), expect.any(UnavailableError)]);
  });

  it.each<[string, Run, RegExp]>([
    ['progress that is no number', (ctx) => ctx.progress(Number.NaN), /NaN is not a number/],
    ['progress in percent', (ctx) => ctx.progress(50), /50 is not a number from 0 to 1; divide a percentage by 100/],
    ['a state that is not JSON', (ctx) => ctx.checkpoint({ big: 1n }), /the state is not JSON/],
    ['no state', (ctx) => ctx.checkpoint(undefined), /use null/],
    ['a URL without an end', (ctx) => ctx.signalUrl('x', {} as never), /ctx.signalUrl: expires.* is not a duration/],
    ['a URL with nothing', (ctx) => ctx.signalUrl('x', undefined as never), /ctx.signalUrl: expires/],
    ['a URL with too long a name', (ctx) => ctx.signalUrl('x'.repeat(125), { expires: '1d' }), /1 to 124 characters/],
    ['a child that is not JSON', (ctx) => ctx.enqueue('a.b', [() => 1, 1n]), /the job is not JSON/],
  ])('meets %s before anything is said', async (_, run, message) => {
    const call = live(run);
    expect((await call.results).del_0?.error?.message).toMatch(message);
    expect(call.said).toHaveLength(1);
  });
});

describe('a call that is closed', () => {
  it.each<[string, Run]>([
    ['a step', (ctx) => ctx.step('a', () => expect.unreachable())],
    ['a child', (ctx) => ctx.enqueue('a.b', [])],
    ['a signal URL', (ctx) => ctx.signalUrl('approved', { expires: '1d' })],
    ['a checkpoint', (ctx) => ctx.checkpoint(1)],
    ['a checkpoint that nobody awaits', (ctx) => void ctx.checkpoint(1)],
  ])('is given back when the run needs it to be open: %s', async (_, run) => {
    const talk: Run = async (ctx, job) => {
      ctx.log.info('begun');
      return await run(ctx, job);
    };
    expect(await deliverOne(worker(talk), {}, { type: 'test.talk' })).toEqual({
      delivery_id: 'del_0',
      status: 'again',
    });
  });

  it('carries progress, log lines and sleeps with the outcome', async () => {
    const run: Run = async (ctx) => {
      await ctx.progress(0.5);
      await ctx.progress(1 + Number.EPSILON);
      ctx.log.info('asleep');
      await ctx.sleep('night', '8h');
    };
    const started_at = '2026-01-01T00:00:00.000Z';
    const until = Date.parse('2026-01-01T08:00:00.000Z');
    const result = await deliverOne(worker(run), {}, { type: 'test.talk', started_at });
    expect(result).toMatchObject({ status: 'snoozed', progress: { progress: 1 }, log: [{ message: 'asleep' }] });
    expect((result.until ?? 0) - until).toBeLessThan(1000);
    expect(result.until).toBeGreaterThanOrEqual(until);
    expect(result.steps).toEqual({ night: { until: result.until } });
  });
});

describe('a delivery that stands alone', () => {
  const single = async (run: Run, job: object = {}): Promise<Said> => {
    const body = { job: { id: '1', type: 'test.talk', args: [], attempt: 1, ...job }, delivery_id: 'del_1' };
    return await (await worker(run).fetch(post(body), {})).json();
  };

  it('ends after each step, and continues after it', async () => {
    const done: string[] = [];
    const run: Run = async (ctx) => {
      const both = [ctx.step('a', () => done.push('a')), ctx.step('b', async () => done.push('b'))];
      const [a, b] = await Promise.all(both);
      return [a, b, await ctx.step('c', () => done.push('c'))];
    };
    const first = await single(run);
    expect(first).toEqual({ status: 'snoozed', in: 0, steps: { a: { result: 1 }, b: { result: 2 } } });
    const second = await single(run, { steps: first.steps });
    expect(second).toEqual({ status: 'snoozed', in: 0, steps: { c: { result: 3 } } });
    const third = await single(run, { steps: { ...first.steps, ...second.steps } });
    expect(third).toEqual({ status: 'completed', result: [1, 2, 3] });
    expect(done).toEqual(['a', 'b', 'c']);
  });

  it('cannot ask for a signal URL, but gets the one on record', async () => {
    const run: Run = (ctx) => ctx.signalUrl('approved', { expires: '1d' });
    const { error } = (await single(run)) as { error: { type: string; message: string } };
    expect(error).toMatchObject({ type: 'TypeError', message: expect.stringContaining('ctx.signalUrl') });
    const known = await single(run, { steps: { 'url:approved': { result: 'https://x.example' } } });
    expect(known).toEqual({ status: 'completed', result: 'https://x.example' });
  });

  it('brings checkpoints and children with its outcome', async () => {
    const ids: string[] = [];
    const run: Run = async (ctx) => {
      await ctx.checkpoint({ page: 1 });
      ids.push((await ctx.enqueue('mail.send', ['ada'])).id);
      throw new Error('later');
    };
    expect(await single(run)).toMatchObject({
      status: 'failed',
      checkpoint: { page: 1 },
      enqueue: [{ id: ids[0], type: 'mail.send', args: ['ada'], meta: { parent_id: '1' } }],
    });
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}$/);
  });
});
