/** Steps with a policy of their own: tries, pauses between them, the time of one try, and what is on record of it. */
import { describe, expect, it } from 'vitest';
import {
  defineHandlers,
  discard,
  type HandlerContext,
  type Job,
  retryIn,
  StepError,
  type StepOptions,
  snooze,
  UnrecoverableError,
} from '../../src/handler';
import { type HandlerRun, type RunOptions, runHandler, runToEnd } from '../../src/testing';
import { post } from './deliver';

const T0 = Date.UTC(2030, 0, 1);
const MINUTE = 60_000;

type Handler = (ctx: HandlerContext) => unknown;

const once = (run: Handler, options: RunOptions = {}): Promise<HandlerRun> =>
  runHandler(defineHandlers({ 'a.b': (_: Job, ctx: HandlerContext) => run(ctx) }), 'a.b', [], { now: T0, ...options });
const toEnd = (run: Handler, options: RunOptions = {}) =>
  runToEnd(defineHandlers({ 'a.b': (_: Job, ctx: HandlerContext) => run(ctx) }), 'a.b', [], { now: T0, ...options });

/** Tries without a pause worth the name. */
const quick = (maxAttempts: number) => ({ maxAttempts, initialInterval: 1, jitter: false as const });
/** A minute between two tries. */
const slow = {
  maxAttempts: 3,
  backoffStrategy: 'constant' as const,
  initialInterval: '1m' as const,
  jitter: false as const,
};

/** A step that fails so many times, then succeeds. */
function failing(times: number, thrown: () => unknown = () => new RangeError('declined')) {
  const step = { calls: 0, run: () => 'charged' as unknown };
  step.run = () => {
    if (++step.calls <= times) throw thrown();
    return 'charged';
  };
  return step;
}

describe('a step that fails with tries left', () => {
  it('is tried again in the same run after a short pause, and only its result is on record', async () => {
    const step = failing(2);
    const run = await once((ctx) => ctx.step('charge', step.run, { retry: quick(3) }));
    expect(run).toMatchObject({ status: 'completed', result: 'charged' });
    expect(run.steps).toEqual({ charge: { result: 'charged' } });
    expect(run.log.map(({ message }) => message)).toEqual([
      'Try 1 of the step "charge" failed: RangeError: declined',
      'Try 2 of the step "charge" failed: RangeError: declined',
    ]);
  });

  it('ends the run when the pause is long, and counts its tries over the runs', async () => {
    const step = failing(2);
    const handler: Handler = (ctx) => ctx.step('charge', step.run, { retry: slow });
    const first = await once(handler);
    expect(first).toMatchObject({ status: 'snoozed', wakes: { at: T0 + MINUTE } });
    expect(first.steps).toEqual({
      charge: {
        ...{ until: T0 + MINUTE, tries: 1 },
        failed: { code: 'handler_error', type: 'RangeError', message: 'declined' },
      },
    });
    // A run that comes earlier, by a signal for instance, waits on.
    const early = await once(handler, { now: T0 + 1, steps: first.steps });
    expect(early).toMatchObject({ status: 'snoozed', wakes: { at: T0 + MINUTE } });
    expect(step.calls).toBe(1);
    const second = await once(handler, { now: T0 + MINUTE, steps: early.steps });
    expect(second).toMatchObject({ status: 'snoozed', steps: { charge: { until: T0 + 2 * MINUTE, tries: 2 } } });
    const third = await once(handler, { now: T0 + 2 * MINUTE, steps: second.steps });
    expect(third).toMatchObject({ status: 'completed', result: 'charged' });
  });

  it('takes the pause that it throws', async () => {
    const step = failing(1, () => retryIn('2h', 'busy'));
    const run = await once((ctx) => ctx.step('charge', step.run, { retry: 2 }));
    expect(run).toMatchObject({ status: 'snoozed', wakes: { at: T0 + 120 * MINUTE } });
  });

  it('counts on when an older queue has left out its tries', async () => {
    const step = failing(9);
    const run = await once((ctx) => ctx.step('charge', step.run, { retry: quick(2) }), {
      steps: { charge: { until: T0 } },
    });
    expect(run).toMatchObject({ status: 'failed', steps: { charge: { error: { tries: 2 } } } });
    expect(step.calls).toBe(1);
  });
});

