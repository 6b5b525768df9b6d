/** Sleeps, signals and steps that a handler waits for together: races, time limits, and calls inside of a step. */
import { describe, expect, it, vi } from 'vitest';
import { defineHandlers, type HandlerContext, type Job } from '../../src/handler';
import { type HandlerRun, type RunOptions, runHandler, runToEnd } from '../../src/testing';

const T0 = Date.UTC(2030, 0, 1);
const HOUR = 3_600_000;

type Handler = (ctx: HandlerContext) => unknown;

/** Runs a handler once. */
const once = (run: Handler, options: RunOptions = {}): Promise<HandlerRun> =>
  runHandler(defineHandlers({ 'a.b': (_: Job, ctx: HandlerContext) => run(ctx) }), 'a.b', [], { now: T0, ...options });
/** Runs a handler until its job ends. */
const toEnd = (run: Handler, options: RunOptions = {}) =>
  runToEnd(defineHandlers({ 'a.b': (_: Job, ctx: HandlerContext) => run(ctx) }), 'a.b', [], { now: T0, ...options });

/** A promise that never settles. */
const never = () => new Promise<never>(() => undefined);
/** A turn of the event loop. */
const turn = () => new Promise((resolve) => setTimeout(resolve));

const nap = (ctx: HandlerContext) => ctx.sleep('nap', '2s').then(() => 'slept');
const go = (ctx: HandlerContext) => ctx.waitFor<string>('go', { timeout: '1h' });

describe('a race between a signal and a sleep', () => {
  const race: Handler = (ctx) => Promise.race([go(ctx), nap(ctx)]);

  it('waits for both, and is won by the sleep when its time has come', async () => {
    const first = await once(race);
    expect(first).toMatchObject({ status: 'snoozed', wakes: { at: T0 + 2000, signal: 'go' } });
    const second = await once(race, { now: T0 + 2000, steps: first.steps });
    expect(second).toMatchObject({ status: 'completed', result: 'slept' });
  });

  it('is won by a signal that comes before', async () => {
    const { steps } = await once(race);
    const signalled = { ...steps, go: { signal: { payload: 'signalled', at: T0 + 1000 } } };
    expect(await once(race, { now: T0 + 1000, steps: signalled })).toMatchObject({ result: 'signalled' });
    // Both are over when the job runs late: the earlier one has won.
    expect(await once(race, { now: T0 + HOUR, steps: signalled })).toMatchObject({ result: 'signalled' });
  });

  it('has the same winner in later runs, whatever comes afterwards', async () => {
    const then: Handler = async (ctx) => {
      const winner = await race(ctx);
      await ctx.sleep('later', '30m');
      return winner;
    };
    const { steps } = await once(then);
    const asleep = await once(then, { now: T0 + 2000, steps });
    expect(asleep).toMatchObject({ status: 'snoozed', wakes: { at: T0 + 2000 + HOUR / 2 } });
    const late = { ...asleep.steps, go: { signal: { payload: 'signalled', at: T0 + 3000 } } };
    expect(await once(then, { now: T0 + 3 * HOUR, steps: late })).toMatchObject({ result: 'slept' });
    for (const steps of [asleep.steps, { ...asleep.steps, go: { timed_out: true } as const }]) {
      expect(await once(then, { now: T0 + 3 * HOUR, steps })).toMatchObject({ result: 'slept' });
    }
  });

  it('has the same winner in later runs when it is called behind promises that are settled', async () => {
    const branches: Handler = (ctx) =>
      Promise.race([go(ctx).catch(() => 'too late'), Promise.resolve().then(async () => await nap(ctx))]);
    const first = await once(branches, { now: T0 });
    const second = await once(branches, { now: T0 + 2000, steps: first.steps });
    expect(second).toMatchObject({ status: 'completed', result: 'slept' });
    expect(await once(branches, { now: T0 + 3 * HOUR, steps: second.steps })).toMatchObject({ result: 'slept' });
  });

  it('lets the branch of an earlier pause continue before a later one settles', async () => {
    const branches: Handler = (ctx) =>
      Promise.race([
        ctx.waitFor('c'),
        ctx
          .sleep('a', '1h')
          .then(() => ctx.sleep('b', '1h'))
          .then(() => 'b'),
      ]);
    const steps = {
      c: { signal: { payload: 'c', at: T0 + 3 * HOUR } },
      a: { until: T0 + HOUR },
      b: { until: T0 + 2 * HOUR },
    };
    expect(await once(branches, { now: T0 + 4 * HOUR, steps })).toMatchObject({ result: 'b' });
  });
});

