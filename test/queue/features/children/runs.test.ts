/** A handler that waits for other jobs, over HTTP, by workers that pull: in its own queue and in another one. */
import { beforeEach, describe, expect, it } from 'vitest';
import { clock, DAY, HOUR, iso, MINUTE, T0, until } from '../../../support/clock';
import { failAlways } from '../../../support/faults';
import { freshName, steady, TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.startAtT0();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('runs');
  object = new TestQueue(queue);
});

const child = (to: string, options: Json = {}, type = 'child'): Json => ({
  type,
  args: [1],
  options: { queue: to, ...options },
});
const run = (name: string, to: string, rest: Json = {}, options: Json = {}): Json => ({
  name,
  jobs: [child(to, options)],
  ...rest,
});
const await_ = (job: Json, runs: Json[], how: Json = {}) =>
  server.ok(200, 'POST', `${V1}/workers/nack`, {
    ...{ job_id: job.id, attempt: job.attempt, requeue: true, attempt_used: false, snooze: { ...how, runs } },
  });
const steps = async (id: unknown) =>
  (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps as Record<string, Json & { run: Json }>;
const nack = (id: unknown, error: Json = { code: 'bad', message: 'no', retryable: false, details: { a: 1 } }) =>
  server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, error });
const settled = (...objects: TestQueue[]) =>
  until(async () => {
    for (const one of objects) if ((await one.rows('SELECT 1 FROM outbox')).length > 0) return false;
    return true;
  }, 'the messages to arrive');

/** Lets minutes pass in which these objects send again what was refused, until it has happened. */
function inTime(objects: TestQueue[], what: string, hasHappened: () => Promise<boolean>): Promise<unknown> {
  let now = T0;
  return until(async () => {
    now += MINUTE;
    clock.set(now);
    for (const one of objects) await one.alarm();
    return hasHappened();
  }, what);
}

/** A parent that waits for one job of each of these queues, by the names `r0`, `r1`, … */
async function parentOf(
  queues: string[],
  rest: Json = {},
  options: Json = {},
): Promise<{ id: string; children: Json[] }> {
  const id = await server.enqueue(queue, { type: 'parent' });
  const job = await server.takeOne(queue);
  await await_(
    job,
    queues.map((to, n) => run(`r${n}`, to, rest, options)),
  );
  await settled(object);
  const children: Json[] = [];
  for (const to of queues) children.push(await server.takeOne(to));
  return { id, children };
}

