import { describe, expect, it } from 'vitest';
import { until } from '../../../support/clock';
import { handler, runsOf } from '../../../support/handlers';
import { type Json, server } from '../../../support/server';

const ENDED = ['completed', 'retryable', 'discarded'];

/** Pushes a job to the Worker without the library and waits for what its answer led to. */
async function answered(order: Json, options: Json = {}, type = 'plain.order'): Promise<Json> {
  const id = await server.add(type, [order], { queue: 'answers', ...options });
  return server.jobIn(id, ENDED);
}

const failure = (change: Json) => JSON.stringify({ status: 'failed', error: change });

describe('an answer to a single delivery', () => {
  it.each([
    ['an empty body', { status: 204 }],
    ['an empty 200', { status: 200 }],
    ['text', { body: 'ok' }],
    ['an object without status', { body: '{"done":true}' }],
    ['an array', { body: '[{"status":"failed"}]' }],
    ['a number', { status: 202, body: '7' }],
    ['half an object', { body: '{"status":"fai' }],
  ])('of 2xx with %s completes the job and stores nothing', async (_, order) => {
    const done = await answered(order);
    expect(done).toMatchObject({ state: 'completed', attempt: 1 });
    expect(done).not.toHaveProperty('result');
    expect(done).not.toHaveProperty('error');
  });

  it.each([
    ['an object', { a: [1, 'ü'] }],
    ['null', null],
    ['false', false],
  ])('of `completed` stores a result that is %s', async (_, result) => {
    expect(await answered({ body: JSON.stringify({ status: 'completed', result }) })).toMatchObject({
      state: 'completed',
      result,
    });
  });

  it('of `failed` is retried with its error on record', async () => {
    const error = { code: 'E_MAIL', type: 'Mail.Down', message: 'no route', details: { host: 'a' } };
    const failed = await answered({ body: failure(error) });
    expect(failed).toMatchObject({ state: 'retryable', attempt: 1, error, errors: [{ ...error, attempt: 1 }] });
  });

  it('of `failed` takes the error as text, or none', async () => {
    expect(await answered({ body: '{"status":"failed","error":"broken"}' })).toMatchObject({
      state: 'retryable',
      error: { code: 'handler_error', message: 'broken' },
    });
    expect(await answered({ body: '{"status":"failed"}' })).toMatchObject({
      state: 'retryable',
      error: { code: 'handler_error', message: '' },
    });
  });

  it.each(['done', 'COMPLETED', 7, null])('with the status %j is invalid and retried', async (status) => {
    expect(await answered({ body: JSON.stringify({ status }) })).toMatchObject({
      state: 'retryable',
      error: { code: 'invalid_response' },
    });
  });

  it.each([400, 402, 409, 410, 418, 422, 451, 499])('of %i is not retried', async (status) => {
    expect(await answered({ status })).toMatchObject({
      state: 'discarded',
      error: { code: 'handler_error', retryable: false },
      errors: [{ reason: 'non_retryable' }],
    });
  });

  it('that redirects is not followed: the job was not done', async () => {
    const moved = await answered({ status: 303, headers: { Location: '/elsewhere' } });
    expect(moved).toMatchObject({ state: 'discarded', errors: [{ reason: 'non_retryable' }] });
  });

  it.each([408, 425, 500, 502, 503, 599])('of %i is retried', async (status) => {
    expect(await answered({ status, body: 'Service Unavailable' })).toMatchObject({
      state: 'retryable',
      attempt: 1,
      error: { code: 'handler_error', message: `The handler answered ${status}.` },
    });
  });

  it('of 429 is retried after Retry-After at the earliest, in seconds or as a date', async () => {
    const delay = async (header: Record<string, string>) =>
      (await answered({ status: 429, headers: header })).retry_delay_ms as number;
    expect(await delay({ 'Retry-After': '120' })).toBe(120_000);
    expect(await delay({ 'Retry-After': '90.5' })).toBe(90_500);
    const dated = await delay({ 'Retry-After': new Date(Date.now() + 600_000).toUTCString() });
    expect(dated).toBeGreaterThan(590_000);
    expect(dated).toBeLessThanOrEqual(600_000);
    // No longer than a day, whatever is asked.
    for (const far of ['Fri, 31 Dec 9999 23:59:59 GMT', '9999-12-31T00:00:00Z', '99999999999999', '9'.repeat(400)])
      expect(await delay({ 'Retry-After': far })).toBe(86_400_000);
    expect(await delay({ 'Retry-After': 'soon' })).toBeLessThanOrEqual(1_500);
    expect(await delay({ 'Retry-After': '0' })).toBeGreaterThanOrEqual(500);
  });

  it('of 429 does not shorten a longer backoff', async () => {
    const retry = { initial_interval: 'PT4M', jitter: false };
    expect(await answered({ status: 429, headers: { 'Retry-After': '1' } }, { retry })).toMatchObject({
      retry_delay_ms: 240_000,
    });
  });

  it('that is an uncaught exception is a crash, and retried', async () => {
    expect(await answered({ do: 'throw' })).toMatchObject({
      state: 'retryable',
      error: { type: 'tocsin.crash', message: expect.stringContaining('uncaught in the handler Worker') },
    });
  });

  it('that is an uncaught exception is a dead letter where the policy says so', async () => {
    const dead = await answered({ do: 'throw' }, { retry: { on_crash: 'dead_letter' } });
    expect(dead).toMatchObject({ state: 'discarded', attempt: 1, errors: [{ reason: 'crash' }] });
  });

  it('that is an exception called TimeoutError is a crash too, not a timeout of the delivery', async () => {
    expect(await answered({ do: 'timeout' })).toMatchObject({ error: { type: 'tocsin.crash' } });
  });

  it('that never comes is a timeout, retried, and the handler is notified by its signal', async () => {
    const id = await server.add('plain.order', [{ do: 'hang' }], { queue: 'answers' });
    expect(await server.jobIn(id, ENDED)).toMatchObject({
      state: 'retryable',
      error: { code: 'timeout', type: 'timeout', message: 'No answer within 300 ms.' },
    });
    await until(async () => (await runsOf('PLAIN', id))[0]?.aborted, 'the signal of the request to abort');
  });

  it('that never comes is waited for as long as the job says', async () => {
    const timedOut = await answered({ do: 'hang' }, { timeout_ms: 40 });
    expect(timedOut).toMatchObject({ error: { code: 'timeout', message: 'No answer within 40 ms.' } });
    expect((timedOut.errors as Json[])[0]?.duration_ms).toBeLessThan(290);
  });

  it('with a result above 1 MiB fails for good, and says so', async () => {
    const id = await server.add('work.do', [{ do: 'large' }], { queue: 'answers', retry: { max_attempts: 1 } });
    expect(await server.jobIn(id, ENDED)).toMatchObject({
      state: 'discarded',
      error: { message: expect.stringContaining('1048576') },
    });
  });
});

