/** A job that starts again from one of its steps, and steps that an operator answers. */
import { beforeEach, describe, expect, it } from 'vitest';
import { clock, MINUTE, T0 } from '../../support/clock';
import { onRecord, stamped } from '../../support/on-record';
import { freshName, steady, TestQueue } from '../../support/queue';
import { type Json, server, UNKNOWN_ID, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('restart');
  object = new TestQueue(queue);
});

const put = (id: unknown, name: string, body: Json) => server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/${name}`, body);
const steps = async (id: unknown) => (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps;
const again = (id: unknown, body: Json) => server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, body);
const answer = (id: unknown, name: string, result: unknown) =>
  server.ok(200, 'PUT', `${V1}/admin/jobs/${id}/steps/${name}`, { result });
const refused = (id: unknown, name: string, body: Json) =>
  server.refusal('PUT', `${V1}/admin/jobs/${id}/steps/${name}`, body);
const tried = { until: T0 + 10 * MINUTE, tries: 2, failed: { message: 'in vain' } };

async function pause(id: unknown, name: string, record: Json): Promise<void> {
  const snooze = { until: T0 + 10 * MINUTE, steps: { [name]: record } };
  const body = { job_id: id, requeue: true, attempt_used: false, snooze };
  await server.ok(200, 'POST', `${V1}/workers/nack`, body);
}

/** A job with four steps on record, whose last attempt has failed. */
async function ended(): Promise<string> {
  const id = await server.enqueue(queue, { options: { retry: steady(1) } });
  await server.takeOne(queue);
  for (const name of ['second', '1', 'a', 'b']) await put(id, name, { result: name });
  await server.ok(200, 'POST', `${V1}/jobs/${id}/checkpoint`, { state: { page: 4 } });
  await server.nack(id);
  return id;
}

describe('a job that starts again from a step', () => {
  it('forgets it and all that began after it, in the order in which they began', async () => {
    const id = await ended();
    await object.evict();
    await object.startCounting();
    expect((await again(id, { from: '1' })).job).toMatchObject({ state: 'available', attempt: 0 });
    expect((await object.counted()).written, 'a redrive and the records').toBe(4);
    // JSON names that look like numbers come first: their place on record says when they began.
    expect(await steps(id)).toEqual(onRecord({ second: { result: 'second' } }));
    expect(await server.takeOne(queue)).toMatchObject({
      ...{ id, attempt: 1, checkpoint: { state: { page: 4 } } },
      steps: { second: { result: 'second' } },
    });
    await put(id, 'late', { result: 5 });
    expect(await steps(id)).toEqual(onRecord({ second: { result: 'second' }, late: { result: 5 } }));
  });

  it('may be changed in the same request', async () => {
    const id = await ended();
    await again(id, { from: 'second', args: [7], priority: 3 });
    expect(await server.takeOne(queue)).toMatchObject({ args: [7], priority: 3, steps: {} });
  });

  it('is refused without such a record, while it runs and while it sleeps, and nothing changes', async () => {
    const id = await ended();
    const path = `${V1}/admin/jobs/${id}/retry`;
    const before = await steps(id);
    const missing = { status: 404, code: 'not_found' };
    expect(await server.refusal('POST', path, { from: 'c' })).toMatchObject(missing);
    for (const from of ['', 5, null, '..', 'é'.repeat(129)]) {
      expect(await server.refusal('POST', path, { from })).toMatchObject({ status: 400, field: 'from' });
    }
    expect([await steps(id), (await server.job(id)).state]).toEqual([before, 'discarded']);
    await again(id, {});
    await server.takeOne(queue);
    expect(await server.refusal('POST', path, { from: 'a' })).toMatchObject({ status: 409, code: 'conflict' });
    await pause(id, 'nap', { until: T0 + 10 * MINUTE });
    expect(await server.refusal('POST', path, { from: 'a' })).toMatchObject({ status: 409, code: 'conflict' });
    expect(await server.refusal('POST', `${V1}/admin/jobs/${UNKNOWN_ID}/retry`, { from: 'a' })).toMatchObject({
      status: 404,
    });
  });
});

describe('a copy of a job that starts from a step', () => {
  const fork = (id: unknown, body: Json) => server.ok(201, 'POST', `${V1}/admin/jobs/${id}/clone`, body);

  it('begins with the records before it, in any state, also in another queue, and leaves the job as it is', async () => {
    const id = await ended();
    const before = await steps(id);
    const elsewhere = freshName('restart');
    for (const [body, target] of [
      [{ from: 'a' }, queue],
      [{ from: 'a', queue: elsewhere }, elsewhere],
    ] as const) {
      const copy = (await fork(id, body)).job?.id;
      expect(await steps(copy)).toMatchObject({ second: { result: 'second', seq: 1 }, '1': { result: '1', seq: 2 } });
      await new TestQueue(target).evict();
      const taken = await server.takeOne(target);
      expect(taken).toMatchObject({ id: copy, meta: { cloned_from: id } });
      expect(Object.keys(taken.steps as Json)).toEqual(['1', 'second']);
      expect(taken).not.toHaveProperty('checkpoint');
      await put(copy, 'new', { result: 0 });
      expect(await steps(copy)).toMatchObject({ new: { seq: 3 } });
    }
    expect([await steps(id), (await server.job(id)).state]).toEqual([before, 'discarded']);
  });

  it('costs one row more than another, and tries failed steps again', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await put(id, 'failed', { error: { message: 'in vain' } });
    await put(id, 'done', { result: 1 });
    await put(id, 'last', { result: 2 });
    await fork(id, {});
    await object.startCounting();
    await fork(id, {});
    const plain = (await object.counted()).written;
    const copy = (await fork(id, { from: 'last' })).job?.id;
    expect([plain, (await object.counted()).written]).toEqual([1, 2]);
    expect(await steps(copy)).toEqual({ done: stamped({ result: 1 }, 2) });
  });

  it('is refused without such a record, and is enqueued once under its idempotency key', async () => {
    const id = await ended();
    const path = `${V1}/admin/jobs/${id}/clone`;
    expect(await server.refusal('POST', path, { from: 'c' })).toMatchObject({ status: 404, code: 'not_found' });
    expect(await server.refusal('POST', path, { from: 5 })).toMatchObject({ status: 400, field: 'from' });
    const once = { from: 'b', idempotency_key: 'fork-1' };
    const first = await fork(id, once);
    expect((await fork(id, once)).job?.id).toBe(first.job?.id);
    expect(await server.refusal('POST', path, { ...once, from: 'a' })).toMatchObject({ status: 409 });
  });
});

describe('a step that an operator answers', () => {
  it('wakes the job that waits for its next try, which finds the result', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await put(id, 'first', { result: 1 });
    await pause(id, 'charge', tried);
    expect(await server.take(queue)).toEqual([]);
    await object.evict();
    expect((await answer(id, 'charge', { paid: true })).job).toMatchObject({ state: 'available' });
    expect(await steps(id)).toEqual(onRecord({ first: { result: 1 }, charge: { result: { paid: true } } }));
    expect(await server.takeOne(queue)).toMatchObject({ id, steps: { charge: { result: { paid: true } } } });
  });

  it('may have failed for good: the retry of the job continues with the answer', async () => {
    const id = await server.enqueue(queue, { options: { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } } });
    await server.takeOne(queue);
    await put(id, 'charge', { error: { message: 'in vain' } });
    await server.nack(id);
    expect((await answer(id, 'charge', null)).job).toMatchObject({ state: 'discarded' });
    expect((await answer(id, 'not yet reached', 2)).job).toMatchObject({ state: 'discarded' });
    await again(id, {});
    expect((await server.takeOne(queue)).steps).toEqual(
      onRecord({ charge: { result: null }, 'not yet reached': { result: 2 } }),
    );
  });

  it('is refused with a result, for sleeps and signals, while the job runs and after it has completed', async () => {
    const id = await server.enqueue(queue);
    await server.takeOne(queue);
    await put(id, 'done', { result: 1 });
    const conflict = { status: 409, code: 'conflict' };
    expect(await refused(id, 'other', { result: 2 })).toMatchObject(conflict);
    await pause(id, 'nap', { until: T0 + 10 * MINUTE });
    expect(await refused(id, 'done', { result: 2 })).toMatchObject(conflict);
    expect(await refused(id, 'nap', { result: 2 })).toMatchObject(conflict);
    expect(await refused(id, 'other', {})).toMatchObject({ status: 400, field: 'result' });
    expect(await refused(id, 'other', { result: 1, results: 2 })).toMatchObject({ status: 400, field: 'results' });
    expect(await refused(UNKNOWN_ID, 'a', { result: 1 })).toMatchObject({ status: 404 });
    expect(await refused(id, 'large', { result: 'x'.repeat(1_048_576) })).toMatchObject({
      ...{ status: 413, code: 'payload_too_large' },
    });
    expect(Object.keys((await steps(id)) as Json)).toEqual(['done', 'nap']);
    await object.passTo(T0 + 10 * MINUTE);
    await server.ack((await server.takeOne(queue)).id);
    expect(await refused(id, 'other', { result: 2 })).toMatchObject(conflict);
  });
});
