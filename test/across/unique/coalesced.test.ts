/** One job of several enqueues, over HTTP and in controlled time: replaced, accumulated, or one of a window. */
import { describe, expect, it } from 'vitest';
import type { JobState } from '../../../src/job/states';
import { clock, iso, SECOND, T0 } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';
import { enqueued, entry, JOBS, post, postBatch, SCOPES } from './jobs';

clock.startAtT0();
server.emptyBeforeEach();

const QUEUE = 'a';
const queue = new TestQueue(QUEUE);
const keys = ['type', 'queue'];
/** What is answered, as text. */
async function fetchText(method: string, path: string, body?: string): Promise<string> {
  const request = new Request(new URL(path, 'http://localhost'), {
    method,
    ...(body !== undefined && { body, headers: { 'Content-Type': 'application/json' } }),
  });
  return (await server.send(request)).text();
}

const delayed = (seconds: number, ...args: unknown[]): Json => ({
  args,
  options: { delay_until: `+PT${seconds}S` },
});
const moment = (seconds: number) => iso(T0 + seconds * SECOND);

describe.each(SCOPES)('a debounced job that is unique %s', (_, scope, other) => {
  const unique = { keys: scope, on_conflict: 'replace', max_wait: '25s' };

  it('runs at last however many newcomers come', async () => {
    const first = await enqueued(QUEUE, unique, delayed(10, 1));
    clock.at(8 * SECOND);
    const second = await post(other, unique, delayed(10, 2));
    expect(second).toMatchObject({ status: 201, body: { coalesced: { calls: 2, since: moment(0) } } });
    expect(second.body.job).toMatchObject({ state: 'scheduled', scheduled_at: moment(18), args: [2] });
    clock.at(16 * SECOND);
    const third = await enqueued(QUEUE, unique, delayed(10, 3));
    expect(await server.job(third)).toMatchObject({ scheduled_at: moment(25), coalesced: { calls: 3 } });
    for (const id of [first, second.body.id]) expect(await server.job(id)).toMatchObject({ state: 'cancelled' });
    clock.at(25 * SECOND);
    expect(await server.takeOne(QUEUE)).toMatchObject({ id: third, args: [3] });
  });

  it('is not cancelled while it runs: newcomers begin another', async () => {
    const first = await enqueued(QUEUE, unique);
    await server.takeOne(QUEUE);
    const next = await enqueued(other, unique, delayed(10));
    expect(await server.job(first)).toMatchObject({ state: 'active' });
    expect(await server.job(next)).not.toHaveProperty('coalesced');
  });
});

it('a job that starts at once takes the place of a delayed one, and counts what it stands for', async () => {
  const unique = { keys, on_conflict: 'replace', max_wait: '25s' };
  await enqueued(QUEUE, unique, delayed(10));
  const answer = await post(QUEUE, unique);
  expect(answer.body).toMatchObject({ state: 'available', coalesced: { calls: 2 } });
  expect(answer.body.job).not.toHaveProperty('scheduled_at');
});