describe.each(['its own queue', 'another queue'])('a job that waits for one in %s', (where) => {
  let to: string;
  let other: TestQueue;
  beforeEach(() => {
    to = where === 'its own queue' ? queue : freshName('other');
    other = new TestQueue(to);
  });

  it('continues with its result, and its attempt is not used up', async () => {
    const { id, children } = await parentOf([to]);
    expect(children[0]).toMatchObject({ type: 'child', args: [1], meta: { parent_id: id } });
    expect(children[0]).not.toHaveProperty('awaited');
    const pending = { until: T0 + 7 * DAY, run: { id: children[0]?.id, queue: to, type: 'child', claim: 1 } };
    expect((await steps(id)).r0).toMatchObject(pending);
    expect(await server.job(id)).toMatchObject({ state: 'scheduled', scheduled_at: iso(T0 + 7 * DAY) });
    await server.ack(children[0]?.id, { result: { key: 'k' } });
    await settled(other);
    const again = await server.takeOne(queue);
    expect(again).toMatchObject({ id, attempt: 1 });
    expect((again.steps as Json).r0).toMatchObject({ result: { key: 'k' }, run: { id: children[0]?.id } });
    await server.ack(id);
    expect(await server.job(id)).toMatchObject({ state: 'completed', attempt: 1 });
  });

  const ends: [string, (id: unknown) => Promise<unknown>, Json][] = [
    ['fails for good', (id) => nack(id), { code: 'bad', message: 'no', details: { a: 1 }, state: 'discarded' }],
    ['is cancelled', (id) => server.ok(200, 'DELETE', `${V1}/jobs/${id}`), { code: 'cancelled', state: 'cancelled' }],
    [
      'becomes a dead letter',
      (id) => nack(id, { code: 'k', message: 'm', kill: true }),
      { code: 'k', state: 'discarded' },
    ],
    [
      'is purged',
      async (id) => {
        await server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, requeue: true, attempt_used: false });
        const { queue: its } = await server.job(id);
        await server.ok(200, 'POST', `${V1}/queues/${its}/purge`, { states: ['available'] });
      },
      { state: 'discarded' },
    ],
  ];
  it('continues with a result of up to 1 MiB, unless it is too large for a message', async () => {
    const { id, children } = await parentOf([to, to]);
    const result = 'x'.repeat(1024 * 1024 - 2);
    await server.ack(children[0]?.id, { result });
    await server.ack(children[1]?.id, { result: '"'.repeat(500_000) });
    await settled(other);
    expect(await server.ok(200, 'GET', `${V1}/jobs/${id}/steps/r0`)).toMatchObject({ result });
    expect((await steps(id)).r1).toMatchObject({ result: { id: children[1]?.id, omitted: 1_000_002 } });
    expect(await server.state(id)).toBe('available');
  });

  it.each(ends)('continues with an error when that %s', async (_, end, error) => {
    const { id, children } = await parentOf([to]);
    await end(children[0]?.id);
    await settled(other);
    expect((await steps(id)).r0).toMatchObject({ error, run: { id: children[0]?.id } });
    expect(await server.state(id)).toBe('available');
  });

  it('continues with an error when that expires', async () => {
    const id = await server.enqueue(queue, { type: 'parent' });
    const expires_at = iso(T0 + HOUR);
    await await_(await server.takeOne(queue), [run('r0', to, {}, { expires_at })]);
    await settled(object);
    await other.passTo(T0 + HOUR);
    await settled(other);
    expect((await steps(id)).r0).toMatchObject({ error: { code: 'expired', state: 'discarded' } });
    expect(await server.state(id)).toBe('available');
  });

  it('is woken once, by the last of several', async () => {
    const { id, children } = await parentOf([to, to, to]);
    for (const { id: one } of children.slice(1)) await server.ack(one);
    await settled(other);
    expect(await server.state(id)).toBe('scheduled');
    await server.ack(children[0]?.id);
    await settled(other);
    expect(await server.state(id)).toBe('available');
  });

  it('is woken at once by the first of several that fails', async () => {
    const { id, children } = await parentOf([to, to]);
    await nack(children[1]?.id);
    await settled(other);
    expect(await server.state(id)).toBe('available');
  });

  it('waits only for the runs that it names', async () => {
    const { id, children } = await parentOf([to], { timeout_ms: HOUR });
    await object.passTo(T0 + 1);
    await server.ok(200, 'PATCH', `${V1}/jobs/${id}`, { scheduled_at: iso(T0 + 2) });
    await object.passTo(T0 + 2);
    await await_(await server.takeOne(queue), [run('other', to)]);
    await settled(object);
    await server.ack((await server.takeOne(to)).id);
    await settled(other);
    expect(await server.state(id)).toBe('available');
    expect((await steps(id)).r0?.run).toMatchObject({ id: children[0]?.id });
  });

  it('cancels it when it is cancelled, and leaves alone what is detached', async () => {
    const { id, children } = await parentOf([to]);
    await object.cancel(id);
    await settled(object, other);
    expect(await server.state(String(children[0]?.id))).toBe('cancelled');

    const detached = await parentOf([to], { detached: true });
    await object.cancel(detached.id);
    await settled(object, other);
    expect(await server.state(String(detached.children[0]?.id))).toBe('active');
    await server.ack(detached.children[0]?.id, { result: 7 });
    await settled(other);
    expect((await steps(detached.id)).r0).toMatchObject({ result: 7 });
  });

  it('sees at its moment that it has not ended, says so, and that cancels it', async () => {
    const { id, children } = await parentOf([to], { timeout_ms: MINUTE });
    await object.passTo(T0 + MINUTE);
    const again = await server.takeOne(queue);
    expect(again).toMatchObject({ id });
    await server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/r0`, { timed_out: true, attempt: 1 });
    await settled(object, other);
    expect((await steps(id)).r0).toMatchObject({ timed_out: true, run: { id: children[0]?.id } });
    expect(await server.state(String(children[0]?.id))).toBe('cancelled');
  });

  it('forgets failed and pending runs when it is redriven; late ends of old jobs change nothing', async () => {
    const { id, children } = await parentOf([to, to]);
    await nack(children[0]?.id);
    await settled(other);
    await nack((await server.takeOne(queue)).id);
    await settled(object, other);
    expect(await server.state(String(children[1]?.id))).toBe('cancelled');
    await object.redrive(id);
    expect(await steps(id)).toEqual({});
    await await_(await server.takeOne(queue), [run('r0', to)]);
    await settled(object);
    await other.redrive(String(children[0]?.id));
    const [old, fresh] = [await server.takeOne(to), await server.takeOne(to)].sort((a) =>
      a.id === children[0]?.id ? -1 : 1,
    );
    await server.ack(old?.id, { result: 'old' });
    await settled(other);
    expect(await server.state(id)).toBe('scheduled');
    await server.ack(fresh?.id, { result: 'new' });
    await settled(other);
    expect((await steps(id)).r0).toMatchObject({ result: 'new' });
  });

  it('takes the result of a redriven one in the place of its error', async () => {
    const { id, children } = await parentOf([to]);
    await nack(children[0]?.id);
    await settled(other);
    await other.redrive(String(children[0]?.id));
    await settled(other);
    const jobs = [await server.takeOne(to), to === queue ? await server.takeOne(to) : undefined];
    const again = jobs.find((job) => job?.id === children[0]?.id);
    await server.ack(again?.id, { result: 'late' });
    await settled(other);
    expect((await steps(id)).r0).toMatchObject({ result: 'late' });
  });

  it('starts one job, however often the report is repeated and its object dies', async () => {
    const id = await server.enqueue(queue, { type: 'parent' });
    const job = await server.takeOne(queue);
    const report = { job_id: id, attempt: 1, delivery_id: job.delivery_id, requeue: true, attempt_used: false };
    const snooze = { runs: [run('r0', to)] };
    await server.ok(200, 'POST', `${V1}/workers/nack`, { ...report, snooze });
    await object.evict();
    await server.ok(200, 'POST', `${V1}/workers/nack`, { ...report, snooze });
    await object.alarm();
    await settled(object);
    expect((await server.take(to, { count: 5 })).map(({ type }) => type)).toEqual(['child']);
  });
});

describe('several jobs under one name', () => {
  it.each([true, false])('become one list in order (in the own queue: %s)', async (isOwn) => {
    const to = isOwn ? queue : freshName('other');
    const other = new TestQueue(to);
    const id = await server.enqueue(queue, { type: 'parent' });
    const jobs = [0, 1, 2, 3].map((n) => ({ type: 'child', args: [n], options: { queue: to } }));
    await await_(await server.takeOne(queue), [{ name: 'all', jobs: [...jobs, { type: '' }], all: true }]);
    await settled(object);
    const children = await server.take(to, { count: 10 });
    expect(children).toHaveLength(4);
    expect((await steps(id)).all?.run).toMatchObject({
      jobs: 5,
      ended: 1,
      failed: 1,
      ids: [...children.map((c) => c.id), null],
    });
    await server.ack(children[3]?.id, { result: 'd' });
    await server.ack(children[0]?.id, { result: 'a' });
    await server.ack(children[2]?.id, { result: 'x'.repeat(20_000) });
    await settled(other);
    expect(await server.state(id)).toBe('scheduled');
    await nack(children[1]?.id);
    await settled(other);
    expect(await server.state(id)).toBe('available');
    const all = (await steps(id)).all;
    expect(all?.result).toMatchObject([
      { id: children[0]?.id, result: 'a' },
      { id: children[1]?.id, error: { code: 'bad', state: 'discarded' } },
      { id: children[2]?.id, omitted: 20_002 },
      { id: children[3]?.id, result: 'd' },
      { error: { code: 'invalid_request' } },
    ]);
    expect(all?.run).toMatchObject({ jobs: 5, ended: 5, failed: 2 });
  });

  it.each([true, false])('may all fail at length, 1,000 of them (in the own queue: %s)', async (isOwn) => {
    const to = isOwn ? queue : freshName('other');
    const other = new TestQueue(to);
    const id = await server.enqueue(queue, { type: 'parent' });
    const jobs = Array.from({ length: 1000 }, () => child(to, { retry: steady(1) }));
    await await_(await server.takeOne(queue), [{ name: 'all', jobs, all: true }]);
    await settled(object);
    const ids = await other.claimAll({ types: ['child'] });
    expect(ids).toHaveLength(1000);
    const error = { code: 'bad', message: '€'.repeat(1024), retryable: false, details: { a: 'x'.repeat(2000) } };
    for (let at = 0; at < ids.length; at += 250) {
      const reports = ids.slice(at, at + 250).map((job_id) => ({ action: 'nack', job_id, error }));
      await server.ok(200, 'POST', `${V1}/workers/report`, { reports });
    }
    await settled(other);
    expect(await server.state(id)).toBe('available');
    const record = (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps/all`)) as Json;
    expect(record.run).toMatchObject({ jobs: 1000, ended: 1000, failed: 1000 });
    expect(record.result).toHaveLength(1000);
    expect((record.result as Json[])[0]).toMatchObject({ error: { details: error.details, message: error.message } });
    // A list that is stored apart takes a result in the place of an error, too.
    await other.redrive(String(ids[0]));
    await other.claimAll({ types: ['child'] });
    await other.ack(String(ids[0]), { result: '"late"' });
    await settled(other);
    expect(((await server.ok(200, 'GET', `${V1}/jobs/${id}/steps/all`)).result as Json[])[0]).toMatchObject({
      ...{ id: ids[0], result: 'late' },
    });
  });

  it('count the result of one that was redriven while others run', async () => {
    const id = await server.enqueue(queue, { type: 'parent' });
    await await_(await server.takeOne(queue), [{ name: 'all', jobs: [child(queue), child(queue)], all: true }]);
    const [one, two] = await server.take(queue, { count: 2 });
    await nack(one?.id);
    await object.redrive(String(one?.id));
    await server.ack((await server.takeOne(queue)).id, { result: 1 });
    await server.ack(two?.id, { result: 2 });
    expect((await steps(id)).all).toMatchObject({ result: [{ result: 1 }, { result: 2 }], run: { failed: 0 } });
  });

  it('stop with the first failure, which cancels the others', async () => {
    const id = await server.enqueue(queue, { type: 'parent' });
    const jobs = [child(queue), child(queue), child(queue)];
    await await_(await server.takeOne(queue), [{ name: 'all', jobs, all: true, stop: true }]);
    const children = await server.take(queue, { count: 10 });
    await server.ack(children[0]?.id, { result: 1 });
    await nack(children[1]?.id);
    expect(await server.state(id)).toBe('available');
    expect(await server.state(String(children[2]?.id))).toBe('cancelled');
    const error = { code: 'cancelled', state: 'cancelled' };
    expect((await steps(id)).all?.result).toMatchObject([{ result: 1 }, { error: { code: 'bad' } }, { error }]);
  });
});

