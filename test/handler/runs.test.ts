/** Jobs that a handler waits for: what it asks for, what it gets, and what it may not do. */
import { describe, expect, it } from 'vitest';
import {
  batched,
  ChildError,
  ChildrenFailedError,
  defineHandlers,
  type HandlerContext,
  type Job,
  RunTimeoutError,
  UnrecoverableError,
} from '../../src/handler';
import { type HandlerRun, type RunOptions, runBatch, runHandler, runToEnd } from '../../src/testing';
import { post } from './deliver';

const T0 = Date.UTC(2030, 0, 1);
const [SECOND, HOUR, DAY] = [1000, 3_600_000, 86_400_000];

type Handler = (ctx: HandlerContext) => unknown;

const handlersOf = (run: Handler) => defineHandlers({ 'a.b': (_: Job, ctx: HandlerContext) => run(ctx) });
const once = (run: Handler, options: RunOptions = {}): Promise<HandlerRun> =>
  runHandler(handlersOf(run), 'a.b', [], { now: T0, ...options });
const toEnd = (run: Handler, options: RunOptions = {}) => runToEnd(handlersOf(run), 'a.b', [], { now: T0, ...options });

const cover = (ctx: HandlerContext) => ctx.run<string>('cover', 'image.resize', ['a.png']);
const names = ({ waitsFor }: HandlerRun) => waitsFor.map(({ name }) => name);
/** On record: a job that runs, and one that has ended. */
const running = (until = T0 + DAY) => ({ until, run: { queue: 'default', type: 'image.resize' } });
const ended = (result: unknown, at = T0) => ({ result, at, run: { queue: 'default', type: 'image.resize' } });
const failure = { code: 'handler_error', type: 'RangeError', message: 'too large', state: 'discarded' } as const;