describe('a job that accumulates', () => {
  const unique = { key: 'cart', on_conflict: 'accumulate' };

  it('gets the arguments of all newcomers, in order, when the first one is due', async () => {
    const id = await enqueued(QUEUE, unique, delayed(10, 1, 2));
    clock.at(4 * SECOND);
    const answer = await post(QUEUE, unique, delayed(10, { of: 'three' }));
    expect(answer).toMatchObject({
      status: 200,
      body: { accumulated: true, job: { id, state: 'scheduled', scheduled_at: moment(10), coalesced: { calls: 2 } } },
    });
    expect(answer.headers.get('Location')).toBeNull();
    expect(answer.body).not.toHaveProperty('deduplicated');
    await post(QUEUE, unique);
    expect(await server.job(id)).toMatchObject({
      args: [1, 2, { of: 'three' }],
      coalesced: { calls: 3, since: moment(0) },
      unique,
    });
    clock.at(10 * SECOND);
    expect(await server.takeOne(QUEUE)).toMatchObject({ id, args: [1, 2, { of: 'three' }] });
    expect(await server.counts(QUEUE)).toMatchObject({ available: 0, scheduled: 0, active: 1 });
  });

  it('takes numbers and texts as they were written', async () => {
    const id = await enqueued(QUEUE, unique, delayed(10));
    const policy = JSON.stringify({ queue: QUEUE, unique });
    const body = `{"type":"sync.user","args":[12345678901234567890,"\\ud83d\\ude00"],"options":${policy}}`;
    await fetchText('POST', JOBS, body);
    const text = await fetchText('GET', `${JOBS}/${id}`);
    expect(text).toContain('"args":[12345678901234567890,"😀"]');
  });

  it('is put off by each newcomer with max_wait, and runs at last', async () => {
    const bounded = { ...unique, max_wait: '25s' };
    const id = await enqueued(QUEUE, bounded, delayed(10, 1));
    for (const [now, due] of [
      [8, 18],
      [16, 25],
      [24, 25],
    ] as const) {
      clock.at(now * SECOND);
      expect((await post(QUEUE, bounded, delayed(10, now))).body).toMatchObject({ id, scheduled_at: moment(due) });
    }
    clock.at(25 * SECOND);
    // Due, and not taken yet: a newcomer goes along.
    expect((await post(QUEUE, bounded, delayed(10, 25))).body).toMatchObject({ id, state: 'available' });
    expect(await server.takeOne(QUEUE)).toMatchObject({ args: [1, 8, 16, 24, 25] });
  });

  it('starts at once when a newcomer with max_wait has no delay', async () => {
    const bounded = { ...unique, max_wait: '25s' };
    const id = await enqueued(QUEUE, bounded, delayed(10, 1));
    const answer = await post(QUEUE, bounded, { args: [2] });
    expect(answer.body).toMatchObject({ id, state: 'available' });
    expect(answer.body).not.toHaveProperty('scheduled_at');
    expect(await server.takeOne(QUEUE)).toMatchObject({ args: [1, 2] });
  });

  it('keeps its arguments once it has been handed out: newcomers begin another', async () => {
    const first = await enqueued(QUEUE, unique, { args: [1] });
    await server.takeOne(QUEUE);
    const second = await enqueued(QUEUE, unique, { args: [2] });
    await server.nack(first);
    expect(await server.job(first)).toMatchObject({ state: 'retryable' });
    expect((await post(QUEUE, unique, { args: [3] })).body).toMatchObject({ id: second, accumulated: true });
    expect(await server.job(first)).toMatchObject({ args: [1] });
    // Given back without a run: who had it may have looked into it.
    await server.takeOne(QUEUE);
    await server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: second, requeue: true });
    const third = await enqueued(QUEUE, unique, { args: [4] });
    expect(await server.job(second)).toMatchObject({ state: 'available', args: [2, 3] });
    expect(third).not.toBe(second);
  });

  it('that is full starts now, and the newcomer begins another', async () => {
    const small = { ...unique, max_count: 3 };
    const first = await enqueued(QUEUE, small, delayed(10, 1));
    await post(QUEUE, small, delayed(10, 2));
    await post(QUEUE, small, delayed(10, 3));
    clock.at(SECOND);
    const second = await enqueued(QUEUE, small, delayed(10, 4));
    expect(await server.job(first)).toMatchObject({ state: 'available', args: [1, 2, 3], coalesced: { calls: 3 } });
    expect(await server.job(second)).toMatchObject({ state: 'scheduled', scheduled_at: moment(11), args: [4] });
    expect((await post(QUEUE, small, delayed(10, 5))).body).toMatchObject({ id: second });
    expect(await server.takeOne(QUEUE)).toMatchObject({ id: first });
  });

  it('is full at the size of a job, in bytes', async () => {
    const text = '€'.repeat(170_000);
    const first = await enqueued(QUEUE, unique, delayed(10, text));
    expect((await post(QUEUE, unique, delayed(10, 'x'))).body).toMatchObject({ id: first });
    const second = await enqueued(QUEUE, unique, delayed(10, '€'.repeat(200_000)));
    expect(await server.job(first)).toMatchObject({ state: 'available', args: [text, 'x'] });
    expect(await server.job(second)).toMatchObject({ state: 'scheduled' });
  });

  it('takes several entries of a batch, each in one job', async () => {
    const small = { ...unique, max_count: 3 };
    const first = await enqueued(QUEUE, small, delayed(10, 0));
    const jobs = [1, 2, 3, 4, 5, 6].map((n) => entry(QUEUE, small, { args: [n], delay_until: '+PT10S' }));
    const { status, body } = await postBatch(...jobs);
    expect(status).toBe(201);
    const told = body.jobs as Json[];
    const [, , second, , , third] = told.map(({ id }) => id);
    expect(told.map(({ id }) => id)).toEqual([first, first, second, second, second, third]);
    expect(told.map(({ accumulated }) => accumulated)).toEqual([true, true, undefined, true, true, undefined]);
    expect(body).toMatchObject({ count: 6, enqueued: 2, accumulated: 4, failed: 0 });
    expect(await server.job(first)).toMatchObject({ state: 'available', args: [0, 1, 2] });
    expect(await server.job(second)).toMatchObject({ state: 'available', args: [3, 4, 5], coalesced: { calls: 3 } });
    expect(await server.job(third)).toMatchObject({ state: 'scheduled', args: [6] });
  });

  it('takes the entries of a request of which each stands alone', async () => {
    const jobs = [1, 2, 3].map((n) => entry(QUEUE, unique, { args: [n] }));
    const { body } = await server.call('POST', `${V1}/jobs/bulk`, { atomicity: 'partial', jobs: [...jobs, {}] });
    const items = body.items as Json[];
    expect(items.map(({ status }) => status)).toEqual(['created', 'accumulated', 'accumulated', 'failed']);
    expect(await server.takeOne(QUEUE)).toMatchObject({ args: [1, 2, 3] });
  });

  it('takes nothing twice under an idempotency key', async () => {
    const id = await enqueued(QUEUE, unique, delayed(10, 1));
    const again = () =>
      server.call('POST', JOBS, { type: 'sync.user', args: [2], queue: QUEUE, unique }, { 'Idempotency-Key': 'k' });
    expect((await again()).body).toMatchObject({ id, accumulated: true });
    expect((await again()).body).toMatchObject({ id, accumulated: true });
    expect(await server.job(id)).toMatchObject({ args: [1, 2] });
  });

  it('keeps its arguments to itself inside a batch over several queues, whose entries make a job of their own', async () => {
    const first = await enqueued(QUEUE, unique, delayed(10, 0));
    const own = (n: number) => entry(QUEUE, unique, { args: [n] });
    const { body } = await postBatch(own(1), own(2), entry('b', undefined));
    const told = body.jobs as Json[];
    expect(told[1]).toMatchObject({ id: told[0]?.id, accumulated: true });
    expect(await server.job(told[0]?.id)).toMatchObject({ state: 'available', args: [1, 2] });
    expect(await server.job(first)).toMatchObject({ state: 'scheduled', args: [0] });
  });

  it('stays pending until it is activated, and takes newcomers until then', async () => {
    const id = await enqueued(QUEUE, unique, { args: [1], options: { pending: true } });
    expect((await post(QUEUE, unique, { args: [2] })).body).toMatchObject({ id, state: 'pending' });
    await server.ok(200, 'POST', `${JOBS}/${id}/activate`);
    expect(await server.takeOne(QUEUE)).toMatchObject({ args: [1, 2] });
  });

  it('makes no room for its own newcomers', async () => {
    await server.configure(QUEUE, { max_size: 2, overflow_policy: 'drop_oldest' });
    const id = await enqueued(QUEUE, unique, { args: [1] });
    await server.enqueue(QUEUE, {});
    await postBatch(entry(QUEUE, unique, { args: [2] }), entry(QUEUE, undefined));
    expect(await server.job(id)).toMatchObject({ state: 'available', args: [1, 2] });
    // It stays the oldest one: the next newcomer takes its place.
    await server.enqueue(QUEUE, {});
    expect(await server.job(id)).toMatchObject({ state: 'discarded' });
  });

  it('says what became of its newcomers', async () => {
    const id = await enqueued(QUEUE, unique, delayed(10, 1));
    clock.at(SECOND);
    await postBatch(entry(QUEUE, unique), entry(QUEUE, unique));
    const { waiting_for } = (await server.ok(200, 'GET', `${V1}/jobs/${id}`)).job as { waiting_for: Json };
    expect(waiting_for).toMatchObject({ reason: 'delayed' });
    expect(waiting_for.detail).toContain(`It stands for 3 enqueues since ${moment(0)}.`);
    const [event] = await server.events({ queue: QUEUE, types: 'job.accumulated' });
    expect(event).toMatchObject({ subject: id, data: { accumulated: 2 } });
  });
});

