/** Jobs that arrive alone and are claimed at once: they live in the rows of their leases, and nothing but the rows written tells. */
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import { answers } from '../../support/answers';
import { clock, DAY, T0 } from '../../support/clock';
import { failOnce } from '../../support/faults';
import { isLong } from '../../support/long';
import { refusal, steady, TestQueue } from '../../support/queue';

clock.startAtT0();

/** A queue that exists and has nothing to give. */
async function emptyQueue(): Promise<TestQueue> {
  const queue = new TestQueue();
  await queue.api.pause();
  await queue.api.resume();
  return queue;
}

const inLeases = (queue: TestQueue) => queue.rows<{ id: number }>('SELECT id FROM leases WHERE job IS NOT NULL');
const inBlocks = (queue: TestQueue) => queue.rows('SELECT first FROM blocks');

/** What a job is for, and what happens to it. */
const JOB = { type: 'one', body: { args: ['nädle', 1.0], meta: { a: 'b' } }, retry: steady(2, 1000) };
const STEPS: [string, (queue: TestQueue, id: string) => Promise<unknown>][] = [
  ['it runs', async () => undefined],
  ['a moment passes', async () => clock.set(T0 + 500)],
  ['its worker lives', (queue) => queue.api.heartbeat({ worker_id: 'w' })],
  ['it makes progress', (queue, id) => queue.api.reportProgress({ job_id: id, attempt: 1, progress: 0.5 })],
  ['it fails', (queue, id) => queue.nack(id)],
  ['its time comes', async () => clock.set(T0 + 1500)],
  ['it runs again', (queue) => queue.claim({ visibility_timeout_ms: DAY })],
  ['it completes', (queue, id) => queue.ack(id, { result: '{"a":1}' })],
  ['it is pruned', (queue) => queue.passTo(T0 + 60 * DAY)],
];

describe('a job that arrives while a worker waits', () => {
  it('lives in the row of its lease, which the next one takes', async () => {
    const queue = await emptyQueue();
    for (let n = 0; n < 3; n++) {
      const id = await queue.addTaken();
      expect(await inLeases(queue)).toEqual([{ id: 1 }]);
      expect(await inBlocks(queue)).toEqual([]);
      await queue.ack(id);
    }
    // One that waits for nobody lives as before, and so does what arrives with others.
    await queue.add();
    await queue.claim();
    expect(await inLeases(queue)).toEqual([]);
    expect(await inBlocks(queue)).toHaveLength(1);
    expect(await queue.counts()).toEqual({ active: 1, completed: 3 });
  });

  it('is found when it has left that row, also beside a block that cannot be read', async () => {
    const queue = await emptyQueue();
    await queue.add();
    await queue.claim();
    const id = await queue.addTaken(JOB);
    await queue.add();
    expect(await inBlocks(queue)).toHaveLength(1);
    await queue.inside(({ sql }) => void sql.exec("UPDATE blocks SET heads = '['"));
    await queue.evict();
    await queue.nack(id);
    await queue.passTo(T0 + 1_500);
    expect(await queue.claim({ count: 9 })).toMatchObject([{ id, attempt: 2 }]);
    expect(await queue.ack(id)).toMatchObject({ state: 'completed' });
  });

  it.each([
    ...(isLong ? [['as long as the object lives', false] as const] : []),
    ['whenever the object has lost its memory', true] as const,
  ])('is shown as one that waited in a block, %s', async (_, evicted) => {
    const [alone, waited] = [await emptyQueue(), await emptyQueue()];
    const request = { worker_id: 'w', visibility_timeout_ms: DAY };
    const ids = [await alone.addTaken(JOB, request), await waited.add(JOB)] as const;
    await waited.claim(request);
    expect(await inLeases(alone)).toHaveLength(1);
    expect(await inLeases(waited)).toEqual([]);
    for (const [name, step] of STEPS) {
      const told: unknown[] = [];
      for (const [queue, id] of [
        [alone, ids[0]],
        [waited, ids[1]],
      ] as const) {
        const now = Date.now();
        await step(queue, id);
        if (evicted) await queue.evict();
        told.push(JSON.parse(await answers(queue, [id])));
        if (queue === alone) clock.set(now);
      }
      expect(told[0], name).toEqual(told[1]);
    }
    expect(await alone.armedAt()).toBeNull();
  });

  it('is given to the next worker when its own has gone silent, after any loss of memory', async () => {
    const queue = await emptyQueue();
    const id = await queue.addTaken(JOB, { visibility_timeout_ms: 5000 });
    await queue.evict();
    await queue.passTo(T0 + 7000);
    expect(await queue.claim()).toMatchObject([{ id, attempt: 2 }]);
    expect(JSON.parse((await queue.get(id)).body)).toMatchObject({ args: ['nädle', 1] });
  });

  it.runIf(isLong)('lives in a block where it is large, or where very many live in their leases', async () => {
    const queue = await emptyQueue();
    await queue.addTaken({ body: { args: ['x'.repeat(4096)] } });
    expect(await inLeases(queue)).toEqual([]);
    expect(await inBlocks(queue)).toHaveLength(1);
    await queue.inside(async ({ instance }) => {
      for (let n = 0; n < 1010; n++) {
        const taken = instance.claim({ count: 1, wait_ms: 20_000 });
        await scheduler.wait(0);
        await instance.enqueue([{ type: 't', priority: 0, body: '{"type":"t","args":[],"meta":{}}' }]);
        unwrap(await taken);
      }
    });
    expect(await inLeases(queue)).toHaveLength(1000);
    expect(await queue.counts()).toEqual({ active: 1011 });
    await queue.evict();
    expect(await queue.counts()).toEqual({ active: 1011 });
    expect(await queue.listAll()).toHaveLength(1011);
  });

  it.each([
    ['cannot be read any more', "'{'"],
    ['names nobody any more', "json_set(data, '$.e', json('[]'))"],
  ])('waits again when its lease %s', async (_, data) => {
    const queue = await emptyQueue();
    const id = await queue.addTaken(JOB, { visibility_timeout_ms: DAY });
    const next = await queue.add();
    await queue.inside(({ sql }) => void sql.exec(`UPDATE leases SET data = ${data}`));
    await queue.evict();
    expect(await queue.counts()).toEqual({ available: 2 });
    expect(await queue.claimAll()).toEqual([id, next]);
    await queue.evict();
    expect(await queue.counts()).toEqual({ active: 2 });
  });

  it('has used up its claim when its lease cannot be read: no later run has its delivery id', async () => {
    const queue = await emptyQueue();
    const taken = queue.api.claim({ count: 1, wait_ms: 20_000, visibility_timeout_ms: DAY });
    await queue.waiting('work', 1);
    const id = await queue.add();
    const [first] = unwrap(await taken);
    await queue.inside(({ sql }) => void sql.exec("UPDATE leases SET data = '{'"));
    await queue.evict();
    const [again] = await queue.claim();
    expect(again).toMatchObject({ id, attempt: 2 });
    const late = { job_id: id, delivery_id: first?.record.delivery_id as string };
    expect(late.delivery_id).not.toBe(again?.delivery_id);
    expect(refusal(await queue.api.settle({ kind: 'completed', ...late }))).toMatchObject({ status: 409 });
  });

  it('becomes a dead letter where it cannot be read any more itself, and costs no other', async () => {
    const queue = await emptyQueue();
    await queue.addTaken(JOB, { visibility_timeout_ms: 5000 });
    const other = await queue.addTaken();
    await queue.inside(({ sql }) => void sql.exec("UPDATE leases SET job = 'x' WHERE id = 1"));
    await queue.evict();
    expect(await queue.counts()).toEqual({ active: 2 });
    await queue.ack(other);
    await queue.passTo(T0 + 20_000);
    await queue.claimAll();
    await queue.evict();
    expect(await queue.counts()).toEqual({ completed: 1, discarded: 1 });
    expect(await queue.state(other)).toBe('completed');
  });
});