describe('a job that is waited for', () => {
  it('is asked for with the end of the run', async () => {
    const run = await once((ctx) =>
      ctx.run('cover', 'image.resize', [{ inTime: 1 }], {
        ...{ queue: 'images', maxAttempts: 2, meta: { by: 'ada' }, timeout: '1h', detached: true },
      }),
    );
    expect(run).toMatchObject({ status: 'snoozed', isLast: false, wakes: { at: T0 + HOUR } });
    const options = { queue: 'images', retry: { maxAttempts: 2 } };
    expect(run.waitsFor).toMatchObject([{ name: 'cover', timeoutMs: HOUR, detached: true }]);
    expect(run.waitsFor[0]?.jobs).toMatchObject([{ type: 'image.resize', args: [{ inTime: 1 }] }]);
    expect(run.waitsFor[0]?.jobs?.[0]?.meta).toEqual({ by: 'ada', parent_id: expect.any(String) });
    expect(run.waitsFor[0]?.jobs?.[0]?.options).toMatchObject({ queue: options.queue });
    expect(run.steps).toEqual({ cover: { until: T0 + HOUR, run: expect.objectContaining({ queue: 'images' }) } });
  });

  it('is named in later runs, until it has ended', async () => {
    const first = await once(cover);
    expect(first.wakes).toEqual({ at: T0 + 7 * DAY });
    const second = await once(cover, { steps: first.steps, now: T0 + 1 });
    expect(second.waitsFor).toEqual([{ name: 'cover' }]);
    expect(second.wakes).toEqual({ at: T0 + 7 * DAY });
    const third = await once(cover, { steps: second.steps, runs: { cover: { result: 'small' } } });
    expect(third).toMatchObject({ status: 'completed', result: 'small', waitsFor: [] });
  });

  it('gives its error, which ends this job unless it is caught', async () => {
    const steps = { cover: { error: { ...failure, details: { px: 9 } }, run: { id: 'j1', queue: 'q', type: 'c.d' } } };
    expect(await once(cover, { steps })).toMatchObject({
      ...{ status: 'failed', isLast: true },
      error: { type: 'RangeError', classes: ['ChildError', 'UnrecoverableError', 'Error'], details: { px: 9 } },
    });
    const caught = await once((ctx) => cover(ctx).catch((error) => error), { steps });
    expect(caught.result).toMatchObject({ id: 'j1', state: 'discarded', code: 'handler_error', details: { px: 9 } });
    const error: unknown[] = [];
    await once((ctx) => cover(ctx).catch((thrown) => void error.push(thrown)), { steps });
    expect(error[0]).toBeInstanceOf(ChildError);
    expect(error[0]).toBeInstanceOf(UnrecoverableError);
    expect(String(error[0])).toBe('ChildError: The job j1 (c.d) that "cover" waits for was discarded: too large');
  });

  it('says that it was never started', async () => {
    const steps = { cover: { error: { code: 'deadlock', message: 'no' }, run: { queue: 'q', type: 'c.d' } } };
    const { error } = await once(cover, { steps });
    expect(error?.message).toBe('A job (c.d) that "cover" waits for could not be started: no');
  });

  it('may not end in time, also when it ends later', async () => {
    const steps = { cover: running(T0 + HOUR) };
    const late: Handler = async (ctx) => {
      const thrown = await cover(ctx).catch((error: unknown) => error);
      await ctx.sleep('later', '1h');
      return thrown instanceof RunTimeoutError && thrown instanceof UnrecoverableError;
    };
    const first = await once(late, { steps, now: T0 + HOUR });
    expect(first).toMatchObject({ status: 'snoozed', steps: { cover: { timed_out: true } } });
    expect(await once(late, { steps: first.steps, now: T0 + 2 * HOUR })).toMatchObject({ result: true });
    expect(await toEnd(cover)).toMatchObject({ status: 'failed', isLast: true, sleptMs: 7 * DAY });
  });

  it('says that its result was too large', async () => {
    const result = { id: 'j1', omitted: 70_000 };
    const run = { id: 'j1', queue: 'q', type: 'c.d' };
    const { error } = await once(cover, { steps: { cover: { result, run } } });
    expect(error).toMatchObject({ classes: expect.arrayContaining(['ChildError']) });
    expect(error?.message).toContain('has completed: Its result has 70000 bytes');
    // A result that only looks like it.
    const other = { cover: { result: { id: 'j2', omitted: 1 }, run } };
    expect((await once(cover, { steps: other })).result).toEqual({ id: 'j2', omitted: 1 });
    // A run without a way to large results gets some with its job, and an error in the place of others.
    const whole = { cover: { result: 'large', result_bytes: 70_000, run } };
    expect((await once(cover, { steps: whole })).result).toBe('large');
    const left = { cover: { error: { code: 'payload_too_large', message: 'large' }, result_bytes: 70_000, run } };
    expect((await once(cover, { steps: left })).error?.message).toContain('Its result has 70000 bytes');
  });

  it('is not asked for when the handler ends without waiting for it', async () => {
    const run = await once(async (ctx) => {
      void cover(ctx);
      return await ctx.step('a', () => 1);
    });
    expect(run).toMatchObject({ status: 'completed', result: 1, waitsFor: [] });
  });

  it('is a job of the defaults of its type, unless they make it unique', async () => {
    const handlers = defineHandlers({
      'a.b': (_: Job, ctx: HandlerContext) => ctx.run('x', 'c.d', []),
      'c.d': { handler: () => 1, defaults: { queue: 'other', unique: { key: 'k' } } },
    });
    const { waitsFor } = await runHandler(handlers, 'a.b', []);
    expect(waitsFor[0]?.jobs?.[0]?.options).toEqual({ queue: 'other' });
  });
});

describe('without an open call', () => {
  it('asks for jobs with its answer, beside a step that it has done', async () => {
    const run = (_: Job, ctx: HandlerContext) => Promise.all([ctx.step('a', () => 1), cover(ctx)]);
    const worker = defineHandlers({ 'a.b': run }, { log: () => undefined });
    const answer = await worker.fetch(post({ job: { type: 'a.b', id: 'j1', args: [], attempt: 1 } }), {});
    expect(await answer.json()).toEqual({
      ...{ status: 'snoozed', in: 0, steps: { a: { result: 1 } } },
      runs: [
        {
          ...{ name: 'cover', timeout_ms: 7 * DAY },
          jobs: [{ type: 'image.resize', args: ['a.png'], options: {}, meta: { parent_id: 'j1' } }],
        },
      ],
    });
    const steps = { a: { result: 1 }, cover: ended('small') };
    const last = await worker.fetch(post({ job: { type: 'a.b', id: 'j1', args: [], attempt: 1, steps } }), {});
    expect(await last.json()).toEqual({ status: 'completed', result: [1, 'small'] });
  });
});