describe('a sample of a window', () => {
  it('leading: the first enqueue runs at once, and others in the window are dropped', async () => {
    const unique = { keys, sample: 'leading', period: '10s' };
    const id = await enqueued(QUEUE, unique, { args: [1] });
    await server.complete(QUEUE);
    clock.at(9 * SECOND);
    expect((await post(QUEUE, unique, { args: [2] })).body).toMatchObject({ id, deduplicated: true });
    clock.at(10 * SECOND);
    await enqueued(QUEUE, unique, { args: [3] });
  });

  it.each(SCOPES)('trailing: the last enqueue runs when the window is over, %s', async (_, scope, other) => {
    const unique = { keys: scope, sample: 'trailing', period: '10s' };
    const first = await post(QUEUE, unique, { args: [1] });
    expect(first.body.job).toMatchObject({ state: 'scheduled', scheduled_at: moment(10) });
    clock.at(9 * SECOND);
    const second = await enqueued(other, unique, { args: [2] });
    expect(await server.job(first.body.id)).toMatchObject({ state: 'cancelled' });
    expect(await server.job(second)).toMatchObject({ scheduled_at: moment(10), args: [2] });
    clock.at(11 * SECOND);
    // Due, and not taken yet: its window is over, so the next one begins.
    const third = await enqueued(QUEUE, unique, { args: [3] });
    expect(await server.job(second)).toMatchObject({ state: 'available' });
    expect(await server.job(third)).toMatchObject({ state: 'scheduled', scheduled_at: moment(21) });
  });
});

