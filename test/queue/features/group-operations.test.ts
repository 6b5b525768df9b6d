/** What operators do to one group: limits, a weight, a pause; and what they are told about it. */
import { describe, expect, it } from 'vitest';
import { clock } from '../../support/clock';
import { Gate } from '../../support/handlers';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

clock.startAtT0();

async function queueOf(groups: Json): Promise<TestQueue> {
  const queue = new TestQueue();
  await server.configure(queue.name, { groups });
  return queue;
}

const addAll = async (queue: TestQueue, groups: readonly (string | undefined)[], options: Json = {}) =>
  (await server.addAll(
    groups.map((group) => ({ type: 'test.grouped', args: [], options: { queue: queue.name, group, ...options } })),
  )) as string[];

const take = (queue: TestQueue, count: number, rest: Json = {}) => server.takeIds(queue.name, { count, ...rest });

const pathOf = (queue: TestQueue, group: string, verb = '') =>
  `${V1}/queues/${queue.name}/groups/${encodeURIComponent(group)}${verb}`;

const pause = (queue: TestQueue, group: string) => server.ok(200, 'POST', pathOf(queue, group, '/pause'));
const resume = (queue: TestQueue, group: string) => server.ok(200, 'POST', pathOf(queue, group, '/resume'));

describe('a paused group', () => {
  it.each(['fair', 'strict'])(
    'hands out no job in a %s order, also after an eviction, and others run',
    async (order) => {
      const queue = await queueOf({ order });
      const [a1, a2, b1, free] = await addAll(queue, ['a', 'a', 'b', undefined]);
      expect(await pause(queue, 'a')).toMatchObject({ group: 'a', paused: true, override: { paused: true } });
      expect(await take(queue, 10)).toEqual([b1, free]);
      await queue.evict();
      const [a3, c1] = await addAll(queue, ['a', 'c']);
      expect(await take(queue, 10)).toEqual([c1]);
      expect((await server.job(a1)).waiting_for).toMatchObject({
        reason: 'group_paused',
        detail: expect.stringContaining('has paused the group "a"'),
      });
      expect(await resume(queue, 'a')).toMatchObject({ paused: false, override: null, waiting_for: null });
      const taken: string[] = [];
      for (let n = 0; n < 3; n++) {
        const ids = await take(queue, 10);
        for (const id of ids) await server.ack(id);
        taken.push(...ids);
      }
      expect(taken).toEqual([a1, a2, a3]);
    },
  );

  it.each([
    ['fair', 'waits for it', false],
    ['strict', 'waits for it', false],
    ['fair', 'may start', false],
    ['fair', 'may start', true],
  ])(
    'lets others have the places of a limit (%s order, its own job %s, evicted: %s)',
    async (order, when, isEvicted) => {
      const queue = await queueOf({ order });
      const rate_limit = { key: 'shared', concurrency: 1 };
      const [b1] = await addAll(queue, ['b'], { rate_limit });
      expect(await take(queue, 1)).toEqual([b1]);
      const [a1, c1] = await addAll(queue, ['a', 'c'], { rate_limit });
      if (when === 'may start') await server.ack(b1);
      if (isEvicted) await queue.evict();
      await pause(queue, 'a');
      if (when !== 'may start') await server.ack(b1);
      expect(await take(queue, 10)).toEqual([c1]);
      await addAll(queue, ['a'], { rate_limit });
      const [d1] = await addAll(queue, ['d'], { rate_limit });
      await server.ack(c1);
      expect(await take(queue, 10)).toEqual([d1]);
      await resume(queue, 'a');
      await server.ack(d1);
      expect(await take(queue, 10)).toEqual([a1]);
    },
  );

  it('lets others have the places of a limit that wait behind very many of its jobs', async () => {
    const queue = await queueOf({ order: 'fair' });
    const rate_limit = { key: 'shared', concurrency: 1 };
    const [b1] = await addAll(queue, ['b'], { rate_limit });
    expect(await take(queue, 1)).toEqual([b1]);
    await addAll(queue, Array(700).fill('a'), { rate_limit });
    const [c1] = await addAll(queue, ['c'], { rate_limit });
    await server.ack(b1);
    await pause(queue, 'a');
    await queue.evict();
    await queue.alarm();
    expect(await take(queue, 10)).toEqual([c1]);
  });

  it('keeps its jobs in order, those that come back or become due meanwhile too', async () => {
    const queue = await queueOf({ order: 'strict' });
    const retry = { max_attempts: 2, initial_interval: 1_000, jitter: false };
    const [a1] = await addAll(queue, ['a'], { retry });
    const [a2] = await addAll(queue, ['a'], { delay_until: '+PT1S' });
    const [a3] = await addAll(queue, ['a']);
    expect(await take(queue, 10)).toEqual([a1]);
    await pause(queue, 'a');
    await server.nack(a1);
    clock.advance(2_000);
    expect(await take(queue, 10)).toEqual([]);
    await queue.evict();
    expect(await take(queue, 10)).toEqual([]);
    await resume(queue, 'a');
    for (const id of [a1, a3, a2]) {
      expect(await take(queue, 10)).toEqual([id]);
      await server.ack(id);
    }
  });

  it('holds up no other group behind any number of its jobs', async () => {
    const queue = await queueOf({ order: 'fair' });
    await pause(queue, 'a');
    for (let n = 0; n < 30; n++) await addAll(queue, Array(1_000).fill('a'));
    const [b1] = await addAll(queue, ['b']);
    expect(await take(queue, 10)).toEqual([b1]);
    await queue.evict();
    const [b2] = await addAll(queue, ['b']);
    expect(await take(queue, 10)).toEqual([b2]);
    await resume(queue, 'a');
    expect(await take(queue, 10)).toHaveLength(10);
  });

  it('has none of its jobs pushed, until it is resumed', async () => {
    clock.set(Date.UTC(2030, 0, 1));
    const queue = new TestQueue('push-group-paused');
    await server.configure(queue.name, { groups: { order: 'fair' } });
    await pause(queue, 'a');
    const gate = new Gate('PLAIN');
    await gate.open();
    const [a1, b1] = (await server.addAll(
      ['a', 'b'].map((group) => ({ type: 'wide.echo', args: [], options: { queue: queue.name, group } })),
    )) as [string, string];
    await server.jobIn(b1, 'completed');
    expect(await server.state(a1)).toBe('available');
    await resume(queue, 'a');
    await server.jobIn(a1, 'completed');
  });

  it('is in the list, without jobs too', async () => {
    const queue = await queueOf({ order: 'fair' });
    await pause(queue, 'quiet');
    await addAll(queue, ['a']);
    const { items } = await server.ok(200, 'GET', `${V1}/queues/${queue.name}/groups`);
    expect(items).toMatchObject([
      { group: 'a', paused: false },
      { group: 'quiet', waiting: 0, paused: true },
    ]);
  });
});