describe('several jobs under one name', () => {
  const thumbs =
    (options?: Parameters<HandlerContext['runAll']>[2]): Handler =>
    (ctx) =>
      ctx.runAll(
        'thumbs',
        [1, 2, 3].map((at) => ({ type: 'image.resize', args: [at], options: { queue: 'i' } })),
        options,
      );
  const two = [{ result: 1 }, { error: { message: 'no', code: 'FAIL' } }, { result: 3 }];

  it('are asked for together', async () => {
    const run = await once(thumbs({ onFailure: 'stop', timeout: '1m' }));
    expect(run.waitsFor).toMatchObject([{ name: 'thumbs', all: true, stop: true, timeoutMs: 60 * SECOND }]);
    expect(run.waitsFor[0]?.jobs?.map(({ args }) => args)).toEqual([[1], [2], [3]]);
    expect(run.wakes).toEqual({ at: T0 + 60 * SECOND });
  });

  it('give their results in order', async () => {
    const { result } = await once(thumbs(), { runs: () => ({ result: 'ok' }) });
    expect(result).toMatchObject([{ result: 'ok' }, { result: 'ok' }, { result: 'ok' }]);
  });

  it('give a result that is too large by its size', async () => {
    const end = { id: 'j1', omitted: 20_000 };
    const steps = { thumbs: { result: [end], run: { queue: 'q', type: 'c.d', jobs: 1 } } };
    expect((await once(thumbs(), { steps })).result).toEqual([end]);
  });

  it('throw when one has failed', async () => {
    const run = await once(thumbs(), { runs: { thumbs: two } });
    expect(run).toMatchObject({
      ...{ status: 'failed', isLast: true },
      error: {
        type: 'ChildrenFailedError',
        details: { failed: 1, first: [{ index: 1, code: 'FAIL', state: 'discarded' }] },
      },
    });
    expect(run.error?.message).toContain('1 of 3 jobs that "thumbs" waits for failed.');
    const caught: unknown[] = [];
    await once((ctx) => Promise.resolve(thumbs()(ctx)).catch((error) => void caught.push(error)), {
      runs: { thumbs: two },
    });
    expect(caught[0]).toBeInstanceOf(ChildrenFailedError);
    expect((caught[0] as ChildrenFailedError).failures).toMatchObject([{ index: 1, error: { code: 'FAIL' } }]);
  });

  it('return their failures when asked to', async () => {
    const { result } = await once(thumbs({ onFailure: 'return' }), { runs: { thumbs: two } });
    expect(result).toMatchObject([{ result: 1 }, { error: { code: 'FAIL', state: 'discarded' } }, { result: 3 }]);
  });

  it('may be none', async () => {
    expect(await once((ctx) => ctx.runAll('none', []))).toMatchObject({ status: 'completed', result: [] });
  });
});

