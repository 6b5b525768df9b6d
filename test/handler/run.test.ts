import { describe, expect, it } from 'vitest';
import { deadLetter, defineHandlers, discard, fail, type LogLine, retryAt, retryIn, snooze } from '../../src/handler';
import { deliver, deliverOne, post, quiet } from './deliver';

const never = new Promise<never>(() => undefined);

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

describe('jobs of one batch', () => {
  it('settle each on their own, whatever one of them does', async () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const handlers = {
      'test.fine': () => 'fine',
      'test.async': async () => ({ deep: [1] }),
      'test.throw': () => {
        throw new Error('thrown');
      },
      'test.reject': () => Promise.reject(new RangeError('rejected')),
      'test.hang': () => never,
      'test.bigint': () => 1n,
      'test.circle': () => circle,
      'test.toobig': () => 'x'.repeat(1_048_576),
      'test.tojson': () => ({
        toJSON() {
          throw new Error('no JSON');
        },
      }),
      'test.then': () => ({
        // biome-ignore lint/suspicious/noThenProperty: a handler may return such a thing
        get then() {
          throw new Error('bad thenable');
        },
      }),
    };
    const jobs = Object.keys(handlers).map((type) => ({ type, timeout_ms: 20 }));
    const results = await deliver(defineHandlers(handlers, quiet()), {}, ...jobs);
    expect(results.map((result) => result.result ?? result.error?.type)).toEqual([
      'fine',
      { deep: [1] },
      'Error',
      'RangeError',
      'timeout',
      'UnserialisableResult',
      'UnserialisableResult',
      'result_too_large',
      'UnserialisableResult',
      'Error',
    ]);
  });

  it('run at the same time', async () => {
    let arrived = 0;
    let open: () => void = () => undefined;
    const allHere = new Promise<void>((resolve) => {
      open = resolve;
    });
    const worker = defineHandlers(async () => {
      arrived += 1;
      if (arrived === 3) open();
      await allHere;
    }, quiet());
    const results = await deliver(worker, {}, { type: 'a' }, { type: 'a' }, { type: 'a' });
    expect(results.map((result) => result.status)).toEqual(['completed', 'completed', 'completed']);
  });
});

describe('a result', () => {
  it.each([
    ['null', null, { status: 'completed', result: null }],
    ['false', false, { status: 'completed', result: false }],
    ['undefined', undefined, { status: 'completed' }],
  ])('of %s is distinguished from none', async (_, value, expected) => {
    expect(
      await deliverOne(
        defineHandlers(() => value, quiet()),
        {},
        { type: 'a' },
      ),
    ).toMatchObject(expected);
    expect(
      'result' in
        (await deliverOne(
          defineHandlers(() => value, quiet()),
          {},
          { type: 'a' },
        )),
    ).toBe('result' in expected);
  });

  it('may have exactly 1 MiB of JSON', async () => {
    const worker = defineHandlers(() => 'x'.repeat(1_048_574), quiet());
    expect((await deliverOne(worker, {}, { type: 'a' })).status).toBe('completed');
  });

  it.each([
    ['half of an emoji', { text: '\ud83d' }, 'result_not_text'],
    ['half of an emoji in a name', [{ '\ude00': 1 }], 'result_not_text'],
    ['101 levels', nested(101), 'result_too_deep'],
    ['100,000 levels', nested(100_000), 'result_too_deep'],
    ['more than 1 MiB', 'é'.repeat(600_000), 'result_too_large'],
  ])('of %s fails its run before it is sent, for good', async (_, value, code) => {
    const worker = defineHandlers(() => value, quiet());
    expect(await deliverOne(worker, {}, { type: 'a' })).toMatchObject({
      status: 'failed',
      error: { code, type: code, retryable: false },
    });
  });

  it.each([
    ['100 levels', nested(100)],
    ['a whole emoji', { '😀': '\ud83d\ude00' }],
    ['the text of an escape', '\\ud83d'],
    ['brackets in a text', '["'.repeat(200)],
  ])('of %s is kept', async (_, value) => {
    const worker = defineHandlers(() => value, quiet());
    expect(await deliverOne(worker, {}, { type: 'a' })).toMatchObject({ status: 'completed', result: value });
  });

  it('is measured in bytes, not characters', async () => {
    const worker = defineHandlers(() => 'é'.repeat(600_000), quiet());
    expect((await deliverOne(worker, {}, { type: 'a' })).error?.type).toBe('result_too_large');
  });
});

describe('a snooze', () => {
  it('runs the job later, uses no attempt, and says why in its log', async () => {
    const lines: LogLine[] = [];
    const worker = defineHandlers(() => Promise.reject(snooze('10m', 'not ready')), quiet(lines));
    expect(await deliverOne(worker, {}, { type: 'a' })).toEqual({
      delivery_id: 'del_0',
      status: 'snoozed',
      in: 600_000,
      log: [{ at: expect.any(Number), level: 'info', message: 'not ready' }],
    });
    expect(lines).toMatchObject([{ level: 'info', reason: 'not ready', in_ms: 600_000 }]);
  });

  it.each<[never]>([['soon' as never], [-1 as never], ['36501d' as never]])('of %j is a mistake', (duration) => {
    expect(() => snooze(duration)).toThrow(/^snooze: /);
  });
});

