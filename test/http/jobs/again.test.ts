/** A job once more: edited and retried, cloned, run now. */
import { describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();

const ADMIN = `${V1}/admin/jobs`;
const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };

async function failed(change: Json = {}, retry: Json = DEAD): Promise<{ id: string; queue: string }> {
  const queue = freshName('again');
  const { options, ...rest } = change;
  const id = await server.enqueue(queue, { ...rest, options: { retry, ...(options as Json) } });
  await server.take(queue, { count: 1 });
  await server.nack(id, { error: { message: 'no' } });
  return { id, queue };
}

describe('an edited retry', () => {
  it.each([
    ['a dead letter', DEAD],
    ['a job that waits for its retry', { max_attempts: 5, initial_interval: 'PT1H' }],
  ])('of %s runs it with other arguments, under its id and with its history', async (_, retry) => {
    const { id, queue } = await failed({ args: ['wrnog'], options: { meta: { tenant: 1, keep: true } } }, retry);
    const change = { args: ['right', 2], meta: { tenant: 2 }, priority: 7, max_attempts: 9, tags: ['mended'] };
    const { job } = await server.ok(200, 'POST', `${ADMIN}/${id}/retry`, change);
    expect(job).toMatchObject({
      ...change,
      id,
      state: 'available',
      attempt: 0,
      errors: [{ attempt: 1, message: 'no' }],
    });
    const [taken] = await server.take(queue, { count: 1 });
    expect(taken).toMatchObject({ id, args: ['right', 2], meta: { tenant: 2 }, attempt: 1 });
  });

  it('that is to wait waits', async () => {
    const { id } = await failed();
    const { job } = await server.ok(200, 'POST', `${ADMIN}/${id}/retry`, { scheduled_at: '+PT1H' });
    expect(job).toMatchObject({ id, state: 'scheduled' });
  });

  it('without anything edited is a retry', async () => {
    const { id } = await failed({ args: [1] });
    expect((await server.ok(200, 'POST', `${ADMIN}/${id}/retry`, {})).job).toMatchObject({
      args: [1],
      state: 'available',
    });
  });

  it.each<[Json, number, string]>([
    [{ args: { a: 1 } }, 400, 'args'],
    [{ meta: [] }, 400, 'meta'],
    [{ meta: { x: 'x'.repeat(70_000) } }, 413, 'meta'],
    [{ args: ['x'.repeat(700_000)], meta: { x: '"'.repeat(30_000) }, tags: 'x' }, 400, 'tags'],
    [{ type: 'other' }, 400, 'type'],
    [{ args: [], priority: 1000 }, 400, 'priority'],
    [{ retry: { max_attempts: -1 } }, 422, 'retry.max_attempts'],
  ])('of %j is refused like an enqueue, and changes nothing', async (change, status, field) => {
    const { id } = await failed({ args: [1] });
    const before = await server.job(id);
    expect(await server.refusal('POST', `${ADMIN}/${id}/retry`, change)).toMatchObject({ status, field });
    expect(await server.job(id)).toEqual(before);
  });

  it('must fit in the job together with what it has', async () => {
    const { id } = await failed({ args: [], options: { metadata: { x: 'x'.repeat(600_000) } } });
    const refusal = await server.refusal('POST', `${ADMIN}/${id}/retry`, { args: ['x'.repeat(600_000)] });
    expect(refusal).toMatchObject({ status: 413 });
    expect(await server.state(id)).toBe('discarded');
  });

  it.each(['available', 'completed'])('is refused for one that is %s', async (state) => {
    const queue = freshName('again');
    const id = await server.enqueue(queue, { args: [1] });
    if (state === 'completed') {
      await server.take(queue, { count: 1 });
      await server.ack(id);
    }
    expect(await server.refusal('POST', `${ADMIN}/${id}/retry`, { args: [2] })).toMatchObject({ status: 409 });
    expect(await server.job(id)).toMatchObject({ args: [1], state });
  });

  it('stands in the way of jobs like what it is now, no more of those like what it was', async () => {
    const unique = { keys: ['type', 'args', 'queue'] };
    const { id, queue } = await failed({ args: ['old'], options: { unique } });
    await server.ok(200, 'POST', `${ADMIN}/${id}/retry`, { args: ['new'] });
    const enqueue = async (args: unknown[]) =>
      (await server.call('POST', `${V1}/jobs`, { type: 'test.echo', args, options: { queue, unique } })).status;
    expect(await enqueue(['new'])).toBe(409);
    expect(await enqueue(['old'])).toBe(201);
  });

  it('does not change what is unique over all queues', async () => {
    const { id } = await failed({ args: ['old'], options: { unique: { keys: ['type', 'args'] } } });
    expect(await server.refusal('POST', `${ADMIN}/${id}/retry`, { args: ['new'] })).toMatchObject({
      status: 422,
      field: 'args',
    });
    await server.ok(200, 'POST', `${ADMIN}/${id}/retry`, { args: ['old'], meta: { a: 1 } });
  });
});

