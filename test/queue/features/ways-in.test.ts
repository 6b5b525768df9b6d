/**
 * The ways in which a job comes into a queue, and what holds of it afterwards, whichever way it came. A way, and an
 * invariant, are one line each.
 */
import { describe, expect, it } from 'vitest';
import { clock, iso, SECOND } from '../../support/clock';
import { exported, imported } from '../../support/exports';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

clock.startAtT0();

const TYPE = 'test.way';
const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };

/** Brings a job of this group into the queue; its id, once it is there. */
type Way = (queue: TestQueue, options: Json) => Promise<string>;

const enqueue: Way = (queue, options) => server.add(TYPE, [], { queue: queue.name, ...options });

/** Its id in another queue, from which it then comes. */
async function elsewhere(options: Json): Promise<{ from: TestQueue; id: string }> {
  const from = new TestQueue();
  return { from, id: await enqueue(from, options) };
}

/** A job of the queue fails for good. Nothing else of it may be there. */
async function dead(queue: TestQueue, options: Json): Promise<string> {
  const id = await enqueue(queue, { ...options, retry: DEAD });
  expect(await server.takeIds(queue.name)).toEqual([id]);
  await server.nack(id);
  return id;
}

const only = async (queue: TestQueue, before: readonly unknown[]): Promise<string> => {
  const found = (await server.jobs(queue.name)).map(({ id }) => id).filter((id) => !before.includes(id));
  expect(found).toHaveLength(1);
  return found[0] as string;
};

const idsIn = async (queue: TestQueue) => (await server.jobs(queue.name)).map(({ id }) => id);

const WAYS: Record<string, Way> = {
  enqueue,
  batch: async (queue, options) =>
    (await server.addAll([{ type: TYPE, args: [], options: { queue: queue.name, ...options } }]))[0] as string,
  workflow: async (queue, options) => {
    const before = await idsIn(queue);
    const steps = [{ type: TYPE, args: [], options: { queue: queue.name, ...options } }];
    await server.ok(201, 'POST', `${V1}/workflows`, { type: 'chain', steps });
    return only(queue, before);
  },
  transfer: async (queue, options) => {
    const { from, id } = await elsewhere(options);
    await server.call('DELETE', `${V1}/queues/${from.name}`, { strategy: 'move', target_queue: queue.name });
    for (let n = 0; n < 4; n++) await from.alarm();
    return id;
  },
  'dead letter of another queue': async (queue, options) => {
    const from = new TestQueue();
    const id = await dead(from, options);
    await server.ok(200, 'POST', `${V1}/dead-letter/${id}/retry`, { override: { queue: queue.name } });
    return id;
  },
  redrive: async (queue, options) => {
    const id = await enqueue(queue, options);
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, {});
    return id;
  },
  'retry of many': async (queue, options) => {
    const id = await enqueue(queue, options);
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await server.ok(200, 'POST', `${V1}/jobs/bulk/retry`, { job_ids: [id] });
    return id;
  },
  clone: async (queue, options) => {
    const { id } = await elsewhere(options);
    const { job } = await server.ok(201, 'POST', `${V1}/admin/jobs/${id}/clone`, { queue: queue.name });
    return (job as Json).id as string;
  },
  schedule: async (queue, options) => {
    const before = await idsIn(queue);
    const name = `${queue.name}-${before.length}`;
    const job_template = { type: TYPE, args: [], options: { queue: queue.name, ...options } };
    await server.ok(201, 'POST', `${V1}/cron`, { name, cron: '0 3 1 1 *', job_template });
    await server.ok(201, 'POST', `${V1}/cron/${name}/trigger`);
    return only(queue, before);
  },
  child: async (queue, options) => {
    const before = await idsIn(queue);
    const children = [{ type: TYPE, args: [], options: { queue: queue.name, ...options } }];
    const args = [{ say: [{ ask: { enqueue: children } }] }];
    const parent = await server.add('talk.do', args, { queue: freshName('parents') });
    await server.jobIn(parent, 'completed');
    return only(queue, before);
  },
  activation: async (queue, options) => {
    const id = await enqueue(queue, { ...options, pending: true });
    await server.ok(200, 'POST', `${V1}/jobs/${id}/activate`);
    return id;
  },
  import: async (queue, options) => {
    const { from, id } = await elsewhere(options);
    const file = await exported(from.name);
    await from.api.reset();
    expect(await imported(queue.name, file, 'merge=true')).toMatchObject({ imported: 1 });
    return id;
  },
  'one job of several calls': async (queue, options) => {
    const unique = { key: freshName('calls'), on_conflict: 'accumulate' };
    const id = await enqueue(queue, { ...options, unique });
    const call = { type: TYPE, args: [2], options: { queue: queue.name, ...options, unique } };
    const { job } = await server.ok(200, 'POST', `${V1}/jobs`, call);
    expect(job).toMatchObject({ id, coalesced: { calls: 2 } });
    return id;
  },
  patch: async (queue, options) => {
    const id = await enqueue(queue, { ...options, delay_until: '+PT1H' });
    await server.ok(200, 'PATCH', `${V1}/jobs/${id}`, { scheduled_at: null });
    return id;
  },
};

