/** Durable steps, sleeps and signals over the runs of one job. */
import { describe, expect, it } from 'vitest';
import {
  defineHandlers,
  type HandlerContext,
  isSuspended,
  SignalTimeoutError,
  type WorkerOptions,
} from '../../src/handler';
import { quiet } from './deliver';
import { openCall, type Said } from './live-call';

/** A queue with one job and a clock: it runs the job, and keeps what is recorded of it. */
class OneJob {
  steps: Record<string, object> = Object.create(null);
  /** What comes to be recorded while the job runs. */
  meanwhile: Record<string, object> = Object.create(null);
  now = Date.parse('2026-01-01T00:00:00.000Z');
  readonly #worker;

  constructor(run: (ctx: HandlerContext) => unknown, options: WorkerOptions = {}, settings: object = {}) {
    const handler = (_job: unknown, ctx: HandlerContext) => run(ctx);
    this.#worker = defineHandlers({ 'test.steps': { handler, ...settings } }, { ...quiet(), ...options });
  }

  /** One run. */
  async run(more: object = {}): Promise<Said> {
    const started_at = new Date(this.now).toISOString();
    const job = { type: 'test.steps', steps: this.steps, started_at, timeout_ms: 5000, ...more };
    const call = openCall(this.#worker, [job], ({ step }) => {
      if (!step) return {};
      const { name, ...record } = step;
      const earlier = this.meanwhile[name] ?? this.steps[name];
      if (earlier && !('until' in earlier)) return { value: earlier };
      this.steps[name] = record;
      return {};
    });
    const { del_0 } = await call.results;
    Object.assign(this.steps, del_0?.steps);
    return del_0 as Said;
  }

  /** Lets the time of a pause pass, then runs again. */
  async runAfter(said: Said): Promise<Said> {
    expect(said.status).toBe('snoozed');
    this.now = said.until ?? this.now + (said.in ?? 0);
    return await this.run();
  }
}

describe('names on record that a run does not reach', () => {
  const warnings = ({ log = [] }: Said) => log.filter(({ level }) => level === 'warn');

  it('are listed in a warning when the run completes or pauses, but not when it fails, nor are early signals', async () => {
    const job = new OneJob(async (ctx) => {
      await ctx.step('kept', () => 1);
      if (ctx.attempt === 2) throw new Error('no');
      if (ctx.attempt === 1) await ctx.sleep('nap', '1h');
    });
    job.steps.old = { result: 1 };
    job.steps.early = { signal: { payload: 1, at: 1 } };
    const paused = await job.run();
    expect(warnings(paused)).toMatchObject([
      { message: 'The run did not reach 1 of the steps on record: "old".', fields: { drift: ['old'] } },
    ]);
    expect(warnings(await job.run({ attempt: 2 }))).toEqual([]);
    const completed = await job.run({ attempt: 3 });
    expect(completed.status).toBe('completed');
    expect(warnings(completed)).toMatchObject([{ fields: { drift: ['old', 'nap'] } }]);
    delete job.steps.old;
    delete job.steps.nap;
    expect(warnings(await job.run({ attempt: 3 }))).toEqual([]);
  });

  it('end the job for good where its handler says so, whether it completes or pauses', async () => {
    const job = new OneJob(
      async (ctx) => {
        await ctx.step('kept', () => 1);
        if (ctx.attempt === 1) await ctx.sleep('nap', '1h');
      },
      {},
      { onDrift: 'fail' },
    );
    job.steps.old = { result: 1 };
    const message = 'The run did not reach 1 of the steps on record: "old".';
    const failed = { status: 'failed', error: { message, type: 'UnrecoverableError' } };
    for (const attempt of [1, 2]) {
      const said = await job.run({ attempt });
      expect(said).toMatchObject(failed);
      expect(warnings(said)).toMatchObject([{ message }]);
      delete job.steps.nap;
    }
    delete job.steps.old;
    expect((await job.run({ attempt: 2 })).status).toBe('completed');
  });

  it('are asked about when none is reached', async () => {
    let made = 0;
    const job = new OneJob(async (ctx) => {
      await ctx.step(`at ${++made}`, () => 1);
      if (made % 2 === 1) await ctx.step(`and ${made}`, () => 1);
    });
    await job.run();
    const [warning] = warnings(await job.run());
    expect(warning?.message).toBe(
      'The run did not reach 2 of the steps on record: "at 1", "and 1". Are names made from the clock or from random numbers?',
    );
  });
});