describe('a target that refuses the delivery', () => {
  it.each([401, 403, 404, 405])('with %i makes a dead letter at once, whatever the policy', async (status) => {
    // A queue of its own: five refusals in a row stop a target.
    const dead = await answered({ status }, { queue: `refused-${status}`, retry: { on_exhaustion: 'discard' } });
    expect(dead).toMatchObject({ state: 'discarded', attempt: 1, errors: [{ reason: 'target_rejected' }] });
    expect(await server.events({ queue: `refused-${status}`, types: 'job.discarded' })).toMatchObject([
      { data: { job_id: dead.id, reason: 'target_rejected', dead_letter: true } },
    ]);
  });

  it('five times in a row is stopped', async () => {
    for (let n = 0; n < 5; n++) {
      const id = await server.add('plain.order', [{ status: 404 }], { queue: 'refusing' });
      await server.jobIn(id, 'discarded');
    }
    expect(await server.events({ queue: 'refusing', types: 'queue.push_suspended' })).toMatchObject([
      { data: { target: 'PLAIN' } },
    ]);
    const waiting = await server.add('plain.order', [{}], { queue: 'refusing' });
    expect(await server.job(waiting)).toMatchObject({ state: 'available', attempt: 0 });
  });
});

describe('an error in the body of a failing status', () => {
  it('supplies code and message, and the status decides about retrying', async () => {
    const body = JSON.stringify({ error: { code: 'E_DB', message: 'locked' } });
    expect(await answered({ status: 500, body })).toMatchObject({
      state: 'retryable',
      error: { code: 'E_DB', message: 'locked' },
    });
    expect(await answered({ status: 422, body })).toMatchObject({
      state: 'discarded',
      error: { code: 'E_DB', message: 'locked' },
      errors: [{ reason: 'non_retryable' }],
    });
  });

  it('decides about retrying when it says so', async () => {
    const body = (retryable: boolean) => JSON.stringify({ error: { code: 'E', message: 'm', retryable } });
    expect(await answered({ status: 500, body: body(false) })).toMatchObject({ state: 'discarded' });
    expect(await answered({ status: 422, body: body(true) })).toMatchObject({ state: 'retryable' });
  });

  it('decides about retrying by its code', async () => {
    const body = (code: string) => JSON.stringify({ error: { code, message: 'm' } });
    expect(await answered({ status: 422, body: body('retry') })).toMatchObject({ state: 'retryable' });
    expect(await answered({ status: 500, body: body('Discard') })).toMatchObject({
      errors: [{ reason: 'discard_code' }],
    });
  });
});