describe('a step that failed for good', () => {
  it.each<[string, StepOptions['retry'], () => unknown, number]>([
    ['in its last try', quick(3), () => new RangeError('declined'), 3],
    ['as nothing helps', quick(3), () => new UnrecoverableError('declined'), 1],
    ['by its type', { ...quick(3), nonRetryableErrors: ['RangeError'] }, () => new RangeError('declined'), 1],
  ])('%s is on record, ends the job by its policy, and is not tried again', async (_, retry, thrown, tries) => {
    const step = failing(9, thrown);
    const handler: Handler = (ctx) => ctx.step('charge', step.run, { retry });
    const run = await once(handler);
    const message = `The step "charge" failed for good after ${tries} ${tries === 1 ? 'try' : 'tries'}: declined`;
    expect(run).toMatchObject({ status: 'failed', isLast: true, error: { retryable: false, message } });
    expect(run.error?.classes).toContain('StepError');
    expect(run.error?.classes).not.toContain('UnrecoverableError');
    expect(run.steps.charge).toMatchObject({ error: { message: 'declined', tries } });
    expect(await once(handler, { steps: run.steps })).toMatchObject({ status: 'failed', error: { message } });
    expect(step.calls).toBe(tries);
  });

  it('can be caught, in every run alike', async () => {
    const step = failing(9);
    const handler: Handler = async (ctx) => {
      const said = await ctx.step('charge', step.run, { retry: quick(2) }).catch((error) => {
        if (!(error instanceof StepError)) throw error;
        return `${error.step} ${error.type} ${error.code} ${error.tries}`;
      });
      await ctx.sleep('later', '1h');
      return said;
    };
    expect(await toEnd(handler)).toMatchObject({ result: 'charge RangeError handler_error 2' });
    expect(step.calls).toBe(2);
  });

  it('by another runner is thrown, too', async () => {
    const run = await once((ctx) => ctx.step('charge', () => 1), { steps: { charge: { error: 'no funds' } } });
    expect(run).toMatchObject({ error: { message: 'The step "charge" failed for good: no funds' } });
  });

  it('is not one whose handler decides about the job', async () => {
    for (const [thrown, end] of [
      [() => discard('gone'), { status: 'failed', error: { code: 'DISCARD', message: 'gone' } }],
      [() => snooze('1h'), { status: 'snoozed', wakes: { at: T0 + 60 * MINUTE } }],
    ] as const) {
      const run = await once((ctx) => ctx.step('charge', failing(9, thrown).run, { retry: 5 }));
      expect(run).toMatchObject({ ...end, steps: {} });
    }
  });
});

describe('the timeout of a step', () => {
  const never = () => new Promise<never>(() => undefined);

  it('aborts its signal and fails the try', async () => {
    const reasons: string[] = [];
    const handler: Handler = (ctx) =>
      ctx.step(
        'slow',
        ({ signal }) => {
          signal.addEventListener('abort', () => void reasons.push((signal.reason as Error).message));
          return reasons.length < 1 ? never() : 'in time';
        },
        { timeout: 5, retry: quick(2) },
      );
    expect(await once(handler)).toMatchObject({ status: 'completed', result: 'in time' });
    expect(reasons).toEqual(['The step did not finish within 5 ms.']);
  });

  it('fails the attempt where the step has no retry, and nothing is on record', async () => {
    const run = await once((ctx) => ctx.step('slow', never, { timeout: 5 }));
    expect(run).toMatchObject({ status: 'failed', error: { code: 'handler_error', type: 'step_timeout' }, steps: {} });
  });

  it('is cut to that of the job, which the log says', async () => {
    const run = await once((ctx) => ctx.step('slow', () => 1, { timeout: '1h' }), { timeoutMs: 1000 });
    expect(run).toMatchObject({ status: 'completed', result: 1 });
    expect(run.log).toMatchObject([
      { level: 'warn', message: 'The timeout of the step "slow" is cut to that of the job.' },
    ]);
  });

  it('leaves the signal of the run in force', async () => {
    const cancel = new AbortController();
    const run = once(
      (ctx) =>
        ctx.step(
          'slow',
          ({ signal }) =>
            new Promise((_, reject) => {
              signal.addEventListener('abort', () => reject(signal.reason));
              cancel.abort(new Error('the caller is gone'));
            }),
          { timeout: '1s', retry: 5 },
        ),
      { signal: cancel.signal },
    );
    expect(await run).toMatchObject({ status: 'failed', error: { message: 'the caller is gone' }, steps: {} });
  });
});

describe('a step of a target without an open call', () => {
  it('says with the answer how often it was tried, and how it ended', async () => {
    const step = failing(1);
    const handlers = defineHandlers((_, ctx: HandlerContext) => ctx.step('charge', step.run, { retry: slow }), {
      log: () => undefined,
    });
    const run = async (steps: object) => {
      const job = { ...{ id: 'j', type: 'a.b', args: [], steps }, started_at: new Date(T0).toISOString() };
      return await (await handlers.fetch(post({ job, delivery_id: 'd' }), {})).json();
    };
    const first = await run({});
    expect(first).toMatchObject({ status: 'snoozed', steps: { charge: { tries: 1 } } });
    const second = await run({ charge: { until: T0, tries: 1 } });
    expect(second).toMatchObject({ status: 'snoozed', in: 0, steps: { charge: { result: 'charged' } } });
  });
});

