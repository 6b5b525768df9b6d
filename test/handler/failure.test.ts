import { describe, expect, it } from 'vitest';
import {
  type Duration,
  deadLetter,
  defineHandlers,
  discard,
  fail,
  kill,
  type LogLine,
  type RetryFunction,
  retryAt,
  retryIn,
  UnrecoverableError,
} from '../../src/handler';
import { failureOf } from '../../src/handler/failure';
import { deliverOne, quiet, type TestJob } from './deliver';

class PaymentError extends Error {}
class PoisonPill extends UnrecoverableError {}

describe('a thrown error', () => {
  it('is reported with its message, class and ancestors', () => {
    expect(failureOf(new PaymentError('declined'))).toEqual({
      code: 'handler_error',
      type: 'PaymentError',
      message: 'declined',
      classes: ['PaymentError', 'Error'],
      stack: expect.stringMatching(/^Error: declined\n +at .*failure\.test/),
    });
  });

  it('has a stack of bounded length, unless the handler meant it', () => {
    const deep = Object.assign(new Error('deep'), { stack: `Error: deep\n${'    at here\n'.repeat(1000)}` });
    expect(failureOf(deep).stack?.length).toBe(4096);
    for (const meant of [discard('x'), fail('x'), retryIn(1), retryAt(0)]) {
      expect(failureOf(meant)).not.toHaveProperty('stack');
    }
    expect(failureOf(deadLetter('x')).stack).toContain('x');
  });

  it('names its kind by its own type', () => {
    const error = Object.assign(new Error('expired'), { type: 'auth.token_expired' });
    expect(failureOf(error)).toMatchObject({ type: 'auth.token_expired', classes: ['Error'] });
  });

  it('of the plain class is named by its own name', () => {
    const named = Object.assign(new Error('gone'), { name: 'CardDeclined' });
    expect(failureOf(named)).toMatchObject({ type: 'CardDeclined', classes: ['CardDeclined', 'Error'] });
    const ofClass = Object.assign(new PaymentError('gone'), { name: 'CardDeclined' });
    expect(failureOf(ofClass)).toMatchObject({
      type: 'PaymentError',
      classes: ['PaymentError', 'CardDeclined', 'Error'],
    });
  });

  it('that is an UnrecoverableError, or a subclass of one, says so in its classes', () => {
    expect(failureOf(new UnrecoverableError('x')).classes).toEqual(['UnrecoverableError', 'Error']);
    expect(failureOf(new PoisonPill('x')).classes).toEqual(['PoisonPill', 'UnrecoverableError', 'Error']);
  });

  it('of a foreign class named UnrecoverableError is recognised by that name', () => {
    const foreign = { UnrecoverableError: class extends Error {} };
    const named = Object.assign(new Error('x'), { name: 'UnrecoverableError' });
    expect(failureOf(new foreign.UnrecoverableError('x')).classes).toContain('UnrecoverableError');
    expect(failureOf(named).classes).toEqual(['UnrecoverableError', 'Error']);
  });

  it('of another realm is read like one of this realm', () => {
    // What a `node:vm` context or a test runner throws: an error whose classes descend from another Object.
    const root = Object.create(null);
    const base = Object.assign(Object.create(root), { name: 'Error', constructor: { Error: class {} }.Error });
    const own = Object.assign(Object.create(base), {
      constructor: { UnrecoverableError: class {} }.UnrecoverableError,
    });
    const foreign = Object.setPrototypeOf(new Error('x'), own);
    expect(foreign).not.toBeInstanceOf(Error);
    expect(failureOf(foreign)).toMatchObject({ message: 'x', classes: ['UnrecoverableError', 'Error'] });
  });

  it('whose class was renamed by a minifier is still an UnrecoverableError', () => {
    class a extends UnrecoverableError {}
    expect(failureOf(new a('x')).classes).toContain('UnrecoverableError');
  });

  it('that came from an aborted fetch is recognised by its name', () => {
    expect(failureOf(new DOMException('stop', 'AbortError'))).toMatchObject({ type: 'AbortError', message: 'stop' });
  });

  it('brings its details when they are JSON and leaves them out otherwise', () => {
    expect(failureOf(Object.assign(new Error(), { details: { order: 7 } })).details).toEqual({ order: 7 });
    expect(failureOf(Object.assign(new Error(), { details: { order: 7n } }))).not.toHaveProperty('details');
    expect(failureOf(Object.assign(new Error(), { details: 'x'.repeat(70_000) }))).not.toHaveProperty('details');
  });

  it('has a message of bounded length without half surrogate pairs', () => {
    const { message } = failureOf(new Error(`\uD800${'x'.repeat(100_000)}`));
    expect(message.length).toBe(8192);
    expect(message.startsWith('\uFFFDx')).toBe(true);
  });

  it('is not given a response code by a property it happens to have', () => {
    expect(failureOf(Object.assign(new Error(), { code: 'DISCARD' })).code).toBe('handler_error');
  });
});

