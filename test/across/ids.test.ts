/** Jobs are found by their ids, whoever chose them and wherever they went, at a cost that does not grow with the queues. */
import { runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { FIRST_CHOSEN, mintId, routeCandidate } from '../../src/job/ids';
import { idShardOf } from '../../src/rpc/ids';
import { counting } from '../support/calls';
import { clock, DAY, HOUR, until } from '../support/clock';
import { directory } from '../support/directory';
import { freshName, TestQueue } from '../support/queue';
import { server, UNKNOWN_ID, V1 } from '../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };

/** Queues that exist. */
async function queues(count: number): Promise<string[]> {
  const names = Array.from({ length: count }, () => freshName('many'));
  await Promise.all(names.map((name) => server.ok(201, 'POST', `${V1}/queues`, { name })));
  return names;
}

const enqueueAs = (id: string, queue: string) => server.enqueue(queue, { id });
const statusOf = async (id: string) => (await server.call('GET', `${V1}/jobs/${id}`)).status;
const shardOf = (id: string) => env.DIRECTORY.getByName(idShardOf(id)) as DurableObjectStub;

/** Ends a job and removes it. */
async function removed(id: string): Promise<void> {
  for (const what of ['cancel', 'delete']) {
    const answer = await server.ok(200, 'POST', `${V1}/jobs/bulk/${what}`, { job_ids: [id] });
    expect(answer.failed).toBe(0);
  }
}

/** The queues that are noted for an id. */
const noted = (id: string): Promise<string[]> =>
  runInDurableObject(shardOf(id), (_, { storage }) =>
    storage.sql
      .exec("SELECT 1 FROM sqlite_master WHERE name = 'ids'")
      .toArray()
      .flatMap(() => storage.sql.exec<{ queue: string }>('SELECT queue FROM ids WHERE id = ?', id).toArray())
      .map(({ queue }) => queue),
  );

describe('an id that a client chose', () => {
  it('leads to its job with three calls, however many queues there are', async () => {
    const [queue] = await queues(12);
    const id = await enqueueAs(uuidv7(), queue as string);
    const calls = counting();
    expect((await calls.server.job(id)).queue).toBe(queue);
    expect(calls.take()).toEqual(['directory.resolve', `${idShardOf(id)}.placesOf`, `${queue}.get`]);
  });

  it('of no job costs as little', async () => {
    await queues(12);
    await statusOf(UNKNOWN_ID);
    const calls = counting();
    await calls.server.call('GET', `${V1}/jobs/${UNKNOWN_ID}`);
    expect(calls.take()).toEqual(['directory.resolve', `${idShardOf(UNKNOWN_ID)}.placesOf`]);
  });

  it('is asked for in batches, with each shard asked once', async () => {
    const names = await queues(12);
    const ids = await Promise.all(Array.from({ length: 20 }, (_, at) => enqueueAs(uuidv7(), names[at % 3] as string)));
    const shards = new Set(ids.map(idShardOf));
    const calls = counting();
    const answer = await calls.server.ok(200, 'POST', `${V1}/jobs/bulk/cancel`, { job_ids: ids });
    expect(answer).toMatchObject({ cancelled: 20 });
    // The directory about all routes, each shard, each of the three queues, and the audit log.
    expect(calls.take()).toHaveLength(1 + shards.size + 3 + 1);
  });

  it('of twenty jobs that do not exist asks no queue', async () => {
    const names = await queues(12);
    await statusOf(UNKNOWN_ID);
    const calls = counting();
    const job_ids = Array.from({ length: 20 }, () => uuidv7());
    await calls.server.call('POST', `${V1}/jobs/bulk/cancel`, { job_ids });
    const made = calls.take();
    expect(made.filter((call) => names.some((name) => call.startsWith(`${name}.`)))).toEqual([]);
    const shards = new Set(job_ids.map((id) => `${idShardOf(id)}.placesOf`));
    expect(made.sort()).toEqual(['directory.resolve', 'directory.recordAudit', ...shards].sort());
  });

  it('is taken in every queue, also as part of a batch and of jobs each on their own', async () => {
    const [a, b] = (await queues(2)) as [string, string];
    const id = await enqueueAs(uuidv7(), a);
    const again = { type: 'a.b', args: [], id, options: { queue: b } };
    expect(await server.call('POST', `${V1}/jobs`, again)).toMatchObject({
      status: 409,
      body: { error: { code: 'duplicate', details: { existing_job_id: id } } },
    });
    const other = { ...again, id: uuidv7() };
    const batch = await server.call('POST', `${V1}/jobs/batch`, { jobs: [other, again] });
    expect(batch).toMatchObject({ status: 409, body: { error: { details: { index: 1 } } } });
    const each = await server.call('POST', `${V1}/jobs/bulk`, { jobs: [other, again] });
    expect(each.body.items).toMatchObject([{ status: 'created' }, { error: { code: 'duplicate' } }]);
    expect(await noted(id)).toEqual([a]);
  });

  it('is free again in any queue when its job is gone', async () => {
    const [a, b] = (await queues(2)) as [string, string];
    const id = await enqueueAs(uuidv7(), a);
    await removed(id);
    await enqueueAs(id, b);
    expect((await server.job(id)).queue).toBe(b);
  });

  it('is noted before its job is accepted, or the job is not', async () => {
    const [queue] = (await queues(1)) as [string];
    const id = uuidv7();
    const calls = counting((call) => call.endsWith('.noteIds'));
    const refused = await calls.server.call('POST', `${V1}/jobs`, { type: 'a.b', args: [], id, options: { queue } });
    expect(refused.status).toBeGreaterThanOrEqual(500);
    expect(await new TestQueue(queue).counts()).toEqual({});
  });

  it('is free of charge when it names the queue', async () => {
    const [queue, other] = (await queues(2)) as [string, string];
    const id = mintId(Date.now(), routeCandidate(queue, 0), FIRST_CHOSEN + 5);
    await enqueueAs(id, queue);
    expect(await noted(id)).toEqual([]);
    expect((await server.job(id)).queue).toBe(queue);
    const again = await server.call('POST', `${V1}/jobs`, { type: 'a.b', args: [], id, options: { queue: other } });
    expect(again.status).toBe(409);
  });

  it('that names the queue stays taken when the job went to another one', async () => {
    const [from, to] = (await queues(2)) as [string, string];
    const id = mintId(Date.now(), routeCandidate(from, 0), FIRST_CHOSEN + 6);
    await server.enqueue(from, { id, options: { retry: DEAD } });
    await server.takeOne(from);
    await server.nack(id);
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: to } });
    expect((await server.job(id)).queue).toBe(to);
    const again = await server.call('POST', `${V1}/jobs`, { type: 'a.b', args: [], id, options: { queue: from } });
    expect(again).toMatchObject({ status: 409, body: { error: { code: 'duplicate' } } });
  });
});