describe('the timeout', () => {
  it("fails the job and aborts the handler's signal", async () => {
    let given: AbortSignal | undefined;
    const worker = defineHandlers((_job, { signal }) => {
      given = signal;
      return never;
    }, quiet());
    const result = await deliverOne(worker, {}, { type: 'a', timeout_ms: 5 });
    expect(result.error).toMatchObject({ code: 'timeout', type: 'timeout', message: expect.stringContaining('5 ms') });
    expect(given?.reason).toBeInstanceOf(Error);
  });

  it("is the handler's own when the job names none", async () => {
    const worker = defineHandlers({ a: { handler: () => never, timeoutMs: 7 } }, quiet());
    expect((await deliverOne(worker, {}, { type: 'a' })).error?.message).toContain('7 ms');
  });

  it("is the job's own when both name one", async () => {
    const worker = defineHandlers({ a: { handler: () => never, timeoutMs: 60_000 } }, quiet());
    expect((await deliverOne(worker, {}, { type: 'a', timeout_ms: 6 })).error?.message).toContain('6 ms');
  });

  it('of a handler that stops on its signal is still reported as a timeout', async () => {
    const worker = defineHandlers(
      (_job, { signal }) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('gave up')))),
      quiet(),
    );
    expect((await deliverOne(worker, {}, { type: 'a', timeout_ms: 5 })).error?.code).toBe('timeout');
  });
});

describe('the signal', () => {
  it('aborts when the caller hangs up', async () => {
    const caller = new AbortController();
    const worker = defineHandlers(
      (_job, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => resolve('told'));
          caller.abort();
        }),
      quiet(),
    );
    const request = post({ job: { id: '1', type: 'a', args: [] } });
    const withSignal = new Request(request, { signal: caller.signal });
    expect(await (await worker.fetch(withSignal, {})).json()).toEqual({ status: 'completed', result: 'told' });
  });
});

describe('concurrency', () => {
  it('bounds the runs of a type over several calls and runs all of them', async () => {
    let running = 0;
    let most = 0;
    const handler = async () => {
      running += 1;
      most = Math.max(most, running);
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
      running -= 1;
      return 'ran';
    };
    const worker = defineHandlers({ a: { handler, concurrency: 2 } }, quiet());
    const batch = Array.from({ length: 5 }, () => ({ type: 'a' }));
    const results = await Promise.all([deliver(worker, {}, ...batch), deliver(worker, {}, ...batch)]);
    expect(results.flat().map((result) => result.result)).toEqual(Array(10).fill('ran'));
    expect(most).toBe(2);
  });

  it('gives the slot of a job that timed out to the next one', async () => {
    const handler = (job: { args: unknown[] }) => (job.args[0] === 'hang' ? never : 'ran');
    const worker = defineHandlers({ a: { handler, concurrency: 1 } }, quiet());
    const results = await deliver(
      worker,
      {},
      { type: 'a', args: ['hang'], timeout_ms: 5 },
      { type: 'a', timeout_ms: 5000 },
    );
    expect(results.map((result) => result.result ?? result.error?.code)).toEqual(['timeout', 'ran']);
  });

  it('counts the wait for a slot towards the timeout', async () => {
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const started: unknown[] = [];
    const handler = async (job: { args: unknown[] }) => {
      started.push(job.args[0]);
      await gate;
    };
    const worker = defineHandlers({ a: { handler, concurrency: 1 } }, quiet());
    const first = deliverOne(worker, {}, { type: 'a', args: ['first'], timeout_ms: 5000 });
    const second = await deliverOne(worker, {}, { type: 'a', args: ['second'], timeout_ms: 5 });
    open();
    expect((await first).status).toBe('completed');
    expect(second.error?.code).toBe('timeout');
    expect(started).toEqual(['first']);
  });
});

describe('the log', () => {
  it('carries the job id, type and attempt in every line', async () => {
    const lines: LogLine[] = [];
    const worker = defineHandlers((_job, { log }) => log.info('half way', { percent: 50 }), quiet(lines));
    await deliverOne(worker, {}, { type: 'a.b', id: 'job-x', attempt: 2 });
    expect(lines).toEqual([
      {
        level: 'info',
        message: 'half way',
        percent: 50,
        job_id: 'job-x',
        type: 'a.b',
        attempt: 2,
        delivery_id: 'del_0',
      },
    ]);
  });

  it('has a line with the stack of a job that failed', async () => {
    const lines: LogLine[] = [];
    const worker = defineHandlers(() => {
      throw new Error('broken');
    }, quiet(lines));
    await deliverOne(worker, {}, { type: 'a' });
    expect(lines).toMatchObject([{ level: 'error', error: 'broken', stack: expect.stringContaining('broken') }]);
  });

  it.each([
    ['discard', discard('meant'), 'info'],
    ['fail', fail('meant'), 'info'],
    ['retryIn', retryIn('1h', 'meant'), 'info'],
    ['retryAt', retryAt(0, 'meant'), 'info'],
    ['deadLetter', deadLetter('meant'), 'error'],
  ])('says what the handler meant by %s', async (_, thrown, level) => {
    const lines: LogLine[] = [];
    await deliverOne(
      defineHandlers(() => Promise.reject(thrown), quiet(lines)),
      {},
      { type: 'a' },
    );
    expect(lines).toMatchObject([{ level, error: 'meant' }]);
  });

  it('never fails a job, even when it cannot be written', async () => {
    const log = () => {
      throw new Error('disk full');
    };
    const worker = defineHandlers((_job, ctx) => ctx.log.warn('x'), { log });
    expect((await deliverOne(worker, {}, { type: 'a' })).status).toBe('completed');
  });
});