describe('settings of one group', () => {
  it('hold in the place of those of the queue, survive an eviction and a change of these, and can be removed', async () => {
    const queue = await queueOf({ concurrency: 1, limits: { 'a*': { max_waiting: 50 } } });
    await addAll(queue, ['a', 'a', 'a', 'a', 'b', 'b']);
    const said = { concurrency: 2, weight: 5, rate: { limit: 100, period: 'PT1M' } };
    expect(await server.ok(200, 'PUT', pathOf(queue, 'a'), said)).toMatchObject({
      ...{ queue: queue.name, group: 'a', weight: 5, override: said },
      limits: { concurrency: 2, max_waiting: 50, rate: said.rate },
    });
    expect(await take(queue, 10)).toHaveLength(3);
    await queue.evict();
    await server.configure(queue.name, { groups: { concurrency: 1 } });
    expect(await server.ok(200, 'GET', pathOf(queue, 'a'))).toMatchObject({ running: 2, limits: { concurrency: 2 } });
    expect(await server.ok(200, 'PUT', pathOf(queue, 'a'), { concurrency: 3, rate: null })).toMatchObject({
      ...{ override: { concurrency: 3, weight: 5 }, limits: { concurrency: 3 } },
    });
    expect(await take(queue, 10)).toHaveLength(1);
    expect(await server.ok(200, 'DELETE', pathOf(queue, 'a'))).toMatchObject({
      ...{ override: null, limits: { concurrency: 1 }, weight: 1 },
    });
    expect(await queue.rows("SELECT key FROM meta WHERE key = 'groups'")).toEqual([]);
  });

  it('bound what waits of the group', async () => {
    const queue = await queueOf({ order: 'fair' });
    await addAll(queue, ['a', 'b']);
    await server.ok(200, 'PUT', pathOf(queue, 'a'), { max_waiting: 1 });
    const job = { type: 't', args: [], options: { queue: queue.name, group: 'a' } };
    expect(await server.refusal('POST', `${V1}/jobs`, job)).toMatchObject({ status: 429, code: 'GROUP_FULL' });
    await addAll(queue, ['b']);
  });

  it('take names of any characters', async () => {
    const queue = await queueOf({ order: 'fair' });
    for (const group of ['a/b c', 'pause', '__proto__', '50%', 'é…']) {
      await addAll(queue, [group]);
      expect(await pause(queue, group)).toMatchObject({ group, paused: true });
    }
    expect(await take(queue, 10)).toEqual([]);
    await queue.evict();
    expect(await take(queue, 10)).toEqual([]);
  });

  it('are in the audit log, with the group and its queue', async () => {
    const queue = await queueOf({ order: 'fair' });
    await server.ok(200, 'PUT', pathOf(queue, 'acme'), { concurrency: 3 });
    await pause(queue, 'acme');
    // That changes nothing, so it is not written down.
    await pause(queue, 'acme');
    await server.ok(200, 'DELETE', pathOf(queue, 'acme'));
    const { items } = await server.ok(200, 'GET', `${V1}/admin/audit?queue=${queue.name}&action=group.*`);
    expect(items).toMatchObject([
      { action: 'group.restore', target: 'acme', filter: { queue: queue.name } },
      { action: 'group.pause', target: 'acme', filter: { queue: queue.name } },
      { action: 'group.change', target: 'acme', filter: { queue: queue.name }, change: { concurrency: 3 } },
    ]);
  });

  const refused: [string, Json, number, string | undefined][] = [
    ['nothing', {}, 400, 'concurrency'],
    ['a weight of 0', { weight: 0 }, 422, 'weight'],
    ['a weight of 101', { weight: 101 }, 422, 'weight'],
    ['a limit of 0', { concurrency: 0 }, 422, 'concurrency'],
    ['a rate without a period', { rate: { limit: 1 } }, 400, 'rate.period'],
    ['a pause that is a word', { paused: 'yes' }, 400, 'paused'],
    ['a member that nobody knows', { limit: 1 }, 422, 'limit'],
    ['two at once in a strict order', { concurrency: 2 }, 422, 'concurrency'],
  ];
  for (const [what, change, status, field] of refused) {
    it(`are refused with ${what}, and change nothing`, async () => {
      const queue = await queueOf({ order: 'strict' });
      expect(await server.refusal('PUT', pathOf(queue, 'a'), change)).toMatchObject({ status, field });
      expect((await server.ok(200, 'GET', pathOf(queue, 'a'))).override).toBeNull();
    });
  }

  it('are refused for a queue that says nothing of its groups, and for more than a thousand of them', async () => {
    const plain = new TestQueue();
    await plain.add();
    expect(await server.refusal('POST', pathOf(plain, 'a', '/pause'))).toMatchObject({ status: 409 });
    expect(await server.refusal('GET', pathOf(plain, 'x'.repeat(256)))).toMatchObject({ status: 400, field: 'group' });
    const queue = await queueOf({ order: 'fair' });
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`g${at}`, { paused: true }]));
    await queue.inside(({ q, sql }) => {
      sql.exec('INSERT INTO meta (key, value) VALUES (?, ?)', 'groups', JSON.stringify(many)).toArray();
      q.load();
    });
    expect(await server.refusal('POST', pathOf(queue, 'a', '/pause'))).toMatchObject({ status: 409 });
    await resume(queue, 'g1');
    await pause(queue, 'a');
  });
});

