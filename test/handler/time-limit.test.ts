/** The time limit of a handler that never lets the event loop turn, and many jobs at once. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineHandlers, type HandlerContext } from '../../src/handler';
import { deliver, quiet } from './deliver';
import { openCall } from './live-call';

describe('the time limit of a handler that starves every timer', () => {
  // A handler that outlives its test takes the processor from all other files, for ever where one of them stops the clock.
  let isOver = false;
  beforeEach(() => {
    isOver = false;
  });
  afterEach(() => {
    isOver = true;
  });

  /** Calls `ctx` again and again, whatever that throws; each call takes some time. */
  const loop = (call: (ctx: HandlerContext) => unknown) => async (_: unknown, ctx: HandlerContext) => {
    while (!isOver) {
      const until = performance.now() + 1;
      while (performance.now() < until && !isOver);
      try {
        await call(ctx);
      } catch {
        // As a careless handler does.
      }
      if (ctx.signal.aborted && call.length === 0) return 'aborted';
    }
    return 'never stopped';
  };

  it.each<[string, (ctx: HandlerContext) => unknown]>([
    ['progress', (ctx) => ctx.progress(0.5)],
    ['a step that it has done', (ctx) => ctx.step('done', () => 1)],
    ['a sleep that is over', (ctx) => ctx.sleep('over', 0)],
    ['no call but its signal', () => undefined],
  ])('is kept in a loop over %s', async (_, call) => {
    const worker = defineHandlers({ 'a.loop': loop(call), 'a.b': () => 'fine' }, quiet());
    const jobs = [
      { type: 'a.loop', timeout_ms: 30, steps: { done: { result: 1 }, over: { until: 1 } } },
      { type: 'a.b' },
    ];
    const { del_0, del_1 } = await openCall(worker, jobs).results;
    expect(del_0).toMatchObject({ status: 'failed', error: { code: 'timeout' } });
    expect(del_1).toMatchObject({ status: 'completed', result: 'fine' });
  });

  it('throws the same error from the call, once', async () => {
    const thrown: unknown[] = [];
    const worker = defineHandlers(async (_, ctx: HandlerContext) => {
      const until = Date.now() + 20;
      while (Date.now() < until);
      thrown.push(await ctx.progress(1).catch((error: Error) => error.message), ctx.signal.reason);
    }, quiet());
    await openCall(worker, [{ type: 'a.b', timeout_ms: 10 }]).results;
    const message = 'The job did not finish within 10 ms.';
    await expect.poll(() => thrown).toEqual([message, expect.objectContaining({ message })]);
  });
});

describe('ctx.enqueueMany', () => {
  const jobs = (count: number, args: unknown[] = []) => Array.from({ length: count }, () => ({ type: 'c.d', args }));

  it('enqueues all in one call, each a child of its job', async () => {
    const worker = defineHandlers(
      { 'a.b': async (_: unknown, ctx: HandlerContext) => (await ctx.enqueueMany(jobs(3))).map(({ id }) => id) },
      quiet(),
    );
    const call = openCall(worker, [{ type: 'a.b' }]);
    expect((await call.results).del_0).toMatchObject({ result: ['child-0', 'child-1', 'child-2'] });
    expect(call.said.filter(({ enqueue }) => enqueue)).toHaveLength(1);
    expect(call.said[0]?.enqueue).toEqual(
      Array(3).fill({ type: 'c.d', args: [], meta: { parent_id: 'job-0' }, options: {} }),
    );
  });

  it('enqueues them with the answer where there is no open call', async () => {
    const handler = async (_: unknown, ctx: HandlerContext) => [
      await ctx.enqueueMany([]),
      (await ctx.enqueueMany([...jobs(1), { type: 'e.f', args: [1], options: { queue: 'mail' } }])).map(
        ({ queue }) => queue,
      ),
    ];
    const worker = defineHandlers(handler, quiet());
    const job = { id: 'job-0', type: 'a.b', args: [], attempt: 1 };
    const response = await worker.fetch(
      new Request('http://h/', { method: 'POST', body: JSON.stringify({ job }) }),
      {},
    );
    expect(await response.json()).toMatchObject({
      result: [[], ['default', 'mail']],
      enqueue: [{ type: 'c.d' }, { type: 'e.f', args: [1], options: { queue: 'mail' } }],
    });
    const [closed] = await deliver(worker, {}, { type: 'a.b' }, { type: 'a.b' });
    expect(closed?.status).toBe('again');
  });

  it.each<[string, unknown, RegExp]>([
    ['no list', { type: 'a.b', args: [] }, /pass a list/],
    ['too many', jobs(1001), /1001 jobs; a call takes at most 1000/],
    ['too much', jobs(11, ['縦'.repeat(40_000)]), /bytes of jobs; a call takes at most 1048576/],
    [
      'an unknown member',
      [{ type: 'a.b', args: [], queue: 'mail' }],
      /Besides its options, the job a.b has no "queue"/,
    ],
  ])('refuses %s, and enqueues nothing', async (_, given, message) => {
    const worker = defineHandlers((_job, ctx: HandlerContext) => ctx.enqueueMany(given as []), quiet());
    const call = openCall(worker, [{ type: 'a.b' }]);
    expect((await call.results).del_0).toMatchObject({
      status: 'failed',
      error: { type: 'TypeError', message: expect.stringMatching(message) },
    });
    expect(call.said).toHaveLength(1);
  });
});