describe('storage that fails', () => {
  it('gives no worker a job that could not be written, among others either', async () => {
    const queue = await emptyQueue();
    const due = await queue.add({ scheduledAt: T0 + DAY });
    const taken = queue.api.claim({ count: 2, wait_ms: 20_000 }).catch(() => undefined);
    await queue.waiting('work', 1);
    clock.set(T0 + DAY);
    await queue.inside(({ sql }) => failOnce(sql, /(INTO|UPDATE) blocks/));
    const added = await queue.add().catch(() => undefined);
    const given = (await taken)?.ok === true ? unwrap((await taken) as never) : [];
    for (const { record } of given as { record: { id: string } }[]) {
      expect([record.id, await queue.state(record.id)]).toEqual([record.id, 'active']);
    }
    const left = await queue.claimAll();
    expect([...(given as { record: { id: string } }[]).map(({ record }) => record.id), ...left].sort()).toEqual(
      [due, added].filter((id) => id !== undefined).sort(),
    );
  });

  it('leaves a job that its lease was to take where any worker finds it', async () => {
    const queue = await emptyQueue();
    const taken = queue.api.claim({ count: 1, wait_ms: 20_000 });
    taken.catch(() => undefined);
    await queue.waiting('work', 1);
    await queue.inside(({ sql }) => failOnce(sql, /INTO leases/));
    const id = await queue.add();
    await expect(taken).rejects.toThrow();
    await queue.evict();
    expect(await queue.claim()).toMatchObject([{ id, attempt: 1 }]);
    expect(await inLeases(queue)).toEqual([]);
  });

  it.each([
    ['a plain one', {}],
    ['one whose id was chosen', { id: '01962222-bbbb-7ccc-8ddd-000000000001' }],
  ])('refuses a job that no lease has taken, and leaves nothing of it: %s', async (_, job) => {
    const queue = await emptyQueue();
    const taken = queue.api.claim({ count: 1, wait_ms: 20_000, types: ['another'] });
    await queue.waiting('work', 1);
    await queue.inside(({ sql }) => failOnce(sql, /INTO blocks/));
    await expect(queue.add(job)).rejects.toThrow();
    expect(await queue.counts()).toEqual({});
    const id = await queue.add(job);
    expect(await queue.listAll()).toMatchObject([{ id }]);
    expect(refusal(await queue.api.settle({ kind: 'completed', job_id: id }))).toMatchObject({ status: 409 });
    const other = await queue.add({ type: 'another' });
    expect(unwrap(await taken)).toMatchObject([{ record: { id: other } }]);
    expect(await queue.counts()).toEqual({ active: 1, available: 1 });
  });
});
