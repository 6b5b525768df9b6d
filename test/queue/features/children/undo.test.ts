/** Jobs that a handler waited for, when it ends otherwise than completed and they must be undone. */
import { beforeEach, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { freshName, TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

server.emptyBeforeEach();
clock.startAtT0();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('undo');
  object = new TestQueue(queue);
});

const settled = (...objects: TestQueue[]) =>
  until(async () => {
    for (const one of objects) if ((await one.rows('SELECT 1 FROM outbox')).length > 0) return false;
    return true;
  }, 'the messages to arrive');
const child = (to: string, type = 'seat.book', options: Json = {}) => ({
  ...{ type, args: [] },
  options: { queue: to, ...options },
});
const wait = (id: unknown, runs: Json[]) =>
  server.ok(200, 'POST', `${V1}/workers/nack`, {
    ...{ job_id: id, requeue: true, attempt_used: false, snooze: { runs } },
  });
const fail = (id: unknown) =>
  server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, error: { code: 'x', message: 'x', retryable: false } });
const retry = (id: unknown) => server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, {});

/** A job that waits for these. */
async function parent(...runs: Json[]): Promise<string> {
  const id = await server.enqueue(queue, { type: 'trip.book' });
  await server.takeOne(queue);
  await wait(id, runs);
  await settled(object);
  return id;
}

async function undone(id: unknown): Promise<Json[] | undefined> {
  const { undo } = await server.job(id);
  if (!undo) return undefined;
  const { args } = await server.job((undo as Json).job_id);
  return (args as [{ steps: Json[] }])[0].steps;
}

const idIn = async (id: unknown, name: string) =>
  ((await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps as Record<string, { run: Json }>)[name]?.run.id;

it.each(['its own queue', 'another queue'])(
  'in %s: the undo job knows results and ids of those that completed',
  async (where) => {
    const to = where === 'its own queue' ? queue : freshName('other');
    const other = new TestQueue(to);
    const id = await parent(
      { name: 'seat', jobs: [child(to)], undo: true },
      { name: 'room', jobs: [child(to)], undo: true },
      { name: 'mail', jobs: [child(to)] },
    );
    for (let n = 0; n < 3; n++) await server.takeOne(to);
    const [seat, room] = [await idIn(id, 'seat'), await idIn(id, 'room')];
    await server.ack(seat, { result: { seat: 4 } });
    await settled(other);
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    expect(await undone(id)).toEqual([
      { name: 'room', certain: false, job_ids: [room] },
      { name: 'seat', certain: true, result: { seat: 4 }, job_ids: [seat] },
    ]);
    await settled(object, other);
    expect(await server.job(room)).toMatchObject({ state: 'cancelled' });
  },
);

it('a child that failed may have had an effect, one that was refused has none', async () => {
  const id = await parent(
    { name: 'seat', jobs: [child(queue)], undo: true },
    { name: 'never', jobs: [child(queue, 'seat.book', { unique: { keys: ['type'] } })], undo: true },
  );
  const seat = await idIn(id, 'seat');
  // The refusal woke its parent.
  expect(await server.takeIds(queue, { count: 2 })).toEqual(expect.arrayContaining([id, seat]));
  await fail(seat);
  await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
  expect(await undone(id)).toEqual([{ name: 'seat', certain: false, job_ids: [seat] }]);
});

it('the undo job of several children knows the end of each, also while others run', async () => {
  const id = await parent({ name: 'seats', jobs: [1, 2, 3].map(() => child(queue)), all: true, undo: true });
  const jobs = [await server.takeOne(queue), await server.takeOne(queue), await server.takeOne(queue)];
  await server.ack(jobs[0]?.id, { result: 7 });
  await fail(jobs[1]?.id);
  await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
  const [, second, third] = jobs.map((job) => job.id);
  expect(await undone(id)).toEqual([
    {
      ...{ name: 'seats', certain: false, job_ids: jobs.map((job) => job.id) },
      result: [
        { id: jobs[0]?.id, result: 7 },
        { id: second, error: expect.objectContaining({ code: 'x' }) },
        { id: third },
      ],
    },
  ]);
});

it('a job that is started again before its undo starts its failed children again, and undoes the new ones', async () => {
  const id = await parent({ name: 'seat', jobs: [child(queue)], undo: true });
  const first = await server.takeOne(queue);
  await fail(first.id);
  await server.takeOne(queue);
  await fail(id);
  expect(await undone(id)).toEqual([{ name: 'seat', certain: false, job_ids: [first.id] }]);
  await retry(id);
  // Its worker finds nothing on record, and asks for the child again.
  expect(await server.takeOne(queue)).toMatchObject({ id });
  await wait(id, [{ name: 'seat', jobs: [child(queue)], undo: true }]);
  const second = await server.takeOne(queue);
  expect(second.id).not.toBe(first.id);
  await server.ack(second.id, { result: 9 });
  await server.takeOne(queue);
  await fail(id);
  expect(await undone(id)).toEqual([{ name: 'seat', certain: true, result: 9, job_ids: [second.id] }]);
});

it('a flag that is none is refused', async () => {
  const id = await server.enqueue(queue, { type: 'trip.book' });
  await server.takeOne(queue);
  const runs = [{ name: 'seat', jobs: [child(queue)], undo: 'yes' }];
  const snoozed = { job_id: id, requeue: true, attempt_used: false, snooze: { runs } };
  const refused = await server.refusal('POST', `${V1}/workers/nack`, snoozed);
  expect(refused).toEqual({ status: 400, code: 'invalid_request', field: 'snooze.runs[0].undo' });
});