describe('several pauses', () => {
  it.each<[string, Handler, unknown]>([
    ['any', (ctx) => Promise.any([go(ctx), nap(ctx)]), 'slept'],
    ['any, whose first branch fails', (ctx) => Promise.any([ctx.waitFor('x', { timeout: '1s' }), nap(ctx)]), 'slept'],
    [
      'all',
      (ctx) =>
        Promise.all([nap(ctx), ctx.sleep('long', '3h'), ctx.step('a', () => 1)]).then(([one, , two]) => [one, two]),
      ['slept', 1],
    ],
    [
      'all of them, failed or not',
      async (ctx) => (await Promise.allSettled([go(ctx), nap(ctx)])).map(({ status }) => status),
      ['rejected', 'fulfilled'],
    ],
    [
      'a race of chains',
      (ctx) =>
        Promise.race([
          nap(ctx)
            .then(() => ctx.sleep('more', '1s'))
            .then(() => 'chain'),
          ctx.sleep('x', '1m'),
        ]),
      'chain',
    ],
    [
      'a race inside of a race',
      (ctx) => Promise.race([go(ctx), Promise.race([ctx.sleep('long', '1d'), nap(ctx)])]),
      'slept',
    ],
  ])('come to their end in %s', async (_, run, result) => {
    expect(await toEnd(run)).toMatchObject({ status: 'completed', result });
  });

  it('begin in one run, also behind other work of the handler', async () => {
    const first = await once((ctx) =>
      Promise.all([ctx.sleep('a', '1h'), ctx.progress(0.5).then(() => ctx.sleep('b', '30m'))]),
    );
    expect(first).toMatchObject({ status: 'snoozed', wakes: { at: T0 + HOUR / 2 } });
    expect(Object.keys(first.steps)).toEqual(['a', 'b']);
  });

  it('that the handler does not await suspend nothing', async () => {
    const run: Handler = async (ctx) => {
      void ctx.sleep('forgotten', '1h');
      void ctx.waitFor('forgotten too');
      await turn();
      await ctx.step('more', () => 1);
      await turn();
      return 'done';
    };
    expect(await once(run)).toMatchObject({ status: 'completed', result: 'done' });
  });
});

describe('a pause beside work outside of steps', () => {
  const work = (ms: number) => new Promise<string>((resolve) => setTimeout(() => resolve('work'), ms));

  it.each<[string, Handler]>([
    ['in a race', (ctx) => Promise.race([work(5), ctx.sleep('limit', '1h')])],
    [
      'that the handler awaits before the pause',
      async (ctx) => {
        const limit = ctx.sleep('limit', '1h').then(() => 'late');
        const result = await work(5);
        return await Promise.race([ctx.step('quick', () => result), limit]);
      },
    ],
    [
      'in several turns',
      (ctx) =>
        Promise.race([
          turn()
            .then(turn)
            .then(() => work(1)),
          go(ctx),
        ]),
    ],
  ])('does not end the run when the work is quick, %s', async (_, run) => {
    expect(await once(run)).toMatchObject({ status: 'completed', result: 'work' });
  });

  it('ends it when the work takes long', async () => {
    const run: Handler = (ctx) => Promise.race([never(), ctx.sleep('limit', '1h')]);
    expect(await once(run)).toMatchObject({ status: 'snoozed', wakes: { at: T0 + HOUR } });
  });
});

describe('a sleep beside a step', () => {
  it('is the time limit of the step, and ends the wait while the step runs', async () => {
    const run = await once((ctx) => Promise.race([ctx.step('slow', never), ctx.sleep('limit', 5).then(() => 'late')]));
    expect(run).toMatchObject({ status: 'completed', result: 'late' });
  });

  it('loses against a step that ends before', async () => {
    const race: Handler = (ctx) => Promise.race([ctx.step('quick', () => 'quick'), ctx.sleep('limit', '1h')]);
    expect(await once(race)).toMatchObject({ status: 'completed', result: 'quick' });
  });

  it('ends in the run whose step it waits for', async () => {
    let finish: (value: string) => void = () => undefined;
    const work = new Promise<string>((resolve) => {
      finish = resolve;
    });
    const run = await once(async (ctx) => {
      const both = Promise.all([ctx.step('slow', () => work), ctx.sleep('short', 1).then(() => finish('done'))]);
      return (await both)[0];
    });
    expect(run).toMatchObject({ status: 'completed', result: 'done', steps: { slow: { result: 'done' } } });
  });

  it('keeps a job from failing whose time is up, when only the step continues', async () => {
    const handler: Handler = async (ctx) => {
      await Promise.race([ctx.step('slow', never), ctx.sleep('limit', 1)]);
      await ctx.sleep('later', '1h');
    };
    expect(await once(handler, { timeoutMs: 100 })).toMatchObject({ status: 'snoozed', wakes: { at: T0 + HOUR } });
  });
});