describe('a name', () => {
  it.each<[string, string]>([
    ['empty', ''],
    ['a dot', '.'],
    ['two dots', '..'],
    ['with U+0000', 'a\0'],
    ['half of an emoji', '\ud83d'],
    ['too long', 'x'.repeat(129)],
  ])('that the queue would refuse is refused by each call: %s', async (_, name) => {
    for (const call of [
      (ctx: HandlerContext) => ctx.step(name, () => 1),
      (ctx: HandlerContext) => ctx.sleep(name, '1h'),
      (ctx: HandlerContext) => ctx.waitFor(name),
    ]) {
      const { status, error } = await new OneJob(call).run();
      expect({ status, type: error?.type }).toEqual({ status: 'failed', type: 'TypeError' });
      expect(error?.message).toMatch(/a name is a string of 1 to 128 characters, not/);
    }
  });

  it.each(['__proto__', 'constructor', '...', 'ü 😀'])('may be %s', async (name) => {
    const job = new OneJob((ctx) => ctx.step(name, () => 'done'));
    expect(await job.run()).toMatchObject({ status: 'completed', result: 'done' });
  });
});

describe('a step', () => {
  it('has the first of two results, when an earlier run was slower to record its own', async () => {
    const job = new OneJob((ctx) => ctx.step('a', () => 'mine'));
    job.meanwhile.a = { result: 'first' };
    expect(await job.run()).toMatchObject({ result: 'first' });
  });

  it('that has finished is not done again, whatever fails after it', async () => {
    const done: string[] = [];
    const job = new OneJob(async (ctx) => {
      const card = await ctx.step('charge', () => ({ receipt: done.push('charge') }));
      await ctx.step('nothing', () => void done.push('nothing'));
      if (done.length < 4) {
        done.push('failed');
        throw new Error('the mail server is down');
      }
      return card;
    });
    expect((await job.run()).status).toBe('failed');
    expect((await job.run()).status).toBe('failed');
    expect(await job.run()).toMatchObject({ status: 'completed', result: { receipt: 1 } });
    expect(done).toEqual(['charge', 'nothing', 'failed', 'failed']);
  });

  it('that fails is the failure of the attempt, and is done again', async () => {
    let tries = 0;
    const job = new OneJob((ctx) =>
      ctx.step('flaky', () => {
        if (++tries === 1) throw new RangeError('flaky');
        return tries;
      }),
    );
    expect(await job.run()).toMatchObject({ status: 'failed', error: { type: 'RangeError' } });
    expect(job.steps).toEqual({});
    expect(await job.run()).toMatchObject({ status: 'completed', result: 2 });
  });

  it('under way is waited for and recorded when another one fails', async () => {
    let finish: (value: string) => void = () => undefined;
    const slow = new Promise<string>((resolve) => {
      finish = resolve;
    });
    const job = new OneJob((ctx) =>
      Promise.all([
        ctx.step('slow', () => slow),
        ctx.step('bad', () => {
          queueMicrotask(() => finish('charged'));
          throw new Error('bad');
        }),
      ]),
    );
    expect(await job.run()).toMatchObject({ status: 'failed', error: { message: 'bad' } });
    expect(job.steps).toEqual({ slow: { result: 'charged' } });
  });

  it('that the handler does not await is waited for, and its failure counts', async () => {
    const job = new OneJob((ctx) => {
      void ctx.step('forgotten', async () => {
        // A turn later the handler has returned.
        await new Promise((resolve) => setTimeout(resolve));
        throw new Error('forgotten');
      });
      return 'done';
    });
    expect(await job.run()).toMatchObject({ status: 'failed', error: { message: 'forgotten' } });
  });

  it.each<[string, (ctx: HandlerContext) => unknown, RegExp]>([
    ['twice the same name', (ctx) => ctx.step('a', () => 1).then(() => ctx.step('a', () => 2)), /"a" is used twice/],
    ['one name for two things', (ctx) => ctx.step('a', () => 1).then(() => ctx.sleep('a', 0)), /"a" is used twice/],
    ['no name', (ctx) => ctx.step('', () => 1), /1 to 128 characters/],
    ['a name that is too long', (ctx) => ctx.sleep('x'.repeat(129), 1), /1 to 128 characters/],
    ['a name that is no text', (ctx) => ctx.waitFor(7 as never), /1 to 128 characters, not 7/],
    ['no function', (ctx) => ctx.step('a', 1 as never), /"a" needs a function/],
    ['a result that is not JSON', (ctx) => ctx.step('a', () => 1n), /result of "a" is not JSON/],
    ['a function as result', (ctx) => ctx.step('a', () => () => 1), /result of "a" is not JSON/],
    ['a sleep of no duration', (ctx) => ctx.sleep('a', 'soon' as never), /ctx.sleep: "soon" is not a duration/],
    ['a sleep until no time', (ctx) => ctx.sleepUntil('a', 'soon'), /ctx.sleepUntil: soon is not a time; use a Date/],
    ['a sleep for ever', (ctx) => ctx.sleepUntil('a', 8e15), /8000000000000000 is more than 36500 days from now/],
    ['a timeout of no duration', (ctx) => ctx.waitFor('a', { timeout: -1 }), /ctx.waitFor: -1 is not a duration/],
  ])('is refused with %s', async (_, run, message) => {
    const said = await new OneJob(run).run();
    expect(said.error).toMatchObject({ type: 'TypeError', message: expect.stringMatching(message) });
  });

  it('may have any name, also one that objects have', async () => {
    const job = new OneJob(async (ctx) => [await ctx.step('__proto__', () => 1), await ctx.step('toString', () => 2)]);
    expect(await job.run()).toMatchObject({ status: 'completed', result: [1, 2] });
  });

  it('is refused once the run has ended', async () => {
    let late: HandlerContext | undefined;
    const job = new OneJob((ctx) => {
      late = ctx;
    });
    await job.run();
    await expect(late?.step('late', () => 1)).rejects.toThrow('the run has ended; "late" was not started');
    await expect(late?.progress(1)).rejects.toThrow('ctx.progress: the run has ended');
  });

  it('is refused under the name of what was a sleep', async () => {
    const job = new OneJob((ctx) => ctx.step('a', () => 1));
    job.steps = { a: { until: 5 } };
    expect((await job.run()).error?.message).toMatch(/"a" is recorded as a sleep/);
  });

  it('that outlives the timeout fails the attempt, even when the handler sleeps', async () => {
    const job = new OneJob((ctx) =>
      Promise.all([ctx.step('hangs', () => new Promise(() => undefined)), ctx.sleep('s', '1h')]),
    );
    expect(await job.run({ timeout_ms: 5 })).toMatchObject({ status: 'failed', error: { code: 'timeout' } });
  });
});

