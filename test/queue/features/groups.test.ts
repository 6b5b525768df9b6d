import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

clock.startAtT0();

/** A queue whose groups are served so. */
async function queueOf(groups: Json): Promise<TestQueue> {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups });
  return queue;
}

/** Enqueues jobs of these groups in one request; their ids. */
const addAll = (queue: TestQueue, groups: readonly (string | undefined)[], options: Json = {}) =>
  server.addAll(
    groups.map((group) => ({ type: 'test.grouped', args: [], options: { queue: queue.name, group, ...options } })),
  );

const take = (queue: TestQueue, count: number, rest: Json = {}) => server.takeIds(queue.name, { count, ...rest });

describe('the group of a job', () => {
  it('is that of its schedule or of its workflow, and stays when it is cloned unless the clone has another', async () => {
    const queue = await queueOf({ order: 'fair' });
    const options = { queue: queue.name, group: 'acme' };
    const template = { type: 'test.grouped', args: [], options };
    await server.ok(201, 'POST', '/ojs/v1/cron', { name: 'grouped', cron: '0 3 * * *', job_template: template });
    await server.ok(201, 'POST', '/ojs/v1/cron/grouped/trigger');
    await server.ok(201, 'POST', '/ojs/v1/workflows', { name: 'w', steps: [{ id: 'one', ...template }] });
    const [id] = (await addAll(queue, ['acme'])) as [string];
    await server.ok(201, 'POST', `/ojs/v1/admin/jobs/${id}/clone`);
    await server.ok(201, 'POST', `/ojs/v1/admin/jobs/${id}/clone`, { options: { group: 'other' } });
    const { items } = await server.ok(200, 'GET', `/ojs/v1/queues/${queue.name}/groups`);
    expect(items).toMatchObject([
      { group: 'acme', waiting: 4 },
      { group: 'other', waiting: 1 },
    ]);
    expect(await server.refusal('PATCH', `/ojs/v1/jobs/${id}`, { group: 'new' })).toMatchObject({ status: 400 });
  });
});

describe('groups that are served fairly', () => {
  it('with few waiting jobs come before those with many, whose turns come one after the other', async () => {
    const queue = await queueOf({ order: 'fair' });
    const noisy = await addAll(queue, Array(60).fill('noisy'));
    const other = await addAll(queue, Array(60).fill('other'));
    const quiet = await addAll(queue, ['a', 'b', 'a', undefined]);
    const first = await take(queue, 8);
    // An eighth is kept for those with many.
    expect(first.slice(0, 4)).toEqual(quiet);
    expect(first.slice(4)).toEqual(noisy.slice(0, 4));
    const then = await take(queue, 16);
    expect(new Set(then)).toEqual(new Set([...noisy.slice(4, 12), ...other.slice(0, 8)]));
  });

  it('are handed out a job that ran while others were read ahead in its new place', async () => {
    const queue = await queueOf({ order: 'fair' });
    const first = await server.add('waits', [], { queue: queue.name, group: 'a' });
    const again = await server.add('fails', [], { queue: queue.name });
    for (let run = 0; run < 2; run++) {
      expect(await take(queue, 1, { types: ['fails'] })).toEqual([again]);
      if (run === 0) await server.failNow(again);
    }
    const last = await server.add('waits', [], { queue: queue.name });
    await queue.evict();
    expect(await take(queue, 1)).toEqual([first]);
    await server.nack(again, { error: { code: 'E', message: 'm', retry_in: 1_000 } });
    clock.advance(1_000);
    expect(await take(queue, 10)).toEqual([last, again]);
  });

  it.each([['fair'], ['strict']])('let no job pass that ran for a worker of its type (%s)', async (order) => {
    const queue = await queueOf({ order });
    const ids: string[] = [];
    for (const type of ['waits', 'waits', 'fails', 'fails', 'waits'])
      ids.push((await server.add(type, [], { queue: queue.name })) as string);
    const [first, second, again, removed, last] = ids;
    // The worker of all types knows where the others stand, and where the one stood that another worker takes.
    expect(await take(queue, 1)).toEqual([first]);
    expect(await take(queue, 2, { types: ['fails'] })).toEqual([again, removed]);
    clock.advance(1_000);
    await server.failNow(again);
    await server.ack(removed as string);
    expect(await take(queue, 1)).toEqual([second]);
    expect(await take(queue, 10)).toEqual([last, again]);
  });
});