describe('a thrown value that is no error', () => {
  it.each([
    ['text', 'text'],
    [42, '42'],
    [undefined, 'undefined'],
    [null, 'null'],
    [{ reason: 'x' }, '{"reason":"x"}'],
    [{ message: 'said' }, 'said'],
  ])('%j is reported as a message', (thrown, message) => {
    expect(failureOf(thrown)).toEqual({ code: 'handler_error', message });
  });

  it.each([
    [
      'a proxy that throws',
      new Proxy(
        {},
        {
          get: () => {
            throw new Error('trap');
          },
        },
      ),
    ],
    ['an object without prototype', Object.create(null)],
    ['a symbol', Symbol('s')],
    [
      'a circle',
      (() => {
        const o: { o?: unknown } = {};
        o.o = o;
        return o;
      })(),
    ],
  ])('%s does no harm', (_, thrown) => {
    expect(failureOf(thrown)).toMatchObject({ code: 'handler_error', message: expect.any(String) });
  });
});

describe('an outcome that is thrown', () => {
  it.each([
    [discard('gone'), { code: 'DISCARD', type: 'DiscardError', message: 'gone' }],
    [fail('bounced'), { code: 'FAIL', type: 'FailError', message: 'bounced' }],
    [deadLetter('look', { details: [1] }), { code: 'DEAD_LETTER', type: 'DeadLetterError', details: [1] }],
    [kill('off', { type: 'ops.stop' }), { code: 'handler_error', kill: true, type: 'ops.stop' }],
    [retryIn('1.5m', 'busy'), { code: 'RETRY', retry_in: 90_000, message: 'busy' }],
    [retryIn(250), { code: 'RETRY', retry_in: 250 }],
    [retryAt('2030-01-01T01:00:00+01:00'), { code: 'RETRY', retry_at: '2030-01-01T00:00:00.000Z' }],
    [retryAt(new Date(0)), { code: 'RETRY', retry_at: '1970-01-01T00:00:00.000Z' }],
  ])('%s reaches the queue', (error, expected) => {
    expect(failureOf(error)).toMatchObject(expected);
  });

  it.each([['soon'], [-1], [Number.NaN], [Number.POSITIVE_INFINITY], ['P1M'], ['P'], ['PT'], ['']])(
    'refuses %j as a duration',
    (duration) => {
      expect(() => retryIn(duration as Duration)).toThrow(TypeError);
    },
  );

  it('refuses a time that does not exist', () => {
    expect(() => retryAt('tomorrow-ish')).toThrow(TypeError);
  });
});

describe('a retry function', () => {
  const fails = () => {
    throw new PaymentError('declined');
  };
  const failWith = async (retry: RetryFunction, job: Partial<TestJob> = {}, handler: () => unknown = fails) => {
    const lines: LogLine[] = [];
    const worker = defineHandlers({ a: { handler, retry } }, quiet(lines));
    const { error } = await deliverOne(worker, {}, { type: 'a', ...job });
    return { error, complaints: lines.filter((line) => line.message.includes('retry function')) };
  };

  it('is asked with the number of earlier retries, from 0, and the error', async () => {
    const asked: unknown[] = [];
    const retry: RetryFunction = (attempt, error) => {
      asked.push([attempt, error instanceof PaymentError]);
      return '2m';
    };
    expect((await failWith(retry, { attempt: 1 })).error).toMatchObject({ code: 'handler_error', retry_in: 120_000 });
    await failWith(retry, { attempt: 5 });
    expect(asked).toEqual([
      [0, true],
      [4, true],
    ]);
  });

  it('decides after a timeout too', async () => {
    const hang = () => new Promise(() => undefined);
    expect((await failWith(() => 5, { timeout_ms: 5 }, hang)).error).toMatchObject({ code: 'timeout', retry_in: 5 });
  });

  it('may answer a fraction of a millisecond', async () => {
    expect((await failWith(() => 10.4)).error?.retry_in).toBe(10);
  });

  it.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('bug');
      },
    ],
    ['answers nothing', () => undefined],
    ['answers NaN', () => Number.NaN],
    ['answers a negative number', () => -5],
    ['answers a word', () => 'later'],
    ['answers a promise that rejects', () => Promise.reject(new Error('bug'))],
  ])('that %s leaves the delay to the queue and is logged', async (_, retry) => {
    const { error, complaints } = await failWith(retry as RetryFunction);
    expect(error).toMatchObject({ code: 'handler_error', message: 'declined' });
    expect(error).not.toHaveProperty('retry_in');
    expect(complaints).toHaveLength(1);
  });

  it.each([[discard('x')], [deadLetter('x')], [kill('x')], [new PoisonPill('x')]])(
    'is not asked when the handler threw %s',
    async (thrown) => {
      const { error } = await failWith(
        () => 5,
        {},
        () => {
          throw thrown;
        },
      );
      expect(error).not.toHaveProperty('retry_in');
    },
  );

  it('does not replace the time a handler asked for', async () => {
    const { error } = await failWith(
      () => 5,
      {},
      () => {
        throw retryIn('1h');
      },
    );
    expect(error?.retry_in).toBe(3_600_000);
  });

  it.each([['PaymentError'], ['handler_error'], ['Payment.*']])(
    'does not outrank non_retryable_errors of the job (%s)',
    async (entry) => {
      const listed = { retry_effective: { non_retryable_errors: [entry] } };
      const thrown = () => {
        throw Object.assign(new PaymentError('x'), entry.endsWith('*') ? { type: 'Payment.x' } : {});
      };
      expect((await failWith(() => 5, listed, thrown)).error).not.toHaveProperty('retry_in');
    },
  );
});