describe('a response code', () => {
  it.each([
    ['DISCARD', 'discard_code', false],
    ['discard', 'discard_code', false],
    ['Fail', 'fail_code', false],
    ['DEAD_LETTER', 'dead_letter_code', true],
    ['dead_letter', 'dead_letter_code', true],
  ])('%s ends the job with the reason %s', async (code, reason, dead) => {
    const queue = `code-${code.toLowerCase().replace('_', '-')}-${code === code.toUpperCase()}`;
    const ended = await answered({ body: failure({ code, type: 'Own.Class', message: 'm' }) }, { queue });
    expect(ended).toMatchObject({ state: 'discarded', attempt: 1, error: { type: 'Own.Class' }, errors: [{ reason }] });
    expect(await server.events({ queue, types: 'job.discarded' })).toMatchObject([
      { data: { reason, dead_letter: dead } },
    ]);
  });

  it('RETRY retries even what is said to be not retryable, but not beyond the attempts', async () => {
    const order = { body: failure({ code: 'retry', message: 'm', retryable: false }) };
    expect(await answered(order)).toMatchObject({ state: 'retryable' });
    expect(await answered(order, { max_attempts: 1 })).toMatchObject({ errors: [{ reason: 'retries_exhausted' }] });
  });

  it('RETRY does not outrank the list of non-retryable errors', async () => {
    const retry = { non_retryable_errors: ['auth.*'] };
    const order = { body: failure({ code: 'RETRY', type: 'auth.expired', message: 'm' }) };
    expect(await answered(order, { retry })).toMatchObject({ errors: [{ reason: 'non_retryable' }] });
  });
});

describe('an error that says more', () => {
  it('with kill is a dead letter', async () => {
    expect(await answered({ body: failure({ message: 'm', kill: true }) })).toMatchObject({
      errors: [{ reason: 'killed' }],
    });
  });

  it('of a class below UnrecoverableError is a dead letter, by exact name', async () => {
    const classes = ['PoisonPill', 'UnrecoverableError', 'Error'];
    expect(await answered({ body: failure({ message: 'm', classes }) })).toMatchObject({
      error: { type: 'PoisonPill' },
      errors: [{ reason: 'unrecoverable' }],
    });
    const similar = ['MyUnrecoverableError', 'Error'];
    expect(await answered({ body: failure({ message: 'm', classes: similar }) })).toMatchObject({ state: 'retryable' });
  });

  it('with retry_in or retry_at is retried exactly then', async () => {
    expect(await answered({ body: failure({ message: 'm', retry_in: 'PT10M' }) })).toMatchObject({
      state: 'retryable',
      retry_delay_ms: 600_000,
    });
    const at = new Date(Date.now() + 3_600_000).toISOString();
    expect(await answered({ body: failure({ message: 'm', retry_at: at, retry_in: '1s' }) })).toMatchObject({
      next_attempt_at: at,
    });
  });

  it('with rubbish in every member is an ordinary failure', async () => {
    const rubbish = {
      code: 7,
      type: [],
      message: {},
      retryable: 'no',
      classes: 'X',
      kill: 1,
      retry_in: 'x',
      retry_at: {},
    };
    expect(await answered({ body: failure(rubbish) })).toMatchObject({
      state: 'retryable',
      error: { code: 'handler_error' },
    });
  });
});