describe('a clone', () => {
  it('is a new job like the other one, which stays as it is', async () => {
    const options = {
      priority: 3,
      tags: ['a'],
      timeout_ms: 9000,
      meta: { tenant: 1 },
      delay_until: '2039-01-01T00:00:00Z',
    };
    const queue = freshName('again');
    const id = await server.enqueue(queue, { args: [{ n: 1 }], options, x_own: 'mine' });
    const before = await server.job(id);
    const { job } = await server.ok(201, 'POST', `${ADMIN}/${id}/clone`);
    expect(job?.id).not.toBe(id);
    expect(job).toMatchObject({
      ...{ queue, type: 'test.echo', state: 'available', args: [{ n: 1 }], priority: 3, tags: ['a'] },
      ...{ timeout_ms: 9000, x_own: 'mine', meta: { tenant: 1, cloned_from: id }, attempt: 0 },
    });
    expect(await server.job(id)).toEqual(before);
  });

  it('may differ, and is sent twice under one key', async () => {
    const { id } = await failed({ args: [1], options: { tags: ['a'] } });
    const other = freshName('again');
    const body = { args: [2], queue: other, meta: { by: 'hand' }, options: { tags: null, priority: 5 } };
    const headers = { 'Idempotency-Key': 'once' };
    const { job } = await server.ok(201, 'POST', `${ADMIN}/${id}/clone`, body, headers);
    expect(job).toMatchObject({ args: [2], queue: other, priority: 5, meta: { by: 'hand', cloned_from: id } });
    expect(job).not.toHaveProperty('tags');
    const again = await server.ok(201, 'POST', `${ADMIN}/${id}/clone`, body, headers);
    expect(again.job?.id).toBe(job?.id);
    expect(await server.jobs(other)).toHaveLength(1);
  });

  it('of a unique job is refused while that one is open, unless the clone is not unique', async () => {
    const queue = freshName('again');
    const id = await server.enqueue(queue, { args: [1], options: { unique: { keys: ['type', 'queue'] } } });
    expect(await server.refusal('POST', `${ADMIN}/${id}/clone`, {})).toMatchObject({ status: 409 });
    await server.ok(201, 'POST', `${ADMIN}/${id}/clone`, { options: { unique: null } });
  });

  it.each<[Json, number, string]>([
    [{ args: 7 }, 400, 'args'],
    [{ type: 'x' }, 400, 'type'],
    [{ options: { state: 'completed' } }, 400, 'options.state'],
    [{ options: { priority: 'x' } }, 400, 'options.priority'],
    [{ queue: 'No Queue' }, 400, 'queue'],
    [{ meta: { x: 'x'.repeat(70_000) } }, 413, 'options.meta'],
  ])('with %j is refused', async (body, status, field) => {
    const { id, queue } = await failed();
    expect(await server.refusal('POST', `${ADMIN}/${id}/clone`, body)).toMatchObject({ status, field });
    expect(await server.jobs(queue)).toHaveLength(1);
  });

  it('needs a job', async () => {
    const id = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';
    for (const [verb, body] of [
      ['clone', { args: [] }],
      ['retry', { args: [] }],
      ['activate', {}],
    ]) {
      expect(await server.refusal('POST', `${ADMIN}/${id}/${verb}`, body)).toMatchObject({ status: 404 });
    }
  });
});

describe('running now', () => {
  it('takes a job out of its wait, whatever it waits for', async () => {
    const queue = freshName('again');
    const later = '2039-01-01T00:00:00Z';
    const ids = [
      await server.enqueue(queue, { options: { delay_until: later } }),
      await server.enqueue(queue, { options: { pending: true } }),
      await server.enqueue(queue, { options: { pending: true, delay_until: later } }),
      (await failed({}, { max_attempts: 5, initial_interval: 'PT1H' })).id,
    ];
    for (const id of ids) {
      expect((await server.ok(200, 'POST', `${ADMIN}/${id}/activate`)).job).toMatchObject({ id, state: 'available' });
    }
    expect(await server.take(queue, { count: 5 })).toHaveLength(3);
    expect(await server.refusal('POST', `${ADMIN}/${ids[0]}/activate`)).toMatchObject({ status: 409 });
  });
});