describe('groups with a bound of waiting jobs', () => {
  const enqueue = (queue: TestQueue, group: string, more: Json = {}) =>
    server.call('POST', '/ojs/v1/jobs', {
      type: 'test.grouped',
      args: [],
      options: { queue: queue.name, group, ...more },
    });

  it('refuse what would exceed it, and nothing of other groups', async () => {
    const queue = await queueOf({ max_waiting: 3 });
    const [first] = await addAll(queue, ['a', 'a', 'a']);
    const refused = await enqueue(queue, 'a');
    expect(refused).toMatchObject({
      status: 429,
      body: {
        error: {
          code: 'GROUP_FULL',
          retryable: true,
          details: { queue: queue.name, group: 'a', waiting: 3, limit: 3 },
        },
      },
    });
    expect(refused.headers.get('retry-after')).toBe('1');
    await addAll(queue, ['b', undefined]);
    expect(await take(queue, 1)).toEqual([first]);
    // One that runs does not wait.
    expect((await enqueue(queue, 'a', { delay_until: '2030-01-01T00:00:00Z' })).status).toBe(201);
    expect((await enqueue(queue, 'a')).status).toBe(429);
  });

  it('refuse a batch as a whole, and take one that fits', async () => {
    const queue = await queueOf({ max_waiting: 3 });
    await addAll(queue, ['a', 'a']);
    const batch = (groups: string[]) =>
      server.call('POST', '/ojs/v1/jobs/batch', {
        jobs: groups.map((group) => ({ type: 'test.grouped', args: [], options: { queue: queue.name, group } })),
      });
    expect(await batch(['b', 'a', 'a'])).toMatchObject({ status: 429, body: { error: { code: 'GROUP_FULL' } } });
    expect(await queue.counts()).toEqual({ available: 2 });
    expect((await batch(['b', 'a', 'b', 'b'])).status).toBe(201);
    expect((await batch(['b'])).status).toBe(429);
  });

  it('count the same after the object has lost its memory, whatever became of their jobs', async () => {
    const queue = await queueOf({ max_waiting: 4 });
    const options = { retry: { max_attempts: 3, initial_interval: 60_000, jitter: false } };
    const ids = await addAll(queue, ['a', 'a', 'a', 'a'], options);
    await take(queue, 3);
    await server.ack(ids[0] as string);
    await server.nack(ids[1] as string);
    // One waits for its retry, one runs, one is available.
    for (const forget of [false, true]) {
      if (forget) await queue.evict();
      const [added, other] = await addAll(queue, ['a', 'a']);
      expect((await enqueue(queue, 'a')).status).toBe(429);
      await queue.cancel(added as string);
      await queue.cancel(other as string);
    }
    await server.nack(ids[2] as string);
    await addAll(queue, ['a']);
    expect((await enqueue(queue, 'a')).status).toBe(429);
  });
});

describe('groups in strict order', () => {
  it('have one job at a time run, in the order of enqueue', async () => {
    const queue = await queueOf({ order: 'strict' });
    const ids = await addAll(queue, ['a', 'a', 'b', 'a', 'b', undefined]);
    const [a1, a2, b1, a3, b2, free] = ids as [string, string, string, string, string, string];
    expect(await take(queue, 10)).toEqual([a1, b1, free]);
    expect(await take(queue, 10)).toEqual([]);
    await server.ack(b1);
    expect(await take(queue, 10)).toEqual([b2]);
    await server.ack(a1);
    expect(await take(queue, 10)).toEqual([a2]);
    await queue.evict();
    expect(await take(queue, 10)).toEqual([]);
    await server.ack(a2);
    expect(await take(queue, 10)).toEqual([a3]);
  });

  it('let the jobs of another group start that are far behind those that wait', async () => {
    const queue = await queueOf({ order: 'strict' });
    const [first] = await addAll(queue, ['a']);
    for (let n = 0; n < 30; n++) await addAll(queue, Array(1000).fill('a'));
    const [other] = await addAll(queue, ['b']);
    expect(await take(queue, 1)).toEqual([first]);
    expect(await take(queue, 10)).toEqual([other]);
  });

  it('wait for the retry of the job whose turn it is, and for nothing else', async () => {
    const queue = await queueOf({ order: 'strict' });
    const [a1, a2, b1] = (await addAll(queue, ['a', 'a', 'b'], {
      retry: { max_attempts: 2, initial_interval: 1000, jitter: false },
    })) as [string, string, string];
    expect(await take(queue, 10)).toEqual([a1, b1]);
    await server.nack(a1);
    expect(await take(queue, 10)).toEqual([]);
    await queue.evict();
    expect(await take(queue, 10)).toEqual([]);
    expect(await server.call('GET', `/ojs/v1/jobs/${a2}`)).toMatchObject({
      body: { job: { waiting_for: { reason: 'group', job_id: a1 } } },
    });
    clock.advance(1000);
    expect(await take(queue, 10)).toEqual([a1]);
    await server.nack(a1);
    expect(await take(queue, 10)).toEqual([a2]);
  });
});

