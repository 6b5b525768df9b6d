/** Results of steps that are too large to stand in their records: they go wherever the records go, and no further. */
import { beforeEach, describe, expect, it } from 'vitest';
import { exported, imported, sendFile } from '../../support/exports';
import { onRecord, stamped } from '../../support/on-record';
import { freshName, steady, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

const KIB = 1024;
const MIB = KIB * KIB;

server.emptyBeforeEach();
let queue: string;
let object: TestQueue;
beforeEach(() => {
  queue = freshName('large');
  object = new TestQueue(queue);
});

/** A result of so many bytes as JSON. */
const sized = (bytes: number) => 'x'.repeat(bytes - 2);
const put = (id: unknown, name: string, body: Json) => server.ok(200, 'PUT', `${V1}/jobs/${id}/steps/${name}`, body);
const refused = (id: unknown, name: string, body: Json) =>
  server.refusal('PUT', `${V1}/jobs/${id}/steps/${name}`, body);
const steps = async (id: unknown) => (await server.ok(200, 'GET', `${V1}/jobs/${id}/steps`)).steps;
const step = (id: unknown, name: string) => server.ok(200, 'GET', `${V1}/jobs/${id}/steps/${name}`);
const values = async (of = object) =>
  (await of.rows<{ name: string }>('SELECT name FROM step_values')).map(({ name }) => name);

async function taken(options: Json = {}): Promise<string> {
  const id = await server.enqueue(queue, { options });
  await server.takeOne(queue);
  return id;
}

describe('a large result', () => {
  it('takes one row more, from 64 KiB on, and is shown by itself', async () => {
    const id = await taken();
    await object.startCounting();
    await put(id, 'fits', { result: sized(64 * KIB) });
    expect((await object.counted()).written).toBe(1);
    await object.startCounting();
    await put(id, 'large', { result: sized(64 * KIB + 1) });
    expect((await object.counted()).written).toBe(2);
    await object.startCounting();
    // The first one wins, and is answered whole.
    expect(await put(id, 'large', { result: 2 })).toMatchObject({ recorded: true, result: sized(64 * KIB + 1) });
    expect((await object.counted()).written).toBe(0);
    await object.evict();
    expect(await steps(id)).toEqual(
      onRecord({ fits: { result: sized(64 * KIB) }, large: { result_bytes: 64 * KIB + 1 } }),
    );
    const shown = { job_id: id, name: 'large', ...stamped({ result: sized(64 * KIB + 1) }, 2) };
    expect(await step(id, 'large')).toEqual(shown);
    expect(await step(id, 'fits')).toMatchObject({ result: sized(64 * KIB) });
    expect(await server.refusal('GET', `${V1}/jobs/${id}/steps/none`)).toMatchObject({ status: 404 });
  });

  it('has at most 1 MiB, those of a job 8 MiB; a refused one changes nothing', async () => {
    const id = await taken();
    const tooLarge = { status: 413, code: 'payload_too_large' };
    expect(await refused(id, 'a', { result: sized(MIB + 1) })).toMatchObject({ ...tooLarge, field: 'step.result' });
    for (let n = 0; n < 8; n++) await put(id, `s${n}`, { result: sized(MIB) });
    expect(await refused(id, 'more', { result: sized(64 * KIB + 1) })).toMatchObject({ ...tooLarge, field: 'steps' });
    await put(id, 'small', { result: 1 });
    expect(await values()).toHaveLength(8);
    expect(Object.keys((await steps(id)) as Json)).toHaveLength(9);
  });

  it('reported with the end of a run keeps to 1 MiB of all of them', async () => {
    const id = await taken();
    const snoozed = (records: Json) => ({
      job_id: id,
      requeue: true,
      attempt_used: false,
      snooze: { in: 0, steps: records },
    });
    const half = { result: sized(MIB / 2) };
    const more = snoozed({ a: half, b: half, c: { result: sized(64 * KIB + 1) } });
    expect(await server.refusal('POST', `${V1}/workers/nack`, more)).toMatchObject({ status: 413, field: 'steps' });
    expect(await values()).toEqual([]);
    await server.ok(200, 'POST', `${V1}/workers/nack`, snoozed({ a: half, b: half }));
    expect(await server.takeOne(queue)).toMatchObject({ steps: { a: half, b: half } });
  });

  it('comes with the job up to 1 MiB; the others name where they are', async () => {
    const id = await taken();
    await put(id, 'first', { result: sized(MIB - 100 * KIB) });
    await put(id, 'second', { result: sized(200 * KIB) });
    await put(id, 'third', { result: sized(100 * KIB) });
    await server.failNow(id);
    const job = await server.takeOne(queue);
    const error = { code: 'payload_too_large', message: expect.stringContaining('/ojs/v1/jobs/:id/steps/:name') };
    expect(job.steps).toMatchObject({
      first: { result: sized(MIB - 100 * KIB) },
      second: { error, result_bytes: 200 * KIB },
      third: { result: sized(100 * KIB) },
    });
  });

  it.each(['completed', 'purged', 'discarded'] as const)('goes with its job: %s', async (end) => {
    const kept = end === 'purged' ? '1h' : 0;
    const id = await taken({ retention: { completed: 0, discarded: kept }, retry: steady(1) });
    await put(id, 'large', { result: sized(MIB) });
    expect(await values()).toEqual(['large']);
    if (end === 'completed') await server.ack(id);
    else await server.nack(id);
    if (end === 'purged')
      await server.ok(200, 'POST', `${V1}/queues/${queue}/purge`, { confirm: true, states: ['discarded'] });
    await object.alarm();
    expect(await values()).toEqual([]);
  });

  it('stays with a completed job, and goes when that is removed', async () => {
    const id = await taken({ retention: { completed: '1h' } });
    await put(id, 'large', { result: sized(MIB) });
    await server.ack(id);
    await object.evict();
    expect(await step(id, 'large')).toMatchObject({ result: sized(MIB) });
    await server.ok(200, 'POST', `${V1}/queues/${queue}/purge`, { confirm: true, states: ['completed'] });
    await object.alarm();
    expect(await values()).toEqual([]);
  });

  it('goes to another queue when its own is deleted, and in a file', async () => {
    const id = await taken({ retention: { completed: 0 } });
    const large = { result: sized(MIB) };
    await put(id, 'large', large);
    await server.failNow(id);
    const text = await exported(queue);
    const moved = freshName('moved');
    await server.call('DELETE', `${V1}/queues/${queue}`, { strategy: 'move', target_queue: moved });
    for (let n = 0; n < 4; n++) await object.alarm();
    expect(await server.takeOne(moved)).toMatchObject({ id, steps: { large } });
    await server.ack(id);
    const copy = freshName('copy');
    expect((await sendFile(copy, text.replace('"data":"[', '"data":"'))).status).toBe(400);
    expect(await imported(copy, text)).toMatchObject({ imported: 1, complete: true });
    expect(await server.takeOne(copy)).toMatchObject({ id, steps: { large } });
  });

  it('is forgotten by a restart from its step, and copied by a fork from a later one', async () => {
    const id = await taken({ retry: steady(1) });
    await put(id, 'one', { result: sized(MIB) });
    await put(id, 'two', { result: sized(100 * KIB) });
    await put(id, 'three', { result: 3 });
    await server.nack(id);
    const other = freshName('fork');
    const clone = await server.ok(201, 'POST', `${V1}/admin/jobs/${id}/clone`, { from: 'two', queue: other });
    expect(await values(new TestQueue(other))).toEqual(['one']);
    expect(await step((clone.job as Json).id, 'one')).toMatchObject({ result: sized(MIB) });
    await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, { from: 'two' });
    expect(await values()).toEqual(['one']);
    await server.takeOne(queue);
    await put(id, 'two', { result: 2 });
    expect(await step(id, 'two')).toMatchObject({ result: 2 });
  });

  it.each(['', '[', '[]'])(
    'that cannot be read any more fails its step, and keeps no job from its end: "%s"',
    async (data) => {
      const id = await taken({ retry: steady(2) });
      await put(id, 'large', { result: sized(MIB), undo: true });
      await object.rows('UPDATE step_values SET data = ?', data);
      const error = { code: 'backend_error', message: expect.stringContaining('large') };
      expect(await put(id, 'large', { result: 2 })).toMatchObject({ recorded: true, error });
      await server.failNow(id);
      const job = await server.takeOne(queue);
      expect(job.steps).toMatchObject({ large: { error: { code: 'payload_too_large' } } });
      await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
      const { undo } = await server.job(id);
      const [{ steps: toUndo }] = (await server.job((undo as Json).job_id)).args as unknown as [{ steps: Json[] }];
      expect(toUndo).toEqual([{ name: 'large', certain: true, omitted: MIB }]);
    },
  );

  it('goes to another queue with its dead letter', async () => {
    const id = await taken({ retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } });
    await put(id, 'large', { result: sized(MIB) });
    await server.nack(id);
    const target = freshName('other');
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: target } });
    expect(await server.takeOne(target)).toMatchObject({ id, steps: { large: { result: sized(MIB) } } });
    expect(await values()).toEqual([]);
    expect(await values(new TestQueue(target))).toEqual(['large']);
  });

  it('stays behind when the steps of its dead letter were undone', async () => {
    const id = await taken({ retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } });
    await put(id, 'large', { result: sized(MIB), undo: true });
    await server.nack(id);
    await server.ack((await server.takeOne(queue)).id);
    const target = freshName('other');
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: target } });
    expect(await server.takeOne(target)).toMatchObject({ id });
    expect(await values(new TestQueue(target))).toEqual([]);
  });
});