describe('an answer of the handler library', () => {
  const ran = async (order: Json, options: Json = {}): Promise<Json> =>
    server.jobIn(await server.add('work.do', [order], { queue: 'library', ...options }), ENDED);

  it('completes with the value returned', async () => {
    expect(await ran({ value: { sent: 3 } })).toMatchObject({ state: 'completed', result: { sent: 3 } });
  });

  it('fails with the class and message thrown', async () => {
    expect(await ran({ do: 'throw' })).toMatchObject({
      state: 'retryable',
      error: { code: 'handler_error', type: 'TypeError', message: 'as ordered' },
    });
  });

  it.each([
    ['unrecoverable', 'unrecoverable'],
    ['discard', 'discard_code'],
    ['fail', 'fail_code'],
    ['dead-letter', 'dead_letter_code'],
    ['kill', 'killed'],
  ])('%s ends the job with the reason %s', async (what, reason) => {
    expect(await ran({ do: what })).toMatchObject({ state: 'discarded', attempt: 1, errors: [{ reason }] });
  });

  it('names the time of the next run', async () => {
    expect(await ran({ do: 'retry-in' })).toMatchObject({ state: 'retryable', retry_delay_ms: 90_000 });
  });

  it('times out by the limit in force, and the handler is notified', async () => {
    const id = await server.add('work.do', [{ do: 'hang' }], { queue: 'library', timeout_ms: 50 });
    expect(await server.jobIn(id, ENDED)).toMatchObject({
      state: 'retryable',
      error: { code: 'timeout', type: 'timeout' },
    });
    expect(await runsOf('WORK', id)).toMatchObject([{ attempt: 1, aborted: true }]);
  });

  it('reaches success after failures, with every failure on record', async () => {
    const retry = { initial_interval: 0, jitter: false };
    const done = await ran({ do: 'throw', until: 2, value: 'third time' }, { retry });
    const completed = await server.jobIn(done.id as string, 'completed');
    expect(completed).toMatchObject({ attempt: 3, result: 'third time', errors: [{ attempt: 1 }, { attempt: 2 }] });
    expect(completed).not.toHaveProperty('error');
  });
});

describe('an answer to a batch', () => {
  const retry = { initial_interval: 'PT4M', jitter: false };
  const ran = async (order: Json, options: Json = {}): Promise<Json> =>
    server.jobIn(await server.add('raw.order', [order], { queue: 'raw', retry, ...options }), ENDED);

  it('without this delivery, or with another status, is invalid and retried', async () => {
    for (const what of ['missing', 'strange']) {
      expect(await ran({ do: what })).toMatchObject({ state: 'retryable', error: { code: 'invalid_response' } });
    }
  });

  it.each(['empty', 'rubbish', 'no-results'])('that is %s is invalid and retried', async (what) => {
    expect(await ran({ do: what })).toMatchObject({ state: 'retryable', error: { code: 'invalid_response' } });
  });

  it('of a failing status is treated per job as for a single one', async () => {
    expect(await ran({ do: 'status', status: 500 })).toMatchObject({ state: 'retryable' });
    expect(await ran({ do: 'status', status: 422 })).toMatchObject({ errors: [{ reason: 'non_retryable' }] });
    expect(await ran({ do: 'status', status: 404 })).toMatchObject({ errors: [{ reason: 'target_rejected' }] });
  });

  it('that names strangers beside the deliveries counts for the deliveries', async () => {
    expect(await ran({})).toMatchObject({ state: 'completed', result: 1 });
    expect(await handler('RAW', '/calls')).not.toHaveLength(0);
  });
});