describe('a sleep inside of a step', () => {
  const INSIDE = /"inner" is inside of a ctx.step, which cannot sleep or wait/;
  /** A runtime like that of a Worker without Node's modules. */
  const node = Reflect.get(globalThis, 'process') as { getBuiltinModule(id: string): unknown };
  const withoutHooks = () => vi.spyOn(node, 'getBuiltinModule').mockReturnValue(undefined);

  it.each<[string, (ctx: HandlerContext) => unknown]>([
    ['begins with it', (ctx) => ctx.sleep('inner', '1h')],
    ['waits for a signal', (ctx) => ctx.waitFor('inner')],
    ['comes to it later', async (ctx) => turn().then(() => ctx.sleep('inner', '1h'))],
    [
      'calls it from a function',
      async (ctx) => {
        const later = async () => {
          await turn();
          await ctx.sleep('inner', 1);
        };
        await Promise.all([turn(), later()]);
      },
    ],
    ['has another step around it', (ctx) => ctx.step('between', () => ctx.sleep('inner', '1h'))],
  ])('is a TypeError when the step %s', async (_, inner) => {
    const run: Handler = (ctx) => ctx.step('outer', () => inner(ctx));
    const refused = { status: 'failed', error: { type: 'TypeError', message: expect.stringMatching(INSIDE) } };
    expect(await once(run, { timeoutMs: 60_000 })).toMatchObject(refused);
    const hidden = withoutHooks();
    expect(await once(run, { timeoutMs: 60_000 })).toMatchObject(refused);
    hidden.mockRestore();
  });

  // Nothing of the step is on the stack of what a timer calls.
  const byTimer: Handler = (ctx) =>
    ctx.step(
      'outer',
      () => new Promise((resolve, reject) => setTimeout(() => ctx.sleep('inner', '1h').then(resolve, reject))),
    );

  it('is a TypeError in what a timer of the step calls, where the runtime has AsyncLocalStorage', async () => {
    expect(await once(byTimer, { timeoutMs: 60_000 })).toMatchObject({
      status: 'failed',
      error: { type: 'TypeError', message: expect.stringMatching(INSIDE) },
    });
  });

  it('is named when the time is up, where the runtime has none', async () => {
    const hidden = withoutHooks();
    expect(await once(byTimer, { timeoutMs: 20 })).toMatchObject({
      status: 'failed',
      error: {
        code: 'timeout',
        message:
          'The job did not finish within 20 ms. Of its steps, "outer" had not ended, nor had a sleep or the wait for a signal: inside of a step these never end.',
      },
    });
    hidden.mockRestore();
  });

  it('is not what runs beside the step', async () => {
    const run: Handler = (ctx) =>
      Promise.all([ctx.step('slow', turn), Promise.resolve().then(() => ctx.sleep('beside', 1))]).then(() => 'both');
    expect(await toEnd(run)).toMatchObject({ status: 'completed', result: 'both' });
  });
});

describe('a sleep until a time', () => {
  const at = T0 + HOUR;

  it.each<[string, Date | number | string]>([
    ['a date', new Date(at)],
    ['epoch milliseconds', at],
    ['RFC 3339', new Date(at).toISOString()],
  ])('ends then: %s', async (_, time) => {
    const first = await once((ctx) => ctx.sleepUntil('opening', time).then(() => 'open'));
    expect(first).toMatchObject({ status: 'snoozed', wakes: { at } });
    // The time of the first run holds.
    const { steps } = first;
    const later: Handler = (ctx) => ctx.sleepUntil('opening', at + HOUR).then(() => 'open');
    expect(await once(later, { now: at - 1, steps })).toMatchObject({ status: 'snoozed', wakes: { at } });
    expect(await once(later, { now: at, steps })).toMatchObject({ status: 'completed', result: 'open' });
  });

  it('does not wait where the time has passed', async () => {
    const run = await once((ctx) => ctx.sleepUntil('opening', T0 - 1).then(() => 'open'));
    expect(run).toMatchObject({ status: 'completed', result: 'open' });
  });
});

it('a wait that nothing awaits ends no process when its signal did not come in time', async () => {
  const unhandled: unknown[] = [];
  const note = (event: Event) => unhandled.push(Reflect.get(event, 'reason'));
  addEventListener('unhandledrejection', note);
  const run: Handler = async (ctx) => {
    void ctx.waitFor('go', { timeout: '1h' });
    await turn();
    return 'done';
  };
  expect(await once(run, { steps: { go: { timed_out: true } } })).toMatchObject({
    status: 'completed',
    result: 'done',
  });
  await turn();
  removeEventListener('unhandledrejection', note);
  expect(unhandled).toEqual([]);
});