/** A job goes back to where it stood, as if nobody had claimed it. */
const giveBack = (id: unknown) => server.nack(id, { requeue: true, attempt_used: false });
const advance = (ms: number) => clock.advance(ms);
/** Sleeps for so many ms, or until the signal comes. */
const sleep = (id: unknown, ms: number, signal?: string) =>
  server.nack(id, { requeue: true, attempt_used: false, snooze: { in: ms, ...(signal && { signal }), steps: {} } });
const PATIENT = { retry: { max_attempts: 3, initial_interval: 1000, backoff_coefficient: 1, jitter: false } };

describe('what happens to the first job of a group in strict order', () => {
  /** Three jobs of a group and one of another, of which the first of each run. */
  async function running(options: Json = {}): Promise<{ queue: TestQueue; ids: [string, string, string, string] }> {
    const queue = await queueOf({ order: 'strict' });
    const ids = (await addAll(queue, ['a', 'a', 'b', 'a'], options)) as [string, string, string, string];
    expect(await take(queue, 10)).toEqual([ids[0], ids[2]]);
    return { queue, ids };
  }

  const memories: [after: string, evict: (queue: TestQueue) => Promise<void>][] = [
    ['', async () => {}],
    [', also after an eviction', (queue) => queue.evict()],
    [
      ', also where memory keeps none of those that hold their groups up',
      (queue) =>
        queue.inside(({ q }) => {
          q.store.sizes.holders = 0;
          q.load();
        }),
    ],
  ];
  for (const [after, evict] of memories) {
    it(`is the next one again when it was given back${after}`, async () => {
      const { queue, ids } = await running();
      await giveBack(ids[0]);
      await evict(queue);
      expect(await take(queue, 10)).toEqual([ids[0]]);
      await server.ack(ids[0]);
      expect(await take(queue, 10)).toEqual([ids[1]]);
    });

    it(`is the next one again when its worker requeues it${after}`, async () => {
      const { queue, ids } = await running();
      advance(10);
      await server.nack(ids[0], { requeue: true });
      await evict(queue);
      expect(await take(queue, 10)).toEqual([ids[0]]);
    });

    it(`is the next one again when its worker is lost${after}`, async () => {
      const { queue, ids } = await running({ visibility_timeout_ms: 5_000 });
      advance(5_000);
      await evict(queue);
      expect(await take(queue, 10)).toEqual([ids[0], ids[2]]);
    });

    it(`blocks its group while it sleeps, and continues first${after}`, async () => {
      const { queue, ids } = await running();
      await sleep(ids[0], 60_000);
      await evict(queue);
      expect(await take(queue, 10)).toEqual([]);
      advance(60_000);
      expect(await take(queue, 10)).toEqual([ids[0]]);
      await giveBack(ids[0]);
      await evict(queue);
      expect(await take(queue, 10)).toEqual([ids[0]]);
      await server.ack(ids[0]);
      expect(await take(queue, 10)).toEqual([ids[1]]);
    });

    it(`blocks its group until its signal comes${after}`, async () => {
      const { queue, ids } = await running();
      await sleep(ids[0], 3_600_000, 'go');
      await evict(queue);
      expect(await take(queue, 10)).toEqual([]);
      await server.ok(200, 'POST', `${V1}/jobs/${ids[0]}/signals/go`, {});
      expect(await take(queue, 10)).toEqual([ids[0]]);
    });

    it(`lets the next one start when it is cancelled while it waits for its retry${after}`, async () => {
      const { queue, ids } = await running(PATIENT);
      await server.nack(ids[0]);
      await evict(queue);
      expect(await take(queue, 10)).toEqual([]);
      await server.ok(200, 'DELETE', `${V1}/jobs/${ids[0]}`);
      expect(await take(queue, 10)).toEqual([ids[1]]);
    });

    it(`stays the first one when an operator runs its retry now${after}`, async () => {
      const { queue, ids } = await running(PATIENT);
      await server.nack(ids[0]);
      await server.ok(200, 'POST', `${V1}/admin/jobs/${ids[0]}/retry`, {});
      await evict(queue);
      expect(await take(queue, 10)).toEqual([ids[0]]);
    });

    it(`holds its group up while it waits for its own limit${after}`, async () => {
      const queue = await queueOf({ order: 'strict' });
      const limited = { rate_limit: { key: 'api', concurrency: 1 } };
      const [other] = await addAll(queue, ['z'], limited);
      const [a1, a2] = await addAll(queue, ['a', 'a'], limited);
      const [a3, b1] = await addAll(queue, ['a', 'b']);
      expect(await take(queue, 10)).toEqual([other, b1]);
      await evict(queue);
      expect(await take(queue, 10)).toEqual([]);
      expect((await server.job(a3)).waiting_for).toMatchObject({ reason: 'group', job_id: a1 });
      await server.ack(other);
      await evict(queue);
      for (const id of [a1, a2, a3]) {
        expect(await take(queue, 10)).toEqual([id]);
        await server.ack(id);
      }
    });
  }

  it('lets the next one start when it is cancelled while it runs', async () => {
    const { queue, ids } = await running();
    await server.ok(200, 'DELETE', `${V1}/jobs/${ids[0]}`);
    expect(await take(queue, 10)).toEqual([ids[1]]);
  });

  it('goes to the end when it was dead and is run again', async () => {
    const { queue, ids } = await running({ retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } });
    await server.nack(ids[0]);
    expect(await take(queue, 10)).toEqual([ids[1]]);
    // Something of this moment has been read.
    const [late] = await addAll(queue, ['c'], { priority: 1 });
    expect(await take(queue, 10)).toEqual([late]);
    await server.ok(200, 'POST', `${V1}/dead-letter/${ids[0]}/retry`);
    await server.ack(ids[1]);
    expect(await take(queue, 10)).toEqual([ids[3]]);
    await server.ack(ids[3]);
    expect(await take(queue, 10)).toEqual([ids[0]]);
  });

  it('is passed by others when it is given a later time', async () => {
    const { queue, ids } = await running();
    await server.ok(200, 'PATCH', `${V1}/jobs/${ids[1]}`, { scheduled_at: '+PT1S' });
    advance(1_000);
    await server.ack(ids[0]);
    expect(await take(queue, 10)).toEqual([ids[3]]);
    await server.ack(ids[3]);
    expect(await take(queue, 10)).toEqual([ids[1]]);
  });

  it('lets others pass when it was given back and is given a later time', async () => {
    const { queue, ids } = await running();
    await giveBack(ids[0]);
    await server.ok(200, 'PATCH', `${V1}/jobs/${ids[0]}`, { scheduled_at: '+PT1H' });
    expect(await take(queue, 10)).toEqual([ids[1]]);
  });
});