describe('what can never start', () => {
  it.each([
    ['an option', run('r', 'q', {}, { priority: 'high' }), 'invalid_request'],
    ['unique', run('r', 'q', {}, { unique: { keys: ['type'] } }), 'unsupported'],
    ['pending', run('r', 'q', {}, { pending: true }), 'unsupported'],
    ['a type', { name: 'r', jobs: [{ type: 7, args: [] }] }, 'invalid_request'],
  ])('ends its run with an error at once: %s', async (_, asked, code) => {
    const id = await server.enqueue(queue, { type: 'parent' });
    await await_(await server.takeOne(queue), [asked]);
    expect((await steps(id)).r).toMatchObject({ error: { code } });
    expect(await server.state(id)).toBe('available');
  });

  it('is refused by another queue: the run ends with its error', async () => {
    const to = freshName('picky');
    await server.configure(to, { allowed_job_types: ['other'] });
    const id = await server.enqueue(queue, { type: 'parent' });
    await await_(await server.takeOne(queue), [run('r', to)]);
    await settled(object);
    expect((await steps(id)).r).toMatchObject({ error: { code: 'invalid_request' } });
    expect(await server.state(id)).toBe('available');
  });

  it('is a job of a strict group that one above it holds', async () => {
    await server.configure(queue, { groups: { order: 'strict' } });
    const id = await server.enqueue(queue, { type: 'parent', options: { group: 'g' } });
    await await_(await server.takeOne(queue), [
      run('r', queue, {}, { group: 'g' }),
      run('s', queue, {}, { group: 'h' }),
    ]);
    expect((await steps(id)).r).toMatchObject({ error: { code: 'deadlock' } });
    const [below] = await server.take(queue, { types: ['child'] });
    await await_(below as Json, [run('r', queue, {}, { group: 'g' })]);
    expect((await steps(below?.id)).r).toMatchObject({ error: { code: 'deadlock' } });
  });

  it('fails a report that names no jobs for a new name, and changes nothing', async () => {
    const id = await server.enqueue(queue, { type: 'parent' });
    const job = await server.takeOne(queue);
    const body = { job_id: id, attempt: 1, requeue: true, attempt_used: false, snooze: { runs: [{ name: 'r' }] } };
    expect(await server.refusal('POST', `${V1}/workers/nack`, body)).toMatchObject({ code: 'invalid_request' });
    expect(await server.job(job.id)).toMatchObject({ state: 'active' });
  });
});

