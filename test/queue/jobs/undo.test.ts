/** Jobs that undo the steps of another one, which ended otherwise than completed. */
import { beforeEach, describe, expect, it } from 'vitest';
import { clock, DAY, MINUTE, T0 } from '../../support/clock';
import { exported, imported } from '../../support/exports';
import { onRecord, stamped } from '../../support/on-record';
import { freshName, steady, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('undo');
  object = new TestQueue(queue);
});

const put = (id: unknown, name: string, body: Json) => server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/${name}`, body);
const steps = async (id: unknown) => (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps;
const again = (id: unknown, body: Json = {}) => server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, body);
const cancel = (id: unknown) => server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
const begun = { begun: true, undo: true };
const charged = { result: { receipt: 7 }, undo: true };

/** A job that runs, with a step that is done, one that was begun, and one that needs no undoing. */
async function started(options: Json = {}, type = 'order.fulfil'): Promise<string> {
  const id = await server.add(
    type,
    [{ number: '17' }],
    { queue, retry: steady(2), ...options },
    { meta: { shop: 'a' } },
  );
  await server.takeOne(queue);
  await put(id, 'charge', begun);
  await put(id, 'charge', charged);
  await put(id, 'note', { result: 1 });
  await put(id, 'reserve', begun);
  return id;
}

const undoIn = async (id: unknown) => (await server.job(id)).undo as Json | undefined;
const jobOf = async (id: unknown) => server.job((await undoIn(id))?.job_id);

async function sleepUntil(id: unknown, until: number): Promise<void> {
  const snooze = { until, steps: { nap: { until } } };
  await server.ok(200, 'POST', `${V1}/workers/nack`, { job_id: id, requeue: true, attempt_used: false, snooze });
}

describe('a job that ends otherwise than completed', () => {
  it('is undone by a job that knows what it was, how it ended, and its steps, the last one first', async () => {
    const id = await started({ group: 'acme', priority: 4 });
    await server.failNow(id);
    expect(await undoIn(id)).toBeUndefined();
    clock.set(T0 + MINUTE);
    await server.takeOne(queue);
    await server.nack(id, { error: { code: 'refused', type: 'Refused', message: 'no' } });
    const undo = await jobOf(id);
    expect(await undoIn(id)).toEqual({ job_id: undo.id, state: 'available' });
    expect(undo).toMatchObject({
      ...{ type: 'order.fulfil.undo', queue, state: 'available', group: 'acme', priority: 4, meta: { undo_of: id } },
      retry_effective: { on_exhaustion: 'dead_letter' },
    });
    expect(undo.args).toEqual([
      {
        job: {
          ...{ id, type: 'order.fulfil', args: [{ number: '17' }], meta: { shop: 'a' }, end: 'discarded' },
          error: { code: 'refused', type: 'Refused', message: 'no' },
        },
        steps: [
          { name: 'reserve', certain: false },
          { name: 'charge', certain: true, result: { receipt: 7 } },
        ],
      },
    ]);
    // A list costs no look at the other job.
    const [listed] = (await server.ok(200, 'GET', `${V1}/admin/jobs?state=discarded&queue=${queue}`)).items as Json[];
    expect(listed?.undo).toEqual({ job_id: undo.id });
  });

  const noRoom = { max_size: 1, overflow_policy: 'drop_oldest' };
  it.each<[string, Json, (id: string) => Promise<unknown>]>([
    [
      'discarded',
      { end: 'discarded' },
      (id) => server.nack(id, { error: { code: 'x', message: 'x', retryable: false } }),
    ],
    [
      'a dead letter',
      { end: 'dead_letter' },
      (id) => server.nack(id, { error: { code: 'DEAD_LETTER', message: 'x' } }),
    ],
    ['cancelled while it runs', { end: 'cancelled', error: { code: 'cancelled' } }, cancel],
    [
      'cancelled while it sleeps',
      { end: 'cancelled', error: { code: 'cancelled' } },
      async (id) => {
        await sleepUntil(id, T0 + MINUTE);
        await cancel(id);
      },
    ],
    [
      'expired',
      { end: 'discarded', error: { code: 'expired' } },
      async (id) => {
        await sleepUntil(id, T0 + 2 * DAY);
        await object.passTo(T0 + DAY);
      },
    ],
    [
      'dropped',
      { end: 'discarded', error: { code: 'queue_full' } },
      async (id) => {
        await sleepUntil(id, T0 + MINUTE);
        await server.configure(queue, noRoom);
        await server.enqueue(queue);
      },
    ],
    [
      'lost with its lease',
      { end: 'discarded', error: { code: 'timeout' } },
      async () => {
        await object.passTo(T0 + 2 * DAY);
        await object.claim();
        await object.passTo(T0 + 4 * DAY);
      },
    ],
    [
      'unreadable',
      { end: 'dead_letter', error: { code: 'unreadable_record' }, args: [] },
      async (id) => {
        await server.failNow(id);
        clock.set(T0 + MINUTE);
        await object.inside(
          ({ sql }) => void sql.exec(`UPDATE jobs SET body = '{"args":' WHERE attempt > 0`).toArray(),
        );
        await object.evict();
        await object.claim();
      },
    ],
  ])('is undone when it was %s', async (_, how, end) => {
    const isTimed = how.error !== undefined && (how.error as Json).code === 'expired';
    const id = await started(isTimed ? { expires_at: new Date(T0 + DAY).toISOString() } : {});
    await end(id);
    const { args, type } = await jobOf(id);
    expect(type).toBe('order.fulfil.undo');
    const [{ job, steps: told }] = args as [{ job: Json; steps: Json[] }];
    expect(job).toMatchObject({ id, ...how });
    expect(told.map(({ name }) => name)).toEqual(['reserve', 'charge']);
    expect(await server.job(id)).not.toHaveProperty('steps');
  });

  it('is not undone when it completes, is purged, or has no step that can be undone', async () => {
    const completed = await started();
    await server.ack(completed);
    const plain = await server.enqueue(queue, { options: { retry: steady(1) } });
    await server.takeOne(queue);
    await put(plain, 'note', { result: { text: '"undo":true', undo: true } });
    await server.nack(plain);
    const purged = await started();
    await sleepUntil(purged, T0 + MINUTE);
    await server.ok(200, 'POST', `${V1}/queues/${queue}/purge`, { confirm: true, states: ['scheduled'] });
    expect(await undoIn(completed)).toBeUndefined();
    expect(await undoIn(plain)).toBeUndefined();
    expect((await object.listAll()).map(({ type }) => type)).not.toContain('order.fulfil.undo');
  });

  it('does not undo a signal URL, which its arguments would show to readers', async () => {
    const id = await started();
    await put(id, 'url:approved', { result: 'https://jobs.example/ojs/v1/signal/a.b.c', undo: true });
    await put(id, 'url:mine', { result: 'https://other.example', undo: true });
    await cancel(id);
    const [{ steps: undone }] = (await jobOf(id)).args as [{ steps: Json[] }];
    expect(undone.map(({ name }) => name)).toEqual(['url:mine', 'reserve', 'charge']);
  });

  it('makes no undo of its undo', async () => {
    const id = await started();
    await cancel(id);
    const undo = await server.takeOne(queue);
    await put(undo.id, 'undo reserve', charged);
    await server.nack(undo.id, { error: { code: 'x', message: 'x', retryable: false } });
    expect(await server.job(undo.id)).toMatchObject({ state: 'discarded', dead_letter: true });
    expect(await undoIn(undo.id)).toBeUndefined();
    expect(await undoIn(id)).toEqual({ job_id: undo.id, state: 'discarded' });
  });

  it('leaves out the largest results of more than there is room for', async () => {
    const id = await server.add('order.fulfil', ['a'.repeat(900_000)], { queue });
    await server.takeOne(queue);
    await put(id, 'small', { result: 'b'.repeat(300_000), undo: true });
    await put(id, 'large', { result: 'c'.repeat(400_000), undo: true });
    await cancel(id);
    const [{ steps: told }] = (await jobOf(id)).args as unknown as [{ steps: Json[] }];
    expect(told).toEqual([
      { name: 'large', certain: true, omitted: 400_002 },
      { name: 'small', certain: true, result: 'b'.repeat(300_000) },
    ]);
  });
});

describe('a record with a flag', () => {
  it('is not given to the next run while the step has only begun, and keeps its flag whatever follows', async () => {
    const id = await started();
    expect(await put(id, 'reserve', begun)).toMatchObject({ recorded: true, ...begun });
    await server.failNow(id);
    clock.set(T0 + MINUTE);
    expect((await server.takeOne(queue)).steps).toEqual(onRecord({ charge: charged, note: { result: 1 } }));
    await put(id, 'reserve', { result: 'seat 4' });
    expect(await steps(id)).toEqual(
      onRecord({ charge: charged, note: { result: 1 }, reserve: { result: 'seat 4', undo: true } }),
    );
  });

  it('takes a step that was tried before it could be undone', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    const tried = { until: T0 + 5, tries: 2, failed: { message: 'x' } };
    await put(id, 'a', tried);
    await put(id, 'a', begun);
    expect(await steps(id)).toEqual(onRecord({ a: { ...tried, undo: true } }));
  });

  it('is refused when it says anything but yes or no, and a signal does not take the name of a step', async () => {
    const id = await started();
    const path = `${V1}/jobs/${id}/steps/x`;
    expect(await server.refusal('PUT', path, { result: 1, undo: 'yes' })).toMatchObject({
      status: 400,
      field: 'step.undo',
    });
    expect(await server.refusal('PUT', path, { begun: 1 })).toMatchObject({ status: 400 });
    await put(id, 'x', { result: 1, undo: false });
    expect(((await steps(id)) as Json).x).toEqual(expect.not.objectContaining({ undo: true }));
    expect(await server.refusal('POST', `${V1}/jobs/${id}/signals/reserve`, {})).toMatchObject({ status: 409 });
  });
});

describe('a job that begins again', () => {
  it('cancels an undo job that has not begun, and keeps its records', async () => {
    const id = await started();
    await cancel(id);
    const undo = await jobOf(id);
    const answer = await again(id);
    expect(answer).not.toHaveProperty('warnings');
    expect(answer.job).toMatchObject({ state: 'available' });
    expect(answer.job).not.toHaveProperty('undo');
    expect(await server.state(undo.id as string)).toBe('cancelled');
    expect((await server.takeOne(queue)).steps).toMatchObject({ charge: charged });
    // Its next end has an undo of its own; the one before is over for good.
    await cancel(id);
    expect((await jobOf(id)).id).not.toBe(undo.id);
    const path = `${V1}/admin/jobs/${undo.id}/retry`;
    expect(await server.refusal('POST', path, {})).toMatchObject({ status: 409, code: 'conflict' });
  });

  it('is not undone twice after a purge: an undo job of an earlier life never runs again', async () => {
    const id = await started();
    await cancel(id);
    const undo = await jobOf(id);
    await again(id);
    await server.takeOne(queue);
    await server.nack(id, { error: { code: 'DEAD_LETTER', message: 'x' } });
    expect(await undoIn(id)).toMatchObject({ state: 'available' });
    await server.ok(200, 'DELETE', `${V1}/dead-letter/${id}`);
    const path = `${V1}/admin/jobs/${undo.id}/retry`;
    expect(await server.refusal('POST', path, {})).toMatchObject({ status: 409, code: 'conflict' });
    const file = await exported(queue, 'ended=true');
    await server.reset();
    await imported(queue, file);
    expect(await server.refusal('POST', path, {})).toMatchObject({ status: 409, code: 'conflict' });
  });

  it('is not undone elsewhere while it lives again in another queue', async () => {
    const id = await started();
    await server.nack(id, { error: { code: 'DEAD_LETTER', message: 'x' } });
    const undo = await jobOf(id);
    await cancel(undo.id);
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: freshName('undo') } });
    const path = `${V1}/admin/jobs/${undo.id}/retry`;
    expect(await server.refusal('POST', path, {})).toMatchObject({ status: 409, code: 'conflict' });
    await object.alarm();
    expect(await server.state(id)).toBe('available');
    expect(await server.refusal('POST', path, {})).toMatchObject({ status: 409, code: 'conflict' });
  });

  it('keeps the flag of a step that has failed, or that was tried', async () => {
    const id = await started();
    await put(id, 'reserve', { error: { message: 'in vain' } });
    await put(id, 'ship', { until: T0 + 5, tries: 1, failed: { message: 'x' }, undo: true });
    await cancel(id);
    await again(id);
    expect(await steps(id)).toEqual(onRecord({ charge: charged, note: { result: 1 }, reserve: begun, ship: begun }));
  });

  it('waits for an undo job that works', async () => {
    const id = await started();
    await cancel(id);
    const undo = await server.takeOne(queue);
    const path = `${V1}/admin/jobs/${id}/retry`;
    const wait = { status: 409, body: { error: { code: 'conflict', retryable: true } } };
    expect(await server.call('POST', path, {})).toMatchObject(wait);
    await server.failNow(undo.id);
    expect(await server.call('POST', path, { from: 'note' })).toMatchObject(wait);
    expect(await server.state(id)).toBe('cancelled');
  });

  it('forgets all records once they were undone, and says so', async () => {
    const id = await started();
    await server.nack(id, { error: { code: 'DEAD_LETTER', message: 'x' } });
    const undo = await server.takeOne(queue);
    await server.ack(undo.id);
    expect(await undoIn(id)).toEqual({ job_id: undo.id, state: 'completed' });
    const answer = await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, {});
    expect(answer.warnings).toEqual([expect.stringContaining('starts over')]);
    expect(await steps(id)).toEqual({});
    await server.takeOne(queue);
    await cancel(id);
    expect(await undoIn(id)).toBeUndefined();
  });

  it('starts again from a step: what was undone runs again, what was not is still to be undone', async () => {
    const id = await started();
    await put(id, 'ship', charged);
    await cancel(id);
    await again(id, { from: 'note' });
    expect(await steps(id)).toEqual({
      ...{ charge: stamped(charged, 1), reserve: stamped(begun, 3), ship: stamped(begun, 4) },
    });
    await server.takeOne(queue);
    await put(id, 'note', { result: 2 });
    await put(id, 'last', { result: 3 });
    await cancel(id);
    await server.ack((await server.takeOne(queue)).id);
    await again(id, { from: 'last' });
    expect(await steps(id)).toEqual({ note: stamped({ result: 2 }, 5) });
  });

  it('goes to another queue without its undo job, so not before that has ended', async () => {
    const id = await started();
    await server.nack(id, { error: { code: 'DEAD_LETTER', message: 'x' } });
    const path = `${V1}/dead-letter/${id}/retry`;
    const elsewhere = { override: { queue: freshName('undo') } };
    expect(await server.refusal('POST', path, elsewhere)).toMatchObject({ status: 409, code: 'conflict' });
    await server.ack((await server.takeOne(queue)).id);
    await server.ok(200, 'POST', path, elsewhere);
    await object.alarm();
    expect((await server.takeOne(elsewhere.override.queue)).steps).toEqual({});
  });

  it('as a fork has copies of the records, which belong to the first, and none of what was undone', async () => {
    const fork = async (id: string, from: string) => {
      const { job } = await server.ok(201, 'POST', `${V1}/admin/jobs/${id}/clone`, { from });
      return (job as Json).id;
    };
    const id = await started();
    await put(id, 'ship', { result: 2 });
    const early = await fork(id, 'ship');
    expect(await steps(early)).toEqual(onRecord({ charge: { result: { receipt: 7 } }, note: { result: 1 } }));
    await cancel(early);
    expect(await undoIn(early)).toBeUndefined();
    await cancel(id);
    expect(await steps(await fork(id, 'ship'))).toEqual({ note: stamped({ result: 1 }, 2) });
  });
});

describe('an undo job', () => {
  it('is taken by a full queue, and not dropped to make room', async () => {
    const id = await started();
    await server.configure(queue, { max_size: 2, overflow_policy: 'drop_oldest' });
    await server.failNow(id);
    clock.set(T0 + MINUTE);
    await server.takeOne(queue);
    for (let n = 0; n < 2; n++) await server.enqueue(queue);
    await server.nack(id);
    const undo = await jobOf(id);
    for (let n = 0; n < 4; n++) await server.enqueue(queue);
    await object.alarm();
    expect(await server.state(undo.id as string)).toBe('available');
    expect((await server.counts(queue)).available).toBe(2);
  });

  it.each([
    ['queue', { max_size: 2, overflow_policy: 'drop_oldest' }],
    ['group', { groups: { max_waiting: 2, overflow_policy: 'drop_oldest' } }],
  ])('that waits for its next try does not keep a full %s from dropping others', async (_, settings) => {
    await server.configure(queue, settings);
    const options = { group: 'acme' };
    const id = await started(options);
    await cancel(id);
    const { id: undo } = await server.takeOne(queue);
    await server.nack(undo);
    clock.set(T0 + MINUTE);
    for (let n = 0; n < 4; n++) await server.enqueue(queue, { options });
    await object.alarm();
    expect(await server.counts(queue)).toMatchObject({ available: 2, discarded: 3 });
    expect(await server.state(undo as string)).toBe('available');
  });

  it('waits for its turn in a strict group', async () => {
    await server.configure(queue, { groups: { order: 'strict' } });
    const id = await started({ group: 'acme' });
    const next = await server.enqueue(queue, { options: { group: 'acme' } });
    await cancel(id);
    const undo = await jobOf(id);
    expect(await server.takeIds(queue, { count: 5 })).toEqual([next]);
    await server.ack(next);
    expect(await server.takeIds(queue, { count: 5 })).toEqual([undo.id]);
  });
});

describe('flags and the link to an undo job', () => {
  it('go along when a queue is exported and imported', async () => {
    const [open, ended] = [await started(), await started()];
    await sleepUntil(open, T0 + MINUTE);
    await cancel(ended);
    const undo = await undoIn(ended);
    const file = await exported(queue, 'ended=true');
    await server.reset();
    await imported(queue, file);
    expect(await undoIn(ended)).toEqual(undo);
    await cancel(open);
    expect(await jobOf(open)).toMatchObject({ type: 'order.fulfil.undo', meta: { undo_of: open } });
  });

  it('go along when a queue is deleted and its jobs move to another one', async () => {
    const id = await started();
    await sleepUntil(id, T0 + MINUTE);
    const target = freshName('undo');
    await server.ok(202, 'DELETE', `${V1}/queues/${queue}?strategy=move&target_queue=${target}`);
    await cancel(id);
    expect(await jobOf(id)).toMatchObject({ type: 'order.fulfil.undo', queue: target, meta: { undo_of: id } });
  });
});