it.each<[string, Json, Json, number, string]>([
  ['a max_wait that is no duration', { keys, on_conflict: 'replace', max_wait: 'soon' }, {}, 400, 'max_wait'],
  ['a max_wait of nothing', { keys, on_conflict: 'replace', max_wait: 0 }, {}, 400, 'max_wait'],
  ['a max_wait that is endless', { keys, on_conflict: 'replace', max_wait: '36501d' }, {}, 400, 'max_wait'],
  ['a max_wait below the delay', { keys, on_conflict: 'replace', max_wait: '9s' }, delayed(10), 400, 'max_wait'],
  ['a max_wait without effect', { keys, on_conflict: 'ignore', max_wait: '9s' }, {}, 400, 'max_wait'],
  ['a max_count without effect', { keys, max_count: 9 }, {}, 400, 'max_count'],
  ['a max_count of one', { keys, on_conflict: 'accumulate', max_count: 1 }, {}, 400, 'max_count'],
  ['a max_count beyond the bound', { keys, on_conflict: 'accumulate', max_count: 1001 }, {}, 400, 'max_count'],
  ['accumulating over queues', { keys: ['type'], on_conflict: 'accumulate' }, {}, 422, 'keys'],
  ['accumulating over queues, in other words', { key: ['type'], on_conflict: 'accumulate' }, {}, 422, 'key'],
  ['accumulating in other states', { keys, on_conflict: 'accumulate', states: ['active'] }, {}, 400, 'states'],
  ['a sample that is none', { keys, sample: 'last', period: '1s' }, {}, 400, 'sample'],
  ['a sample of no window', { keys, sample: 'trailing' }, {}, 400, 'period'],
  [
    'a sample beside a conflict',
    { keys, sample: 'trailing', period: 1, on_conflict: 'ignore' },
    {},
    400,
    'on_conflict',
  ],
  ['a trailing sample with a delay', { keys, sample: 'trailing', period: '1s' }, delayed(1), 400, 'sample'],
])('%s is refused, and changes nothing', async (_, unique, change, status, member) => {
  const answer = await post(QUEUE, unique, change);
  expect(answer).toMatchObject({ status, body: { error: { details: { field: `options.unique.${member}` } } } });
  expect(await server.queues()).toEqual([]);
});

it('an id cannot be chosen for what accumulates', async () => {
  const change = { id: '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f' };
  const answer = await post(QUEUE, { keys, on_conflict: 'accumulate' }, change);
  expect(answer).toMatchObject({ status: 400, body: { error: { details: { field: 'id' } } } });
});

it('a fire of a schedule whose job accumulates counts as a fire', async () => {
  const template = {
    type: 'sync.user',
    args: ['fire'],
    options: { queue: QUEUE, unique: { keys, on_conflict: 'accumulate' } },
  };
  await server.ok(201, 'POST', `${V1}/cron`, {
    name: 'often',
    expression: '* * * * *',
    overlap_policy: 'allow',
    job_template: template,
  });
  const { id } = await server.ok(201, 'POST', `${V1}/cron/often/trigger`);
  expect(await server.ok(200, 'POST', `${V1}/cron/often/trigger`)).toMatchObject({ job_id: id, accumulated: true });
  await queue.passTo(T0 + 60 * SECOND);
  expect(await server.job(id)).toMatchObject({ args: ['fire', 'fire', 'fire'], coalesced: { calls: 3 } });
  const { executions, skipped } = await server.ok(200, 'GET', `${V1}/cron/often/history`);
  expect(executions).toHaveLength(3);
  expect(skipped).toEqual([]);
});

it('a job under an id becomes a part of no other: sent again after a lost answer, it would twice', async () => {
  const states: JobState[] = ['available'];
  const unique = { fingerprint: 'f'.repeat(64), scope: 'queue', states, on_conflict: 'accumulate' } as const;
  const [first] = await queue.enqueue({ unique, body: { fingerprint: unique.fingerprint, args: [1] } });
  const id = '0199b475-2480-7000-8001-ffffffffffff';
  const [named] = await queue.enqueue({ id, unique, body: { fingerprint: unique.fingerprint, args: [2] } });
  expect(named?.id).toBe(id);
  expect(await server.job(first?.id as string)).toMatchObject({ args: [1] });
});