it('a full queue takes the jobs that its own handlers wait for', async () => {
  await server.configure(queue, { backpressure: { max_depth: 1 } });
  const { id, children } = await parentOf([queue, queue]);
  for (const { id: one } of children) await server.ack(one);
  expect(await server.state(id)).toBe('available');
});

it('a deleted queue ends the runs of its jobs', async () => {
  const to = freshName('other');
  const { id } = await parentOf([to]);
  await server.ok(202, 'DELETE', `${V1}/queues/${to}`, { strategy: 'discard' });
  await until(async () => (await server.state(id)) === 'available', 'the handler to continue');
  expect((await steps(id)).r0).toMatchObject({ error: { state: 'discarded' } });
});

it('cancellation goes down the tree', async () => {
  const to = freshName('other');
  const { id, children } = await parentOf([to]);
  await await_(children[0] as Json, [run('below', queue)]);
  await settled(new TestQueue(to));
  const [below] = await server.take(queue);
  await object.cancel(id);
  await settled(object, new TestQueue(to));
  expect(await server.state(String(children[0]?.id))).toBe('cancelled');
  await settled(object, new TestQueue(to));
  expect(await server.state(String(below?.id))).toBe('cancelled');
});

it.each([
  ['ended', (id: string) => object.cancel(id)],
  ['was purged', () => server.ok(200, 'POST', `${V1}/queues/${queue}/purge`, { states: ['scheduled'] })],
])('a job of a parent that %s before it was started is cancelled as it arrives', async (_, end) => {
  const to = freshName('other');
  const id = await server.enqueue(queue, { type: 'parent', options: { retry: steady(1) } });
  const job = await server.takeOne(queue);
  await object.cutOff(to);
  await object.inside(async ({ engine }) => {
    const { others } = (engine as unknown as { host: { others: { enqueueEach: unknown } } }).host;
    others.enqueueEach = () => Promise.reject(new Error('cut off'));
  });
  await await_(job, [run('r', to)]);
  await end(id);
  await object.evict();
  await object.passTo(Date.now() + MINUTE);
  await settled(object);
  await settled(new TestQueue(to));
  expect(await new TestQueue(to).counts()).toEqual({ cancelled: 1 });
});