/** Names of groups: an ordinary one, and the longest in characters of three bytes. */
const GROUPS = ['g', '\u4e2d'.repeat(255)];

const strict = async (order: 'strict' | 'fair' = 'strict') => {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups: { order } });
  return queue;
};

type Invariant = (bring: Way, group: string) => Promise<void>;

/** All that come, one after the other; each must be alone. */
async function inTurn(queue: TestQueue, ids: readonly string[], evict = true): Promise<void> {
  for (const id of ids) {
    if (evict) await queue.evict();
    expect(await server.takeIds(queue.name, { count: 10 })).toEqual([id]);
    expect(await server.takeIds(queue.name, { count: 10 })).toEqual([]);
    await server.ack(id);
  }
}

const INVARIANTS: Record<string, Invariant> = {
  'runs behind those before it and before those behind it, one at a time': async (bring, group) => {
    const queue = await strict();
    const ids: string[] = [];
    for (const way of [enqueue, bring, enqueue]) {
      ids.push(await way(queue, { group }));
      clock.advance(1);
    }
    await inTurn(queue, ids);
  },
  'has no priority in a strict group': async (bring, group) => {
    const queue = await strict();
    const first = await enqueue(queue, { group });
    clock.advance(1);
    await inTurn(queue, [first, await bring(queue, { group, priority: 9 })]);
  },
  'has none where the order is set afterwards': async (bring, group) => {
    const queue = await strict('fair');
    const first = await enqueue(queue, { group });
    clock.advance(1);
    const second = await bring(queue, { group, priority: 9 });
    await server.configure(queue.name, { groups: { order: 'strict' } });
    await inTurn(queue, [first, second]);
  },
  'holds its group up once it has begun': async (bring, group) => {
    const queue = await strict();
    const id = await bring(queue, { group, retry: { max_attempts: 9, initial_interval: 'PT10S', jitter: false } });
    clock.advance(1);
    const next = await enqueue(queue, { group });
    expect(await server.takeIds(queue.name, { count: 10 })).toEqual([id]);
    // The way may have its own policy.
    await server.nack(id, { error: { code: 'E', message: 'm', retry_in: 5_000 } });
    if ((await server.state(id)) !== 'retryable') return;
    await queue.evict();
    expect(await server.takeIds(queue.name, { count: 10 })).toEqual([]);
    clock.advance(5 * SECOND);
    await inTurn(queue, [id, next]);
  },
  'counts under its key': async (bring, group) => {
    const queue = await strict('fair');
    const rate_limit = { key: `key-${queue.name}`, concurrency: 1 };
    const ids = [await bring(queue, { group, rate_limit })];
    clock.advance(1);
    ids.push(await enqueue(queue, { group: 'other', rate_limit }));
    await inTurn(queue, ids);
  },
  'counts among those of its group that wait': async (bring, group) => {
    const queue = new TestQueue();
    await server.configure(queue.name, { groups: { order: 'fair', max_waiting: 1 } });
    await bring(queue, { group });
    await queue.evict();
    const job = { type: TYPE, args: [], options: { queue: queue.name, group } };
    expect(await server.refusal('POST', `${V1}/jobs`, job)).toMatchObject({ status: 429 });
  },
};

describe.each(Object.entries(INVARIANTS))('a job %s', (_, invariant) => {
  it.each(Object.entries(WAYS))('that came by: %s', async (_, bring) => {
    for (const group of GROUPS) await invariant(bring, group);
  });
});

it('a job that has begun holds its group up in the queue that it is moved to', async () => {
  const [from, to] = [await strict(), await strict()];
  const ids = [];
  for (let n = 0; n < 2; n++) ids.push(await enqueue(from, { group: 'g', expires_at: iso(Date.now() + 3_600_000) }));
  const [first, second] = ids as [string, string];
  expect(await server.takeIds(from.name)).toEqual([first]);
  await server.nack(first, { error: { code: 'E', message: 'm', retry_in: 60_000 } });
  await server.call('DELETE', `${V1}/queues/${from.name}`, { strategy: 'move', target_queue: to.name });
  for (let n = 0; n < 4; n++) await from.alarm();
  await to.evict();
  expect(await server.takeIds(to.name, { count: 10 })).toEqual([]);
  clock.advance(60 * SECOND);
  await inTurn(to, [first, second]);
});