describe('a mix', () => {
  const other = (ctx: HandlerContext) => ctx.run('other', 'c.d', []);
  const nap = (ctx: HandlerContext, duration = '1h') => ctx.sleep('nap', duration as '1h').then(() => 'slept');

  it('of several jobs begins and waits for all of them in one run', async () => {
    const all: Handler = (ctx) => Promise.all([cover(ctx), ctx.step('a', () => 1), other(ctx)]);
    const first = await once(all);
    expect(names(first)).toEqual(['cover', 'other']);
    const second = await once(all, { steps: { ...first.steps, cover: ended(1) } });
    expect(second).toMatchObject({ status: 'snoozed', waitsFor: [{ name: 'other' }] });
    expect(await once(all, { steps: { ...second.steps, other: ended(2) } })).toMatchObject({ result: [1, 1, 2] });
  });

  it('with sleeps and signals waits for the first of them', async () => {
    const race: Handler = (ctx) => Promise.race([cover(ctx), nap(ctx), ctx.waitFor('go', { timeout: '2h' })]);
    const first = await once(race);
    expect(first.wakes).toEqual({ at: T0 + HOUR, signal: 'go' });
    expect(names(first)).toEqual(['cover']);
    expect(await once(race, { steps: first.steps, now: T0 + HOUR })).toMatchObject({ result: 'slept' });
    const steps = { ...first.steps, cover: ended('small', T0 + 5) };
    expect(await once(race, { steps, now: T0 + 5 })).toMatchObject({ result: 'small' });
    // Both are over when the job runs late: the earlier one has won.
    expect(await once(race, { steps, now: T0 + 3 * HOUR })).toMatchObject({ result: 'small' });
    const late = { ...first.steps, cover: ended('small', T0 + 2 * HOUR) };
    expect(await once(race, { steps: late, now: T0 + 3 * HOUR })).toMatchObject({ result: 'slept' });
  });

  it.each<[string, Handler, unknown]>([
    ['any', (ctx) => Promise.any([cover(ctx), other(ctx)]), 2],
    [
      'allSettled',
      async (ctx) => (await Promise.allSettled([cover(ctx), other(ctx), nap(ctx)])).map(({ status }) => status),
      ['rejected', 'fulfilled', 'fulfilled'],
    ],
  ])('comes to its end in %s', async (_, run, result) => {
    const runs = { cover: { error: failure }, other: { result: 2 } };
    expect(await toEnd(run, { runs })).toMatchObject({ status: 'completed', result });
  });

  it('waits no more for a job that lost a race against a sleep', async () => {
    const then: Handler = async (ctx) => {
      await Promise.race([cover(ctx), nap(ctx)]);
      return await other(ctx);
    };
    const first = await once(then);
    const second = await once(then, { steps: first.steps, now: T0 + HOUR });
    expect(names(second)).toEqual(['other']);
    const third = await once(then, { steps: second.steps, now: T0 + HOUR + 1 });
    expect(names(third)).toEqual(['other']);
  });

  it('waits no more for it either when one of the jobs that began later has ended', async () => {
    const then: Handler = async (ctx) => {
      await Promise.race([cover(ctx), nap(ctx)]);
      return await Promise.all([other(ctx), ctx.run('third', 'c.d', [])]);
    };
    const first = await once(then);
    const second = await once(then, { steps: first.steps, now: T0 + HOUR });
    expect(names(second)).toEqual(['other', 'third']);
    const steps = { ...second.steps, other: ended(1, T0 + HOUR + 1) };
    expect(names(await once(then, { steps, now: T0 + HOUR + 1 }))).toEqual(['third']);
  });

  it.each<[string, (ctx: HandlerContext) => [unknown, unknown]]>([
    ['before', (ctx) => [ctx.step('quick', () => 1), cover(ctx)]],
    ['behind', (ctx) => [cover(ctx), ctx.step('quick', () => 1)]],
  ])('waits no more for a job that lost a race against a step %s it', async (_, pair) => {
    const then: Handler = async (ctx) => {
      await Promise.race(pair(ctx));
      return await other(ctx);
    };
    const first = await once(then);
    // Both begin; then only one is waited for.
    expect(first.wakes).toEqual({ at: T0 });
    expect(names(first).sort()).toEqual(['cover', 'other']);
    expect(names(await once(then, { steps: first.steps }))).toEqual(['other']);
  });

  it('begins a job that is awaited later', async () => {
    const later: Handler = async (ctx) => {
      const early = cover(ctx);
      await nap(ctx);
      return await early;
    };
    const first = await once(later);
    expect(names(first)).toEqual(['cover']);
    expect(first.wakes).toEqual({ at: T0 + HOUR });
    expect(names(await once(later, { steps: first.steps, now: T0 + 1 }))).toEqual([]);
    expect(names(await once(later, { steps: first.steps, now: T0 + HOUR }))).toEqual(['cover']);
  });

  it('keeps the run open for a step', async () => {
    const steps = { cover: running() };
    const run = await once((ctx) => Promise.race([cover(ctx), ctx.step('a', () => 'done')]), { steps });
    expect(run).toMatchObject({ status: 'completed', result: 'done' });
  });
});