describe('a job that moved', () => {
  it('with its queue is found without asking the others', async () => {
    const [from, to] = (await queues(12)) as [string, string];
    const ids = [await server.enqueue(from), await enqueueAs(uuidv7(), from)];
    const path = `${V1}/queues/${from}?strategy=move&target_queue=${to}`;
    expect((await server.call('DELETE', path, { confirm: true })).status).toBeLessThan(300);
    await until(async () => !(await server.queues()).includes(from), 'the queue to be deleted');
    const calls = counting();
    for (const id of ids) expect((await calls.server.job(id)).queue).toBe(to);
    expect(calls.take().length).toBeLessThanOrEqual(8);
  });
});

describe('jobs of an earlier release', () => {
  /** As if the queues had taken their jobs before ids were noted. */
  async function forgetIds(ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      await runInDurableObject(shardOf(id), (_, { storage }) => storage.sql.exec('DELETE FROM ids').toArray());
    }
    await runInDurableObject(directory(), (_, { storage }) =>
      storage.sql.exec('UPDATE queues SET ids_listed = 0').toArray(),
    );
  }

  it('are found by the ids that their clients chose, and their ids stay taken', async () => {
    const [a, b, c] = (await queues(6)) as [string, string, string];
    const ids = [await enqueueAs(uuidv7(), a), await enqueueAs(uuidv7(), b)];
    await server.reset();
    // Nothing is remembered of the other life of these queues.
    for (const queue of [a, b, c]) await server.ok(201, 'POST', `${V1}/queues`, { name: queue });
    for (const [at, id] of ids.entries()) await enqueueAs(id, [a, b][at] as string);
    await forgetIds(ids);
    const again = { type: 'a.b', args: [], id: ids[0], options: { queue: c } };
    expect((await server.job(ids[1])).queue).toBe(b);
    expect((await server.call('POST', `${V1}/jobs`, again)).status).toBe(409);
    expect((await server.job(ids[0])).queue).toBe(a);
    for (const id of ids) expect(await noted(id)).toHaveLength(1);
    expect(await directory().listIds()).toBe(0);
  });
});

describe('the daily round of a shard', () => {
  it('forgets ids whose jobs are gone, and keeps all others', async () => {
    clock.set(Date.now());
    const [queue] = (await queues(1)) as [string];
    const [gone, kept] = [await enqueueAs(uuidv7(), queue), await enqueueAs(uuidv7(), queue)] as [string, string];
    await removed(gone);
    clock.advance(DAY + HOUR);
    const late = await enqueueAs(uuidv7(), queue);
    for (const id of [gone, kept, late]) await clock.ring(shardOf(id));
    expect(await noted(gone)).toEqual([]);
    expect(await noted(kept)).toEqual([queue]);
    expect(await noted(late)).toEqual([queue]);
  });
});

describe('while the directory cannot be asked', () => {
  it('heartbeats and enqueues continue, and ask it once a second at most', async () => {
    const [queue] = (await queues(1)) as [string];
    clock.set(Date.now());
    const calls = counting((call) => call.startsWith('directory.'));
    for (let beat = 0; beat < 5; beat++) {
      const body = { worker_id: 'w1', active_jobs: [], queues: [queue] };
      const answer = await calls.server.ok(200, 'POST', `${V1}/workers/heartbeat`, body);
      expect(answer.state).toBe('running');
      const job = { type: 'a.b', args: [], id: uuidv7(), options: { queue } };
      await calls.server.ok(201, 'POST', `${V1}/jobs`, job);
    }
    expect(calls.take().filter((call) => call.startsWith('directory.'))).toHaveLength(1);
    clock.advance(1_000);
    await calls.server.ok(200, 'POST', `${V1}/workers/heartbeat`, { worker_id: 'w1', active_jobs: [] });
    expect(calls.take().filter((call) => call.startsWith('directory.'))).toHaveLength(1);
  });
});