describe('a step that waits for its next try', () => {
  it('loses a race against a sleep that ends before', async () => {
    const step = failing(9);
    const handler: Handler = (ctx) =>
      Promise.race([ctx.step('charge', step.run, { retry: slow }), ctx.sleep('limit', '30s').then(() => 'late')]);
    const first = await once(handler);
    expect(first).toMatchObject({ status: 'snoozed', wakes: { at: T0 + MINUTE / 2 } });
    // Nobody waits for its next try any more.
    expect(await toEnd(handler)).toMatchObject({ status: 'completed', result: 'late' });
  });

  it('lets other steps end and be recorded', async () => {
    const step = failing(1);
    let finish: (value: string) => void = () => undefined;
    const work = new Promise<string>((resolve) => {
      finish = resolve;
    });
    const handler: Handler = (ctx) =>
      Promise.all([
        ctx.step('charge', () => setTimeout(() => finish('packed')) && step.run(), { retry: slow }),
        ctx.step('pack', () => work),
      ]);
    const first = await once(handler);
    expect(first).toMatchObject({ status: 'snoozed', steps: { charge: { tries: 1 }, pack: { result: 'packed' } } });
    expect(await toEnd(handler, { steps: first.steps, now: T0 + MINUTE })).toMatchObject({
      result: ['charged', 'packed'],
    });
  });

  it('is waited for, although its handler has ended without it', async () => {
    for (const work of [() => undefined, () => new Promise((resolve) => setTimeout(resolve))]) {
      const step = failing(1);
      const handler: Handler = async (ctx) => {
        void ctx.step('charge', () => Promise.resolve(work()).then(step.run), { retry: slow });
        return 'done';
      };
      const first = await once(handler);
      expect(first).toMatchObject({ status: 'snoozed', wakes: { at: T0 + MINUTE } });
      const end = await toEnd(handler, { steps: first.steps, now: T0 + MINUTE });
      expect(end).toMatchObject({ status: 'completed', result: 'done' });
      expect(end.steps).toEqual({ charge: { result: 'charged' } });
    }
  });

  it('shares its name with no sleep or signal', async () => {
    const steps = { a: { until: T0 + MINUTE, tries: 1, failed: { message: 'declined' } } };
    for (const call of [(ctx: HandlerContext) => ctx.sleep('a', 1), (ctx: HandlerContext) => ctx.waitFor('a')]) {
      expect(await once(call, { steps })).toMatchObject({
        status: 'failed',
        error: { type: 'TypeError', message: expect.stringMatching(/"a" is recorded as a step of this job/) },
      });
    }
  });
});

it.each<[string, unknown, RegExp]>([
  ['no object', 'often', /"a": its options are an object with retry and timeout/],
  ['an unknown option', { retries: 3 }, /"a" has an unknown option "retries"; known are retry and timeout/],
  ['a retry that is no policy', { retry: 'often' }, /"a": retry must be a number of tries, or a policy such as/],
  [
    'a field that no policy has',
    { retry: { maxAttempt: 3 } },
    /"a": a step has no retry.maxAttempt; it has maxAttempts, /,
  ],
  ['a number of tries out of range', { retry: -1 }, /"a": retry.maxAttempts must be a whole number/],
  ['a strategy that is none', { retry: { backoffStrategy: 'none' } }, /"a": retry.backoffStrategy must be one of exp/],
  [
    'an interval that is none',
    { retry: { initialInterval: 'soon' } },
    /"a", retry.initialInterval: "soon" is not a dur/,
  ],
  ['a jitter of jobs', { retry: { jitter: {} } }, /"a": retry.jitter must be true or false/],
  [
    'a coefficient out of range',
    { retry: { backoffCoefficient: 1001 } },
    /"a": retry.backoffCoefficient must be a num/,
  ],
  ['a timeout that is none', { timeout: 'soon' }, /"a", timeout: "soon" is not a duration/],
  ['a timeout of nothing', { timeout: 0 }, /"a": its timeout is 0; leave it out for none/],
])('options of a step that are wrong are refused: %s', async (_, options, message) => {
  let isDone = false;
  const run = await once((ctx) => ctx.step('a', () => (isDone = true), options as StepOptions));
  expect(run).toMatchObject({
    status: 'failed',
    error: { type: 'TypeError', message: expect.stringMatching(message) },
  });
  expect(isDone).toBe(false);
});
