/** Many reports in one request, alone or with a fetch: each has an outcome of its own. */
import { describe, expect, it } from 'vitest';
import { uuidv7 } from '../../../../src/producer/id';
import { clock } from '../../../support/clock';
import { failAlways, failOnce } from '../../../support/faults';
import { TestQueue } from '../../../support/queue';
import { type Body, type Json, server, UNKNOWN_ID, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

const PATH = `${V1}/workers/report`;
const report = (status: number, reports: unknown, more: Json = {}): Promise<Body> =>
  server.ok(status, 'POST', PATH, { reports, ...more });
const ack = (job: Json, change: Json = {}): Json => ({
  ...{ action: 'ack', job_id: job.id, attempt: job.attempt, delivery_id: job.delivery_id },
  ...change,
});
const nack = (job: Json, change: Json = {}): Json => ack(job, { action: 'nack', error: { type: 'E' }, ...change });

/** Jobs that a worker holds. */
async function held(queue: string, count: number, change: Json = {}): Promise<Json[]> {
  await server.addAll(Array.from({ length: count }, () => ({ type: 'a.b', args: [], options: { queue, ...change } })));
  return server.take(queue, { count, worker_id: 'w1' });
}

describe('many reports', () => {
  it('may say what an attempt wants to find again, fenced as its end is', async () => {
    const [job] = (await held('q', 1)) as [Json];
    const say = (action: string, more: Json): Json => ack(job, { action, ...more });
    const told = await report(200, [
      say('checkpoint', { state: { page: 3 }, step_index: 1 }),
      say('step', { name: 'charge', result: { id: 7 } }),
      say('step', { name: 'charge', result: { id: 8 } }),
      say('step', { name: 'pause', until: 1_900_000_000_000 }),
      say('progress', { progress: 0.5, checkpoint: { page: 4 } }),
    ]);
    expect(told.items).toMatchObject([
      { status: 'done', state: 'active', attempt: 1 },
      { status: 'done', state: 'active' },
      { status: 'done', step: { result: { id: 7 } } },
      { status: 'done' },
      { status: 'done', progress: 0.5 },
    ]);
    expect(told.items?.[1]).not.toHaveProperty('step');
    expect(await server.ok(200, 'GET', `${V1}/jobs/${job.id}/steps`)).toMatchObject({
      steps: { charge: { result: { id: 7 } }, pause: { until: 1_900_000_000_000 } },
    });
    expect(await server.ok(200, 'GET', `${V1}/checkpoints/${job.id}/resume`)).toMatchObject({
      checkpoint: { state: { page: 4 }, sequence: 2 },
    });
    const refused = await report(207, [
      say('checkpoint', {}),
      say('step', { result: 1 }),
      say('step', { name: 'x', until: 'soon' }),
      say('step', { name: 'x', result: 1, attempt: 9 }),
      say('checkpoint', { state: 1, worker_id: 'other' }),
      say('progress', { progress: 0.5, checkpoint: 'x'.repeat(1024 * 1024) }),
    ]);
    const fields = refused.items?.map(({ error }) => {
      const { status, details } = error as { status: number; details?: Json };
      return [status, details?.field];
    });
    expect(fields?.slice(0, 3)).toEqual([
      [400, 'state'],
      [400, 'name'],
      [400, 'step.until'],
    ]);
    expect(fields?.slice(3).map(([status]) => status)).toEqual([409, 409, 413]);
  });

  it('each get an outcome, in order, without the jobs', async () => {
    const [first, second, third, fourth] = (await held('q', 4, { retry: { max_attempts: 2 } })) as [
      Json,
      Json,
      Json,
      Json,
    ];
    const told = await report(200, [
      nack(second, { error: { type: 'E', message: 'no' } }),
      ack(first, { result: { n: 1 } }),
      nack(third, { error: { type: 'E', retryable: false } }),
      nack(fourth, { error: undefined, requeue: true, attempt_used: false }),
    ]);
    expect(told).toEqual({
      ...{ total: 4, succeeded: 4, failed: 0 },
      items: [
        expect.objectContaining({ index: 0, job_id: second.id, status: 'done', state: 'retryable', attempt: 1 }),
        {
          ...{ index: 1, job_id: first.id, status: 'done', state: 'completed', attempt: 1 },
          completed_at: expect.stringMatching(/Z$/),
        },
        expect.objectContaining({ index: 2, state: 'discarded', discarded_at: expect.stringMatching(/Z$/) }),
        { index: 3, job_id: fourth.id, status: 'done', state: 'available', attempt: 0 },
      ],
    });
    const retried = await server.job(second.id);
    expect(told.items?.[0]).toMatchObject({
      next_attempt_at: retried.next_attempt_at,
      retry_delay_ms: retried.retry_delay_ms,
    });
    expect(await server.job(first.id)).toMatchObject({ state: 'completed', result: { n: 1 } });
    expect(retried).toMatchObject({ state: 'retryable', error: { type: 'E', message: 'no' } });
    expect(await server.state(third.id as string)).toBe('discarded');
  });

  it('are fenced each on its own, and a wrong one harms no other', async () => {
    const [first, second, third] = (await held('q', 3)) as [Json, Json, Json];
    const told = await report(207, [
      ack(first),
      ack(second, { attempt: 2 }),
      ack(third, { worker_id: 'w2' }),
      { action: 'ack', job_id: UNKNOWN_ID },
      { action: 'ack', job_id: 7 },
      { action: 'end', job_id: second.id },
      nack(second, { error: 7 }),
      null,
      ack(third, { result: 'x'.repeat(1024 * 1024) }),
      nack(second, { attempt_used: false }),
      nack(third),
    ]);
    expect(told).toMatchObject({ total: 11, succeeded: 2, failed: 9 });
    const outcomes = told.items?.map(({ status, error }) => (error as Json | undefined)?.code ?? status);
    expect(outcomes).toEqual([
      ...['done', 'conflict', 'conflict', 'not_found', 'invalid_request', 'invalid_request', 'invalid_request'],
      ...['invalid_request', 'payload_too_large', 'invalid_request', 'done'],
    ]);
    expect(told.items?.[5]).toEqual({
      ...{ index: 5, status: 'failed', job_id: expect.any(String) },
      error: expect.objectContaining({
        status: 400,
        retryable: false,
        details: { field: 'action', job_id: expect.any(String) },
      }),
    });
    expect(told.items?.[1]?.error).toMatchObject({ status: 409, details: { current_attempt: 1 } });
    expect(await server.state(second.id as string)).toBe('active');
  });

  it('sent again get the same answer, and change nothing', async () => {
    const [first, second] = (await held('q', 2)) as [Json, Json];
    const sent = [ack(first, { result: 1 }), nack(second)];
    const told = await report(200, sent);
    const before = [await server.job(first.id), await server.job(second.id)];
    expect(await report(200, sent)).toEqual(told);
    expect([await server.job(first.id), await server.job(second.id)]).toEqual(before);
  });

  it('may say how far a job is, and keep its lease by that', async () => {
    const [first, second] = (await held('q', 2, { visibility_timeout_ms: 60_000 })) as [Json, Json];
    clock.advance(40_000);
    const progress = { action: 'progress', progress: 0.5, message: 'half', data: { own_name: 1 } };
    const told = await report(207, [
      ack(first, progress),
      ack(first, { action: 'progress' }),
      ack(second, { ...progress, attempt: 3 }),
    ]);
    expect(told.items).toMatchObject([
      { job_id: first.id, status: 'done', state: 'active', attempt: 1, progress: 0.5 },
      { error: { details: { field: 'progress' } } },
      { error: { code: 'conflict' } },
    ]);
    clock.advance(40_000);
    expect(await server.job(first.id)).toMatchObject({
      state: 'active',
      progress: 0.5,
      progress_data: { own_name: 1 },
    });
  });

  it('about one job count in their order: the first ends it', async () => {
    const [job] = (await held('q', 1)) as [Json];
    const told = await report(207, [nack(job), ack(job)]);
    expect(told.items).toMatchObject([{ state: 'retryable' }, { error: { code: 'conflict' } }]);
  });

  it('about jobs with rows of their own leave none of those that have completed, whatever is said of them again', async () => {
    const queue = new TestQueue();
    const retry = { initial_interval: 0, jitter: false };
    const first = await held(queue.name, 4, { retry });
    await report(
      200,
      first.map((job) => nack(job, { error: { type: 'E', stack: 'E: no\n    at f' } })),
    );
    const [a, b, c, d] = (await server.take(queue.name, { count: 4, worker_id: 'w1' })) as [Json, Json, Json, Json];
    const told = await report(207, [
      ack(a),
      ack(a),
      nack(b),
      ack(c),
      nack(a),
      ack(c, { action: 'progress', progress: 1 }),
    ]);
    const outcomes = told.items?.map(({ status, state, error }) => state ?? (error as Json)?.status ?? status);
    expect(outcomes).toEqual(['completed', 'completed', 'available', 'completed', 409, 'completed']);
    const left = await queue.inside(({ sql }) => sql.exec<{ attempt: number }>('SELECT attempt FROM jobs').toArray());
    // The one that still runs waited together with others: it is in their block.
    expect(left.map(({ attempt }) => attempt)).toEqual([2]);
    expect(await server.counts(queue.name)).toMatchObject({ completed: 2, active: 1, available: 1 });
    expect((await server.job(d.id as string)).error).toMatchObject({ type: 'E', stack: 'E: no\n    at f' });
  });

  it('may be about jobs of several queues, under ids that clients chose too', async () => {
    const chosen = uuidv7(Date.now(), Math.random);
    await server.enqueue('c', { id: chosen });
    const jobs = [...(await held('a', 2)), ...(await held('b', 2)), ...(await server.take('c', { worker_id: 'w1' }))];
    expect(jobs.at(-1)).toMatchObject({ id: chosen });
    const told = await report(
      200,
      jobs.toReversed().map((job) => ack(job)),
    );
    expect(told.items?.map(({ job_id }) => job_id)).toEqual(jobs.toReversed().map(({ id }) => id));
    for (const { id } of jobs) expect(await server.state(id as string)).toBe('completed');
  });

  it('name the worker once for all', async () => {
    const jobs = await held('q', 2);
    const told = await report(207, [ack(jobs[0] as Json, { worker_id: 'w1' }), ack(jobs[1] as Json)], {
      worker_id: 'w2',
    });
    expect(told.items).toMatchObject([{ status: 'done' }, { error: { code: 'conflict' } }]);
  });

  it('of which one cannot be written are written one by one', async () => {
    const q = new TestQueue('q');
    const jobs = await held('q', 3);
    await q.inside(({ sql }) => failOnce(sql, /^\s*(DELETE|UPDATE)/i, 1));
    const told = await report(
      200,
      jobs.map((job) => ack(job)),
    );
    expect(told.items?.map(({ state }) => state)).toEqual(['completed', 'completed', 'completed']);
    for (const { id } of jobs) expect(await server.state(id as string)).toBe('completed');
  });

  it('may carry as much as a request may', async () => {
    const jobs = await held('q', 12);
    const result = '€'.repeat(340_000);
    const told = await report(
      200,
      jobs.map((job) => ack(job, { result })),
    );
    expect(told).toMatchObject({ succeeded: 12 });
    const last = await server.ok(200, 'GET', `${V1}/jobs/${jobs.at(-1)?.id}/result`);
    expect(last.result).toHaveLength(340_000);
  });

  it('cost no more rows than the jobs of a handler that answers for all at once', async () => {
    const q = new TestQueue('q');
    const jobs = await held('q', 100);
    expect(
      await q.rowsWritten(() =>
        report(
          200,
          jobs.map((job) => ack(job)),
        ),
      ),
    ).toBeLessThanOrEqual(103);
  });

  it.each([
    ['no list', 400, { reports: { action: 'ack' } }],
    ['nothing', 400, {}],
    ['too many', 413, { reports: Array.from({ length: 1001 }, () => ({ action: 'ack', job_id: UNKNOWN_ID })) }],
  ])('that are %s are refused as a whole', async (_, status, body) => {
    expect(await server.refusal('POST', PATH, body)).toMatchObject({ status, field: 'reports' });
  });
});

describe('a fetch that brings reports', () => {
  const fetch = (reports: unknown, change: Json = {}) =>
    server.ok(200, 'POST', `${V1}/workers/fetch`, { queues: ['q'], worker_id: 'w1', reports, ...change });

  it('gets their outcomes, with the next jobs', async () => {
    const [job] = (await held('q', 1)) as [Json];
    const next = await server.enqueue('q');
    const told = await fetch([ack(job), ack(job, { attempt: 7 })], { count: 5 });
    expect(told.jobs?.map(({ id }) => id)).toEqual([next]);
    expect(told.reports).toMatchObject({
      ...{ total: 2, succeeded: 1, failed: 1 },
      items: [{ index: 0, job_id: job.id, state: 'completed' }, { error: { code: 'conflict' } }],
    });
  });

  it('gets the job for which they make room', async () => {
    const options = { rate_limit: { key: 'k', concurrency: 1 } };
    const [job] = (await held('q', 2, options)) as [Json];
    const told = await fetch([ack(job)]);
    expect(told.jobs).toHaveLength(1);
  });

  it('claims in the transaction that takes the reports', async () => {
    const q = new TestQueue('q');
    const [first, second] = (await held('q', 2)) as [Json, Json];
    await server.addAll(Array.from({ length: 2 }, () => ({ type: 'a.b', args: [], options: { queue: 'q' } })));
    const alone = await q.transactionsOf(() => report(200, [ack(first)], { worker_id: 'w1' }));
    const both = await q.transactionsOf(async () => expect((await fetch([ack(second)])).jobs).toHaveLength(1));
    // Their savepoints: an operation that is alone has none.
    expect(both).toBe(alone + 2);
  });

  it('may take jobs of another queue than those that it reports, or of several', async () => {
    const reported = (await held('q', 3)) as [Json, Json, Json];
    const elsewhere = await server.enqueue('other');
    const told = await fetch([ack(reported[0])], { queues: ['other'] });
    expect(told).toMatchObject({ jobs: [{ id: elsewhere }], reports: { succeeded: 1 } });
    const next = [await server.enqueue('other'), await server.enqueue('q')];
    const [foreign] = told.jobs as [Json];
    const both = await fetch([ack(reported[1]), ack(foreign), ack(reported[2])], { queues: ['other', 'q'], count: 5 });
    expect(both.jobs?.map(({ id }) => id)).toEqual(next);
    expect(both.reports).toMatchObject({ succeeded: 3 });
  });

  it('gets the outcomes of its reports when the claim fails', async () => {
    const q = new TestQueue('q');
    const [job] = (await held('q', 1)) as [Json];
    await server.enqueue('q');
    const over = await q.inside(({ sql }) => failAlways(sql, /^\s*(INSERT|UPDATE).*leases/is));
    const told = await fetch([ack(job)]);
    await q.inside(() => over());
    expect(told).toMatchObject({ jobs: [], reports: { succeeded: 1 } });
    expect(await fetch([])).toMatchObject({ jobs: [{ attempt: 1 }] });
  });

  it('does not wait: the outcomes are not held back', async () => {
    const [job] = (await held('q', 1)) as [Json];
    let hasWaited = false;
    const waiting = fetch(undefined, { worker_id: 'w2', wait_ms: 20_000 }).then(() => {
      hasWaited = true;
    });
    const told = await fetch([ack(job)], { wait_ms: 20_000 });
    expect(told).toMatchObject({ jobs: [], reports: { succeeded: 1 } });
    expect(hasWaited).toBe(false);
    await server.enqueue('q');
    await waiting;
  });

  it('is refused before any report is taken when it is wrong itself', async () => {
    const [job] = (await held('q', 1)) as [Json];
    for (const change of [{ queues: [] }, { types: [] }, { count: 'x' }]) {
      const body = { queues: ['q'], reports: [ack(job)], ...change };
      expect(await server.refusal('POST', `${V1}/workers/fetch`, body)).toMatchObject({ status: 400 });
    }
    expect(await server.refusal('POST', `${V1}/workers/fetch`, { queues: ['q'], reports: 7 })).toMatchObject({
      field: 'reports',
    });
    expect(await server.state(job.id as string)).toBe('active');
  });
});

describe('reports about a job with much on record', () => {
  const KIB = 1024;
  const step = (job: Json, name: string, result: unknown) => ack(job, { action: 'step', name, result });
  const stepsOf = async (job: Json) => (await server.ok(200, 'GET', `${V1}/jobs/${job.id}/steps`)).steps as Json;

  it('repeat it as far as the answer has room: of the rest they say that it is there', async () => {
    const [job] = (await held('q', 1)) as [Json];
    const result = 'x'.repeat(700 * KIB);
    await report(200, [step(job, 'large', result)]);
    const told = await report(
      200,
      Array.from({ length: 100 }, () => step(job, 'large', 1)),
    );
    expect(JSON.stringify(told).length).toBeLessThan(9 * KIB * KIB);
    const isTold = told.items?.map((item) => 'step' in item) ?? [];
    expect(isTold.indexOf(false)).toBe(11);
    expect(told.items?.slice(11)).toEqual(
      Array.from({ length: 89 }, () => expect.objectContaining({ status: 'done', step_omitted: true })),
    );
    const again = await server.ok(200, 'PUT', `${V1}/jobs/${job.id}/steps/large`, { result: 2, attempt: 1 });
    expect(again.result).toBe(result);
  });

  it('write its row once for a message, whatever they say', async () => {
    const q = new TestQueue('q');
    const [job] = (await held('q', 1)) as [Json];
    const state = 'x'.repeat(900 * KIB);
    await report(200, [ack(job, { action: 'checkpoint', state }), step(job, 'first', 'x'.repeat(600 * KIB))]);
    const many = Array.from({ length: 990 }, (_, n) => step(job, `n${n}`, n));
    await q.startCounting();
    expect(await report(200, many)).toMatchObject({ succeeded: 990 });
    expect((await q.counted()).written).toBe(1);
    const mixed = Array.from({ length: 5 }, (_, n) => [
      ack(job, { action: 'checkpoint', state: n }),
      step(job, 'last', n),
      ack(job, { action: 'progress', progress: n / 10, checkpoint: { n } }),
    ]).flat();
    expect((await report(200, [...mixed, ack(job)])).items?.[4]).toMatchObject({ step: { result: 0 } });
    expect(await stepsOf(job)).toMatchObject({ n989: { result: 989 }, last: { result: 0 } });
    expect(await server.ok(200, 'GET', `${V1}/jobs/${job.id}/checkpoint`)).toMatchObject({
      state: { n: 4 },
      sequence: 11,
    });
    expect(await server.state(job.id as string)).toBe('completed');
  });

  it('are taken in several transactions where they touch many large rows', async () => {
    const q = new TestQueue('q');
    const jobs = await held('q', 12);
    const large = 'x'.repeat(60 * KIB);
    const names = Array.from({ length: 12 }, (_, n) => `large${n}`);
    for (const job of jobs) {
      await report(
        200,
        names.map((name) => step(job, name, large)),
      );
    }
    const commits = await q.inside(({ q: state }) => {
      const { publish } = state;
      const counted = { commits: 0 };
      state.publish = () => {
        counted.commits++;
        publish.call(state);
      };
      return () => counted.commits;
    });
    expect(
      await report(200, [...jobs.map((job) => step(job, 'more', 1)), ...jobs.map((job) => ack(job))]),
    ).toMatchObject({
      succeeded: 24,
    });
    expect(await q.inside(commits)).toBeGreaterThan(1);
    for (const job of jobs) expect(await stepsOf(job)).toMatchObject({ more: { result: 1 } });
  });

  it('leave no line in the log of a job when they are refused, or cannot be written', async () => {
    const q = new TestQueue('q');
    const [job] = (await held('q', 1)) as [Json];
    const line = (message: string) => [{ at: 1_800_000_000_000, level: 'info', message }];
    const back = { action: 'nack', requeue: true, attempt_used: false };
    const steps = { a: { result: 'x'.repeat(700 * KIB) }, b: { result: 'x'.repeat(200 * KIB) } };
    await report(200, [step(job, 'first', 'x'.repeat(200 * KIB))]);
    const refused = ack(job, { ...back, snooze: { in: '1h', steps }, log: line('too much') });
    expect((await report(207, [refused])).items).toMatchObject([{ error: { status: 413 } }]);
    const { attempt, delivery_id } = job;
    const alone = await server.call('POST', `${V1}/workers/nack`, { job_id: job.id, attempt, delivery_id, ...refused });
    expect(alone.status).toBe(413);
    await q.inside(({ sql }) => failOnce(sql, /INSERT INTO jobs/));
    await report(200, [step(job, 'more', 1), nack(job, { log: line('failed') })]);
    const log = await server.ok(200, 'GET', `${V1}/jobs/${job.id}/log`);
    expect((log.lines as Json[]).map(({ message }) => message)).toEqual(['failed']);
  });

  it('are refused one by one where there is too much to record', async () => {
    const [job] = (await held('q', 1)) as [Json];
    const told = await report(207, [
      step(job, 'a', 'x'.repeat(1024 * KIB - 2)),
      step(job, 'b', 'x'.repeat(1024 * KIB - 1)),
      step(job, 'c', 'x'),
    ]);
    expect(told.items).toMatchObject([{ status: 'done' }, { error: { status: 413 } }, { status: 'done' }]);
    expect(Object.keys(await stepsOf(job))).toEqual(['a', 'c']);
  });
});