it('a handler that waits for a job says in `waiting_for` which', async () => {
  const { id, children } = await parentOf([queue]);
  expect((await server.job(id)).waiting_for).toMatchObject({
    ...{ reason: 'run', job_id: children[0]?.id, signal: 'r0', until: iso(T0 + 7 * DAY) },
    detail: expect.stringContaining(`It waits for job ${children[0]?.id} (child) in queue ${queue}.`),
  });
});

it("a purge of the handler's job cancels what it waits for", async () => {
  const to = freshName('other');
  const { children } = await parentOf([to]);
  await server.ok(200, 'POST', `${V1}/queues/${queue}/purge`, { states: ['scheduled'] });
  await settled(object, new TestQueue(to));
  expect(await server.state(String(children[0]?.id))).toBe('cancelled');
});

it("the completion of the handler's job cancels what it no longer waits for", async () => {
  const { id, children } = await parentOf([queue], { timeout_ms: MINUTE });
  await object.passTo(T0 + MINUTE);
  await server.ack((await server.takeOne(queue)).id);
  expect(await server.state(id)).toBe('completed');
  expect(await server.state(String(children[0]?.id))).toBe('cancelled');
});

it('a handler and its jobs that move to another queue find each other', async () => {
  const [there, far] = [freshName('there'), freshName('far')];
  const id = await server.enqueue(queue, { type: 'parent' });
  await await_(await server.takeOne(queue), [run('own', queue), run('far', far)]);
  await settled(object);
  await server.call('DELETE', `${V1}/queues/${queue}`, { strategy: 'move', target_queue: there });
  const moved = new TestQueue(there);
  await until(async () => (await moved.stats()).counts.scheduled === 1, 'the handler to move');
  await until(async () => !JSON.stringify(await server.queues()).includes(queue), 'the queue to be gone');
  await server.ack((await server.takeOne(far)).id, { result: 'far' });
  await settled(new TestQueue(far));
  await server.ack((await server.takeOne(there)).id, { result: 'own' });
  await settled(moved);
  expect(await steps(id)).toMatchObject({ own: { result: 'own' }, far: { result: 'far' } });
  expect(await server.state(id)).toBe('available');
});