describe('the jobs of a group in strict order', () => {
  it('start in their order though they had priorities before the order was set', async () => {
    const queue = new TestQueue();
    const limited = { rate_limit: { key: `before-${queue.name}`, concurrency: 1 } };
    const [other] = await addAll(queue, ['z'], limited);
    const ids = [...(await addAll(queue, ['a'])), ...(await addAll(queue, ['a'], { priority: 5 }))];
    ids.push(...(await addAll(queue, ['a'], { priority: -5, ...limited })), ...(await addAll(queue, ['a'])));
    const [free] = await addAll(queue, [undefined], { priority: 1 });
    await server.configure(queue.name, { groups: { order: 'strict' } });
    expect(await take(queue, 10)).toEqual([free, other, ids[0]]);
    for (const [at, id] of ids.entries()) {
      await queue.evict();
      expect(await take(queue, 10)).toEqual([]);
      // The third one waits for its key, too.
      if (at === 1) await server.ack(id);
      if (at === 1) expect(await take(queue, 10)).toEqual([]);
      await server.ack(at === 1 ? other : id);
      const next = ids[at + 1];
      expect(await take(queue, 10)).toEqual(next === undefined ? [] : [next]);
    }
  });

  it('take their places as they become available', async () => {
    const queue = await queueOf({ order: 'strict' });
    const [a1] = await addAll(queue, ['a']);
    const [late] = await addAll(queue, ['a'], { delay_until: '+PT1S' });
    expect(await take(queue, 10)).toEqual([a1]);
    const [a2] = await addAll(queue, ['a']);
    advance(2_000);
    const [a3] = await addAll(queue, ['a']);
    await queue.evict();
    for (const [before, id] of [
      [a1, a2],
      [a2, late],
      [late, a3],
    ]) {
      await server.ack(before);
      expect(await take(queue, 10)).toEqual([id]);
    }
  });

  it('start in the order of enqueue in one millisecond, too, where only some of them have limits', async () => {
    const queue = await queueOf({ order: 'strict' });
    const [b1] = await addAll(queue, ['b']);
    expect(await take(queue, 10)).toEqual([b1]);
    await server.failNow(b1);
    expect(await take(queue, 10)).toEqual([b1]);
    const rate_limit = { key: 'narrow', concurrency: 1 };
    const options = { queue: queue.name, group: 'a' };
    const [a1, a2, a3] = await server.addAll([
      { type: 'test.grouped', args: [], options },
      { type: 'test.grouped', args: [], options: { ...options, rate_limit } },
      { type: 'test.grouped', args: [], options },
    ]);
    for (const id of [a1, a2, a3]) {
      expect(await take(queue, 10)).toEqual([id]);
      await server.ack(id);
    }
  });

  it('are not stuck when one that came later is put at the moment of one that was delayed', async () => {
    const queue = await queueOf({ order: 'strict' });
    const at = new Date(Date.now() + 60_000).toISOString();
    const [delayed] = await addAll(queue, ['a'], { delay_until: at });
    const [patched, first] = await addAll(queue, ['a', 'a']);
    await server.ok(200, 'PATCH', `${V1}/jobs/${patched}`, { scheduled_at: at });
    advance(60_000);
    for (let left = [delayed, patched, first]; left.length > 0; ) {
      const [id, ...more] = await take(queue, 10);
      expect([more, left.includes(id as string)]).toEqual([[], true]);
      await server.ack(id);
      left = left.filter((other) => other !== id);
    }
  });

  it('are not stuck when the clock was set back', async () => {
    const queue = await queueOf({ order: 'strict' });
    const [a1] = await addAll(queue, ['a']);
    advance(-60_000);
    const [a2, b1] = await addAll(queue, ['a', 'b']);
    advance(60_000);
    expect(await take(queue, 10)).toEqual([a1, b1]);
    await server.ack(a1);
    expect(await take(queue, 10)).toEqual([a2]);
  });

  it('wait behind one that this worker does not take', async () => {
    const queue = await queueOf({ order: 'strict' });
    const add = (type: string, group: string) => server.add(type, [], { queue: queue.name, group });
    const [x1, y1, y2] = [await add('x', 'a'), await add('y', 'a'), await add('y', 'b')];
    expect(await take(queue, 10, { types: ['y'] })).toEqual([y2]);
    expect(await take(queue, 10, { types: ['x'] })).toEqual([x1]);
    expect(await take(queue, 10, { types: ['y'] })).toEqual([]);
    await queue.evict();
    expect(await take(queue, 10, { types: ['y'] })).toEqual([]);
    await server.ack(x1);
    expect(await take(queue, 10, { types: ['y'] })).toEqual([y1]);
  });

  it('are in order from the moment at which the order is set, and free when it is given up', async () => {
    const queue = new TestQueue();
    const [a1, a2, a3, a4] = (await addAll(queue, Array(4).fill('a'))) as string[];
    expect(await take(queue, 2)).toEqual([a1, a2]);
    await server.configure(queue.name, { groups: { order: 'strict' } });
    expect(await take(queue, 10)).toEqual([]);
    await server.ack(a1);
    expect(await take(queue, 10)).toEqual([]);
    await server.ack(a2);
    expect(await take(queue, 10)).toEqual([a3]);
    await server.configure(queue.name, { groups: null });
    expect(await take(queue, 10)).toEqual([a4]);
  });

  it('that had begun before the order was set continue as they are due, whichever began first', async () => {
    const queue = new TestQueue();
    const [a1, a2, a3] = (await addAll(queue, ['a', 'a', 'a'])) as [string, string, string];
    expect(await take(queue, 2)).toEqual([a1, a2]);
    await server.configure(queue.name, { groups: { order: 'strict' } });
    await server.nack(a1, { error: { code: 'E', message: 'm', retry_in: 3_600_000 } });
    await server.nack(a2, { error: { code: 'E', message: 'm', retry_in: 1_000 } });
    expect(await take(queue, 10)).toEqual([]);
    advance(1_000);
    expect(await take(queue, 10)).toEqual([a2]);
    await server.ack(a2);
    expect(await take(queue, 10)).toEqual([]);
    advance(3_600_000);
    expect(await take(queue, 10)).toEqual([a1]);
    await server.ack(a1);
    expect(await take(queue, 10)).toEqual([a3]);
  });

  it('pass one that waited for its retry before the order was set, also when it is given another time', async () => {
    const queue = new TestQueue();
    const [a1, a2] = (await addAll(queue, ['a', 'a'])) as [string, string];
    expect(await take(queue, 1)).toEqual([a1]);
    await server.nack(a1, { error: { code: 'E', message: 'm', retry_in: 60_000 } });
    await server.configure(queue.name, { groups: { order: 'strict' } });
    await server.ok(200, 'PATCH', `${V1}/jobs/${a1}`, { scheduled_at: '+PT1H' });
    expect(await take(queue, 10)).toEqual([a2]);
  });

  it('have no priority, of which their producer is warned', async () => {
    const queue = await queueOf({ order: 'strict' });
    const [a1] = await addAll(queue, ['a']);
    const job = { type: 't', args: [], options: { queue: queue.name, group: 'a', priority: 5 } };
    const answer = await server.call('POST', `${V1}/jobs`, job);
    expect(JSON.stringify([...answer.headers, answer.body])).toContain('priority has no effect');
    expect(await take(queue, 10)).toEqual([a1]);
    const { id } = answer.body.job as Json;
    expect(await server.refusal('PATCH', `${V1}/jobs/${id}`, { priority: 3 })).toMatchObject({
      ...{ status: 422, field: 'priority' },
    });
  });
});