describe('a sleep', () => {
  it('ends the run, and is over when its time has passed', async () => {
    const done: string[] = [];
    const job = new OneJob(async (ctx) => {
      await ctx.step('before', () => done.push('before'));
      await ctx.sleep('pause', '3d');
      return done.push('after');
    });
    const asleep = await job.run();
    expect(asleep).toMatchObject({ status: 'snoozed', steps: { pause: { until: asleep.until } } });
    expect((asleep.until ?? 0) - job.now).toBeGreaterThanOrEqual(3 * 86_400_000);
    // Started by an operator before its time, it sleeps on until the same moment.
    expect(await job.run()).toMatchObject({ status: 'snoozed', until: asleep.until });
    expect(await job.runAfter(asleep)).toMatchObject({ status: 'completed', result: 2 });
    expect(done).toEqual(['before', 'after']);
  });

  it('of no length returns at once', async () => {
    expect(await new OneJob((ctx) => ctx.sleep('none', 0).then(() => 'on')).run()).toMatchObject({ result: 'on' });
  });

  it('among others ends with the earliest; each is over at its own time', async () => {
    const job = new OneJob((ctx) => Promise.all([ctx.sleep('long', '2h'), ctx.sleep('short', '1h')]).then(() => 'on'));
    const first = await job.run();
    expect((first.until ?? 0) - job.now).toBeLessThan(3_610_000);
    const second = await job.runAfter(first);
    expect(second.until).toBe((job.steps.long as { until: number }).until);
    expect(await job.runAfter(second)).toMatchObject({ status: 'completed', result: 'on' });
  });

  it.each<[string, (ctx: HandlerContext) => unknown]>([
    ['catches everything', (ctx) => ctx.sleep('s', '1h').catch(() => expect.unreachable())],
    ['waits for all, failed or not', (ctx) => Promise.allSettled([ctx.sleep('s', '1h'), Promise.reject(new Error())])],
  ])('holds although the handler %s', async (_, run) => {
    expect(await new OneJob(run).run({ timeout_ms: 50 })).toMatchObject({ status: 'snoozed' });
  });

  it.each<[string, (next: () => Promise<unknown>) => unknown]>([
    ['swallows it', (next) => next().catch(() => 'swallowed')],
    ['throws another', (next) => next().catch(() => Promise.reject(new Error('another')))],
    ['hangs', (next) => next().catch(() => new Promise(() => undefined))],
  ])('holds although middleware %s', async (_, around) => {
    const use = [(_job: unknown, _ctx: unknown, next: () => Promise<unknown>) => around(next)];
    const job = new OneJob((ctx) => ctx.sleep('s', '1h'), { use });
    expect(await job.run({ timeout_ms: 50 })).toMatchObject({ status: 'snoozed' });
  });

  it('waits for the steps under way, and their failure counts', async () => {
    const steps = (fails: boolean) => async (ctx: HandlerContext) => {
      const step = async () => {
        await Promise.resolve();
        if (fails) throw new Error('no');
        return 1;
      };
      await Promise.all([ctx.step('a', step), ctx.sleep('s', '1h')]);
    };
    const fine = new OneJob(steps(false));
    expect((await fine.run()).status).toBe('snoozed');
    expect(fine.steps).toMatchObject({ a: { result: 1 }, s: { until: expect.any(Number) } });
    // The sleep began nevertheless: a retry does not prolong it.
    const bad = await new OneJob(steps(true)).run();
    expect(bad).toMatchObject({ status: 'failed', steps: { s: { until: expect.any(Number) } } });
  });

  it('is distinguished from a failure by middleware', async () => {
    const seen: boolean[] = [];
    const use = [
      async (_job: unknown, _ctx: unknown, next: () => Promise<unknown>) => {
        try {
          return await next();
        } catch (error) {
          seen.push(isSuspended(error));
          throw error;
        }
      },
    ];
    const job = new OneJob((ctx) => ctx.sleep('s', '1h'), { use, onFailed: () => expect.unreachable() });
    expect((await job.run()).status).toBe('snoozed');
    expect([...seen, isSuspended(new Error('x')), isSuspended(undefined)]).toEqual([true, false, false]);
  });
});

