/** Chunked handlers on their own: what they are made of, and what a call of them comes to. */
import { describe, expect, it } from 'vitest';
import { batched, defineHandlers, discard, type Job, type JobsOf, retryIn, snooze } from '../../src/handler';
import { runBatch, runHandler } from '../../src/testing';

const run = () => undefined;
const quiet = { log: () => undefined };

describe('a mistake in the options of a chunked handler is a TypeError that names the option', () => {
  it.each<[string, unknown, RegExp]>([
    ['no options', undefined, /size and wait/],
    ['a size of 0', { size: 0, wait: 0 }, /size must be a whole number of 1 to 1000, not 0/],
    ['a size of 1001', { size: 1001, wait: 0 }, /size/],
    ['a fraction', { size: 1.5, wait: 0 }, /size/],
    ['no wait', { size: 10 }, /wait must be a duration of up to an hour/],
    ['a wait above an hour', { size: 10, wait: '61m' }, /wait/],
    ['a wait that is none', { size: 10, wait: 'soon' }, /wait/],
    ['another key', { size: 10, wait: 0, by: 'tenant' }, /by must be "group"/],
    ['an unknown option', { size: 10, wait: 0, bytes: 5 }, /unknown option "bytes"/],
  ])('%s', (_, options, message) => {
    expect(() => batched(options as never, run)).toThrow(TypeError);
    expect(() => batched(options as never, run)).toThrow(message);
  });

  it('no function', () => {
    expect(() => batched({ size: 1, wait: 0 }, 'run' as never)).toThrow(TypeError);
  });
});

describe('a Worker with chunked handlers', () => {
  it('announces how their jobs are gathered, also beside other settings', async () => {
    const worker = defineHandlers({
      'rows.insert': batched({ size: 100, wait: '5s', by: 'group' }, run),
      'rows.delete': { handler: batched({ size: 10, wait: 0 }, run), timeoutMs: 500, concurrency: 2 },
    });
    const announcement = await (await worker.fetch(new Request('http://handler/.well-known/tocsin'), {})).json();
    expect(announcement).toMatchObject({
      types: [
        { type: 'rows.insert', batch: { size: 100, wait_ms: 5_000, by: 'group' } },
        { type: 'rows.delete', timeout_ms: 500, concurrency: 2, batch: { size: 10, wait_ms: 0 } },
      ],
    });
  });

  it('knows the arguments of their jobs', () => {
    const worker = defineHandlers({
      'rows.insert': batched({ size: 1, wait: 0 }, (jobs: readonly Job<[{ id: number }]>[]) => jobs.map(() => 1)),
    });
    const args: JobsOf<typeof worker>['rows.insert'] = [{ id: 7 }];
    // @ts-expect-error the id is a number
    const wrong: JobsOf<typeof worker>['rows.insert'] = [{ id: 'seven' }];
    expect([args, wrong]).toHaveLength(2);
  });
});

/** A schema of Standard Schema that takes a number. */
const aNumber = {
  '~standard': {
    version: 1 as const,
    vendor: 'test',
    validate: (value: unknown) =>
      typeof (value as unknown[])[0] === 'number'
        ? { value: value as [number] }
        : { issues: [{ message: 'no number' }] },
  },
};

describe('a call of a chunked handler', () => {
  const seen: unknown[] = [];
  const failed: string[] = [];
  const handlers = defineHandlers(
    {
      'rows.insert': {
        args: aNumber,
        handler: batched({ size: 3, wait: '1s' }, (jobs: readonly Job<[number]>[], ctx) => {
          seen.push(jobs.map(({ args: [n] }) => n));
          ctx.log.info('inserting', { rows: jobs.length });
          for (const job of jobs) {
            if (job.args[0] === -1) ctx.fail(job, discard('gone'));
            if (job.args[0] === -2) ctx.fail(job, retryIn('30s'));
            if (job.args[0] === -3) ctx.fail(job, snooze('10m'));
            if (job.args[0] === -4) ctx.fail({ id: 'other' }, new Error('no'));
          }
          return jobs.map(({ args: [n] }) => n * 2);
        }),
      },
    },
    {
      ...quiet,
      use: [
        async (job, _ctx, next) => {
          seen.push(`around ${job.type}`);
          return await next();
        },
      ],
      onFailed: (job) => void failed.push(job.id),
    },
  );
  const outcomes = async (...args: unknown[]) => {
    seen.length = 0;
    failed.length = 0;
    return await runBatch(handlers, 'rows.insert', args.map((arg) => [arg]) as never);
  };

  it('gives each job its result, inside of the middleware, and its log to the first', async () => {
    const runs = await outcomes(1, 2, 3);
    expect(runs.map(({ result }) => result)).toEqual([2, 4, 6]);
    expect(runs.map(({ log }) => log.length)).toEqual([1, 0, 0]);
    expect(seen).toEqual(['around rows.insert', [1, 2, 3]]);
  });

  it('has no more jobs than the handler takes', async () => {
    const runs = await outcomes(1, 2, 3, 4);
    expect(runs.map(({ result }) => result)).toEqual([2, 4, 6, 8]);
    expect(seen).toHaveLength(4);
  });

  it('gives a failed job what would have been thrown, and calls the hooks for it alone', async () => {
    const [discarded, later, asleep] = await outcomes(-1, -2, -3);
    expect(discarded).toMatchObject({ status: 'failed', isLast: true, error: { code: 'DISCARD', message: 'gone' } });
    expect(later).toMatchObject({ status: 'failed', isLast: false, error: { retryIn: 30_000 } });
    expect(asleep).toMatchObject({ status: 'snoozed' });
    expect(failed).toHaveLength(2);
  });

  it('fails a job whose arguments do not match, and does not show it to the handler', async () => {
    const runs = await outcomes(1, 'two', 3);
    expect(runs.map(({ status }) => status)).toEqual(['completed', 'failed', 'completed']);
    expect(runs[1]).toMatchObject({ isLast: true, error: { code: 'invalid_args' } });
    expect(runs[2]).toMatchObject({ result: 6 });
    expect(seen).toEqual(['around rows.insert', [1, 3]]);
  });

  it('fails where it names a job of another call', async () => {
    for (const one of await outcomes(1, -4)) {
      expect(one).toMatchObject({
        status: 'failed',
        error: { type: 'TypeError', message: expect.stringContaining('one of the jobs') },
      });
    }
  });

  it('has one job where only one is run', async () => {
    expect(await runHandler(handlers, 'rows.insert', [4] as never)).toMatchObject({ status: 'completed', result: 8 });
  });

  it('says what it cannot do, because that belongs to a single job', async () => {
    const verbs = ['step', 'sleep', 'sleepUntil', 'waitFor', 'progress', 'checkpoint', 'enqueue'];
    for (const verb of verbs) {
      const asking = defineHandlers(
        {
          'a.b': batched({ size: 2, wait: 0 }, (_jobs, ctx) => (ctx as never as Record<string, () => never>)[verb]?.()),
        },
        quiet,
      );
      const [asked] = await runBatch(asking, 'a.b', [[], []]);
      expect(asked).toMatchObject({ status: 'failed', error: { message: expect.stringContaining(`ctx.${verb}`) } });
    }
  });
});