it('nothing that is sent about a job on its way to another queue is lost', async () => {
  const [far, there] = [freshName('far'), freshName('there')];
  const waiting = await parentOf([far]);
  const asked = await server.enqueue(far, { type: 'parent' });
  await await_(await server.takeOne(far), [run('r', queue)]);
  await settled(new TestQueue(far));
  const target = new TestQueue(there);
  await server.enqueue(there, { type: 'first' });
  // It takes the jobs when it works again.
  const works = await target.inside(({ sql }) => failAlways(sql, /INSERT/));
  await server.call('DELETE', `${V1}/queues/${queue}`, { strategy: 'move', target_queue: there });
  await server.ack(waiting.children[0]?.id, { result: 7 });
  await server.ok(200, 'DELETE', `${V1}/jobs/${asked}`);
  for (const call of [
    () => server.call('GET', `${V1}/jobs/${waiting.id}`),
    () => server.call('POST', `${V1}/jobs/${waiting.id}/signals/go`, { payload: 1 }),
  ]) {
    expect(await call()).toMatchObject({
      status: 503,
      body: { error: { retryable: true, message: expect.stringContaining(`is on its way to queue ${there}`) } },
    });
  }
  works();
  await inTime([object, new TestQueue(far)], 'the end and the cancellation to arrive', async () => {
    const { available, cancelled } = (await target.stats()).counts;
    return available === 2 && cancelled === 1;
  });
  expect((await steps(waiting.id)).r0).toMatchObject({ result: 7 });
  expect(await server.state(waiting.id)).toBe('available');
});