describe('a group by its name', () => {
  it('says why it starts no job', async () => {
    const queue = await queueOf({ order: 'strict', rate: { limit: 1, period: 'hour' } });
    const [a1, a2] = (await addAll(queue, ['a', 'a'])) as [string, string];
    const shown = () => server.ok(200, 'GET', pathOf(queue, 'a'));
    expect(await shown()).toMatchObject({ waiting: 2, running: 0, waiting_for: null });
    await take(queue, 10);
    expect(await shown()).toMatchObject({ waiting: 1, running: 1, blocked_by: a1, waiting_for: { job_id: a1 } });
    await server.ack(a1);
    const until = new Date(Date.now() + 3_600_000).toISOString();
    expect(await shown()).toMatchObject({ blocked_by: null, waiting_for: { reason: 'group', until } });
    await pause(queue, 'a');
    expect(await shown()).toMatchObject({ waiting_for: { reason: 'group_paused' } });
    expect(await server.state(a2)).toBe('available');
  });

  it('has zeros where it, or its queue, does not exist', async () => {
    const queue = new TestQueue();
    expect(await server.ok(200, 'GET', pathOf(queue, 'a'))).toMatchObject({ waiting: 0, limits: {}, override: null });
    expect(await server.ok(200, 'DELETE', pathOf(queue, 'a'))).toMatchObject({ override: null });
    expect((await queue.stats()).exists).toBe(false);
  });
});