describe('a wrong call', () => {
  it.each<[string, Handler, string]>([
    ['inside of a step', (ctx) => ctx.step('a', () => cover(ctx)), 'inside of a ctx.step'],
    ['a name twice', (ctx) => Promise.all([cover(ctx), cover(ctx)]), 'used twice'],
    ['id', (ctx) => ctx.run('x', 'c.d', [], { id: 'i' } as never), 'cannot have id'],
    ['pending', (ctx) => ctx.run('x', 'c.d', [], { pending: true } as never), 'cannot have pending'],
    ['unique', (ctx) => ctx.run('x', 'c.d', [], { unique: { key: 'k' } } as never), 'cannot have unique'],
    [
      'unique of one of all',
      (ctx) => ctx.runAll('x', [{ type: 'c.d', args: [], options: { unique: {} } as never }]),
      'cannot have unique',
    ],
    ['an unknown option', (ctx) => ctx.run('x', 'c.d', [], { nope: 1 } as never), 'no option "nope"'],
    ['a timeout that is none', (ctx) => ctx.run('x', 'c.d', [], { timeout: 'soon' as never }), 'is not a duration'],
    ['detached', (ctx) => ctx.run('x', 'c.d', [], { detached: 1 as never }), 'detached must be true or false'],
    [
      'onFailure',
      (ctx) => ctx.runAll('x', [{ type: 'c.d', args: [] }], { onFailure: 'no' as never }),
      'onFailure must be',
    ],
    ['no list', (ctx) => ctx.runAll('x', {} as never), 'pass a list'],
    ['too many', (ctx) => ctx.runAll('x', Array(1001).fill({ type: 'c.d', args: [] })), 'at most 1000'],
    ['too large', (ctx) => ctx.runAll('x', [{ type: 'c.d', args: ['x'.repeat(1_048_576)] }]), 'takes at most 1048576'],
  ])('is a TypeError: %s', async (_, run, message) => {
    const { error } = await once(run);
    expect(error).toMatchObject({ type: 'TypeError', message: expect.stringContaining(message) });
  });

  it.each<[string, Handler, RunOptions['steps']]>([
    ['run', cover, { cover: { result: 1 } }],
    ['run', cover, { cover: { until: T0 + 1 } }],
    ['run', cover, { cover: { result: [], run: { queue: 'q', type: 'c.d', jobs: 2 } } }],
    ['runAll', (ctx) => ctx.runAll('cover', [{ type: 'c.d', args: [] }]), { cover: running() }],
    ['step', (ctx) => ctx.step('cover', () => 1), { cover: running() }],
    ['step', (ctx) => ctx.step('cover', () => 1, { retry: 2 }), { cover: running() }],
    ['step', (ctx) => ctx.step('cover', () => 1), { cover: ended(1) }],
    ['sleep', (ctx) => ctx.sleep('cover', '1h'), { cover: running() }],
    ['waitFor', (ctx) => ctx.waitFor('cover'), { cover: running() }],
    ['waitFor', (ctx) => ctx.waitFor('cover'), { cover: { timed_out: true, run: { queue: 'q', type: 'c.d' } } }],
  ])('is a TypeError: %s under the name of another thing', async (verb, run, steps) => {
    const { error } = await once(run, { steps });
    expect(error).toMatchObject({
      type: 'TypeError',
      message: expect.stringMatching(new RegExp(`^ctx.${verb}: "cover" is recorded as a `)),
    });
  });

  it('is refused in a chunked handler', async () => {
    const call = async (_: readonly Job[], ctx: unknown) => [await (ctx as HandlerContext).run('x', 'c.d', [])];
    const handlers = defineHandlers({ 'a.b': batched({ size: 2, wait: '1s' }, call) });
    expect((await runBatch(handlers, 'a.b', [[]] as [][]))[0]?.error?.message).toContain(
      'a chunked handler has no run',
    );
  });
});