describe('a signal', () => {
  it('gives what came with it, and the run continues', async () => {
    const job = new OneJob((ctx) => ctx.waitFor<{ by: string }>('approved', { timeout: '2d' }));
    const waits = await job.run();
    expect(waits).toMatchObject({ status: 'snoozed', signal: 'approved', steps: { approved: { until: waits.until } } });
    job.steps.approved = { signal: { payload: { by: 'ada' }, at: job.now } };
    expect(await job.run()).toMatchObject({ status: 'completed', result: { by: 'ada' } });
  });

  it('is waited for 7 days unless it is said otherwise', async () => {
    const job = new OneJob((ctx) => ctx.waitFor('approved'));
    const { until = 0 } = await job.run();
    expect(until - job.now).toBeGreaterThanOrEqual(7 * 86_400_000);
    expect(until - job.now).toBeLessThan(7 * 86_400_000 + 5000);
  });

  it('that does not come in time is an error to catch, in every later run too', async () => {
    const job = new OneJob(async (ctx) => {
      const approved = await ctx.waitFor<Error>('approved', { timeout: '1h' }).catch((error) => error);
      await ctx.sleep('then', '1h');
      return [approved instanceof SignalTimeoutError, approved.message];
    });
    const asleep = await job.runAfter(await job.run());
    expect(job.steps).toMatchObject({ approved: { timed_out: true } });
    // Too late.
    const end = await job.runAfter(asleep);
    expect(end.result).toEqual([true, 'The signal "approved" did not arrive in time.']);
  });

  it('that comes at the last moment has come', async () => {
    const job = new OneJob((ctx) => ctx.waitFor('approved', { timeout: '1h' }));
    const waits = await job.run();
    job.meanwhile.approved = { signal: { payload: 'just', at: 1 } };
    expect(await job.runAfter(waits)).toMatchObject({ status: 'completed', result: 'just' });
  });

  it('that does not come in time ends the job when the handler does not catch it', async () => {
    const job = new OneJob((ctx) => ctx.waitFor('approved', { timeout: '1h' }));
    const { error } = await job.runAfter(await job.run());
    expect(error).toMatchObject({
      type: 'SignalTimeoutError',
      classes: expect.arrayContaining(['UnrecoverableError']),
    });
  });
});