describe('groups that take turns', () => {
  const runs = async (queue: TestQueue, claims: number, count: number): Promise<string[]> => {
    const groups: string[] = [];
    for (let n = 0; n < claims; n++) {
      for (const { id, group } of await server.take(queue.name, { count })) {
        groups.push(group as string);
        await server.ack(id);
      }
    }
    return groups;
  };

  it('have shares by weight, of names before patterns, also after an eviction', async () => {
    const queue = await queueOf({ weights: { 'vip-*': 3, 'vip-low': 1 } });
    for (const group of ['plain', 'vip-1', 'vip-low']) await addAll(queue, Array(100).fill(group));
    const first = await runs(queue, 4, 20);
    const before = first.filter((group) => group === 'vip-1').length;
    await queue.evict();
    const then = await runs(queue, 2, 20);
    const vip = then.filter((group) => group === 'vip-1').length;
    expect(before).toBeGreaterThanOrEqual(40);
    expect(vip).toBeGreaterThanOrEqual(16);
  });

  it('run as many at once as their queue allows each of them', async () => {
    const queue = await queueOf({ concurrency: 2 });
    const [a1, a2, a3, b1, free] = await addAll(queue, ['a', 'a', 'a', 'b', undefined]);
    expect(await take(queue, 10)).toEqual([a1, a2, b1, free]);
    expect((await server.job(a3)).waiting_for).toMatchObject({ reason: 'group' });
    await queue.evict();
    expect(await take(queue, 10)).toEqual([]);
    await server.nack(a1);
    expect(await take(queue, 10)).toEqual([a3]);
  });

  it('have jobs of higher priority go first, of whatever group', async () => {
    const queue = await queueOf({ order: 'fair' });
    await addAll(queue, Array(40).fill('noisy'));
    const [quiet] = await addAll(queue, ['quiet']);
    const [high] = await addAll(queue, ['noisy'], { priority: 1 });
    expect(await take(queue, 2)).toEqual([high, quiet]);
  });

  it('lose none of their jobs, delayed, retried or given back, over evictions and workers of few types', async () => {
    const queue = await queueOf({ order: 'fair' });
    const add = (count: number, group: string | undefined, type: string, options: Json = {}) =>
      server.addAll(
        Array.from({ length: count }, () => ({ type, args: [], options: { queue: queue.name, group, ...options } })),
      );
    const all = new Set([
      ...(await add(50, 'a', 'x', PATIENT)),
      ...(await add(40, 'b', 'y', { delay_until: '+PT1S' })),
      ...(await add(5, 'c', 'y', PATIENT)),
      ...(await add(5, undefined, 'x')),
    ]);
    for (let round = 0; all.size > 0; round++) {
      expect(round).toBeLessThan(60);
      const types = [undefined, ['x'], ['y']][round % 3];
      for (const id of await take(queue, 9, { ...(types && { types }) })) {
        expect(all.has(id)).toBe(true);
        if (round % 5 === 1) await giveBack(id);
        else if (round % 5 === 3 && round < 20) await server.failNow(id);
        else {
          await server.ack(id);
          all.delete(id);
        }
      }
      advance(300);
      if (round % 4 === 3) await queue.evict();
    }
  });
});