it('a dead letter that moves to another queue still gets the result of its detached job', async () => {
  const [there, far] = [freshName('there'), freshName('far')];
  const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
  const id = await server.enqueue(queue, { type: 'parent', options: { retry } });
  const slow = run('slow', far, { detached: true });
  await await_(await server.takeOne(queue), [slow, run('quick', queue)]);
  await settled(object);
  const child = await server.takeOne(far);
  await nack((await server.takeOne(queue)).id);
  await nack((await server.takeOne(queue)).id);
  await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: there } });
  await settled(object);
  await await_(await server.takeOne(there), [slow]);
  await server.ack(child.id, { result: 'late' });
  await settled(new TestQueue(far), object);
  expect(await steps(id)).toMatchObject({ slow: { result: 'late' } });
  expect(await server.state(id)).toBe('available');
});

it('a dead letter gets the result of its detached job that comes while it is on its way', async () => {
  const [there, far] = [freshName('there'), freshName('far')];
  const retry = { max_attempts: 1, on_exhaustion: 'dead_letter' };
  const id = await server.enqueue(queue, { type: 'parent', options: { retry } });
  await await_(await server.takeOne(queue), [run('slow', far, { detached: true }), run('quick', queue)]);
  await settled(object);
  const child = await server.takeOne(far);
  await nack((await server.takeOne(queue)).id);
  await nack((await server.takeOne(queue)).id);
  // The other queue has it, and this one cannot forget it yet.
  const works = await object.inside(({ sql }) => failAlways(sql, /DELETE FROM jobs/));
  await server.call('POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: there } });
  await server.ack(child.id, { result: 'late' });
  works();
  const elsewhere = new TestQueue(far);
  await inTime([object, elsewhere], 'the end to arrive', async () => {
    return (await elsewhere.rows('SELECT 1 FROM outbox')).length === 0;
  });
  expect(await server.counts(there)).toMatchObject({ available: 1 });
  expect(await steps(id)).toMatchObject({ slow: { result: 'late' } });
});

it('an operator answers for a job that is waited for: the handler continues, and the job is cancelled', async () => {
  const { id, children } = await parentOf([queue]);
  await server.ok(200, 'PUT', `${V1}/admin/jobs/${id}/steps/r0`, { result: 'by hand' });
  expect((await steps(id)).r0).toMatchObject({ result: 'by hand', run: { id: children[0]?.id } });
  expect(await server.state(id)).toBe('available');
  expect(await server.state(String(children[0]?.id))).toBe('cancelled');
});

it('a clone of a job that is waited for is awaited by no one', async () => {
  const { id, children } = await parentOf([queue]);
  await server.ok(201, 'POST', `${V1}/admin/jobs/${children[0]?.id}/clone`, {});
  await server.ack((await server.takeOne(queue)).id, { result: 'clone' });
  expect(await server.state(id)).toBe('scheduled');
});

it('a job that cannot be read has ended for the handler, too', async () => {
  const id = await server.enqueue(queue, { type: 'parent' });
  await await_(await server.takeOne(queue), [run('r', queue, {}, { priority: 1 })]);
  await object.inside(({ sql, q }) => {
    sql.exec("UPDATE jobs SET body = '{' || body WHERE type = 'child'").toArray();
    q.load();
  });
  expect(await server.take(queue)).toMatchObject([{ id, steps: { r: { error: {} } } }]);
  expect((await steps(id)).r).toMatchObject({ error: { code: 'unreadable_record', state: 'discarded' } });
});