describe('settings of groups', () => {
  const refused: [string, Json, number, string][] = [
    ['a weight of 0', { weights: { a: 0 } }, 422, 'groups.weights.a'],
    ['a weight of 101', { weights: { a: 101 } }, 422, 'groups.weights.a'],
    ['a weight that is no number', { weights: { a: 'b' } }, 400, 'groups.weights.a'],
    ['patterns that overlap', { weights: { 'a*': 1, 'ab*': 2 } }, 422, 'groups.weights'],
    ['a star in the middle', { weights: { 'a*b': 1 } }, 422, 'groups.weights'],
    ['a concurrency of 0', { concurrency: 0 }, 422, 'groups.concurrency'],
    ['two at once in a strict order', { order: 'strict', concurrency: 2 }, 422, 'groups.concurrency'],
    ['a member that nobody knows', { shares: {} }, 422, 'groups.shares'],
  ];
  for (const [what, groups, status, field] of refused) {
    it(`are refused with ${what}, and change nothing`, async () => {
      const queue = await queueOf({ order: 'strict' });
      const path = `${V1}/queues/${queue.name}/config`;
      expect(await server.refusal('PUT', path, { groups })).toMatchObject({ status, field });
      expect(JSON.stringify(await server.ok(200, 'GET', path))).toContain('"strict"');
    });
  }

  it('are not for groups of another type, or of too many characters', async () => {
    for (const group of [1, '', 'x'.repeat(256), ['a']]) {
      const job = { type: 't', args: [], options: { queue: 'any', group } };
      expect(await server.refusal('POST', `${V1}/jobs`, job)).toMatchObject({ status: 400, field: 'options.group' });
    }
    await server.enqueue('any', { options: { group: 'x'.repeat(255) } });
  });
});

it('a job of a strict group that held up others, ended and is run again goes to the end', async () => {
  const queue = await queueOf({ order: 'strict' });
  const [a1, a2] = (await addAll(queue, ['a', 'a'])) as [string, string];
  expect(await take(queue, 10)).toEqual([a1]);
  await server.nack(a1);
  await queue.cancel(a1);
  clock.advance(1);
  await queue.redrive(a1);
  expect(await take(queue, 10)).toEqual([a2]);
  await server.ack(a2);
  expect(await take(queue, 10)).toEqual([a1]);
});
