/** Chunked handlers, pushed: one call gets many jobs, once so many wait or the oldest has waited long enough. */
import { describe, expect, it } from 'vitest';
import { clock, iso, SECOND, T0, until } from '../../../support/clock';
import { handler } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

clock.startAtT0();

/** A call as the handler saw it. */
interface ChunkCall {
  type: string;
  ids: string[];
  attempts: number[];
}

/** The calls that had any of these jobs. */
const callsWith = (ids: readonly string[]) => handler<ChunkCall[]>('CHUNKS', `/calls?ids=${ids.join(',')}`);

/** A retry of these would not come within the test. */
const LATER = { initial_interval: 'PT1H', max_interval: null, jitter: false };

/** A queue that knows already what the handlers announce. */
async function introduced(settings?: Json): Promise<TestQueue> {
  const queue = new TestQueue();
  if (settings) await server.configure(queue.name, settings);
  const id = await server.add('chunk.one', [], { queue: queue.name });
  await server.jobIn(id, 'completed');
  return queue;
}

const addAll = (queue: TestQueue, count: number, type = 'chunk.five', options: Json = {}, args: unknown[] = [{}]) =>
  server.addAll(Array.from({ length: count }, () => ({ type, args, options: { queue: queue.name, ...options } })));

/** Everything that the queue has begun is over. */
const settled = (ids: readonly string[], state = 'completed') => Promise.all(ids.map((id) => server.jobIn(id, state)));

describe('a chunk of pushed jobs', () => {
  it('starts as soon as it is full, in one call', async () => {
    const queue = await introduced();
    const first = await addAll(queue, 4);
    expect(await callsWith(first)).toEqual([]);
    const ids = [...first, ...(await addAll(queue, 1))];
    const jobs = await settled(ids);
    expect(await callsWith(ids)).toMatchObject([{ type: 'chunk.five', ids }]);
    expect(jobs.map(({ result }) => result)).toEqual(['1 of 5', '2 of 5', '3 of 5', '4 of 5', '5 of 5']);
  });

  it('starts when its oldest job has waited long enough, by the alarm', async () => {
    const queue = await introduced();
    const [first] = await addAll(queue, 1);
    await queue.passTo(T0 + 3 * SECOND);
    const ids = [first as string, ...(await addAll(queue, 1))];
    await queue.passTo(T0 + 5 * SECOND - 1);
    expect(await callsWith(ids)).toEqual([]);
    await queue.passTo(T0 + 5 * SECOND);
    await settled(ids);
    expect(await callsWith(ids)).toMatchObject([{ ids }]);
  });

  it('starts after an eviction at the moment at which it would have started before', async () => {
    const queue = await introduced();
    const ids = await addAll(queue, 3);
    await queue.passTo(T0 + 4 * SECOND);
    await queue.evict();
    ids.push(...(await addAll(queue, 1)));
    expect(await callsWith(ids)).toEqual([]);
    await queue.passTo(T0 + 5 * SECOND);
    await settled(ids);
    expect(await callsWith(ids)).toMatchObject([{ ids }]);
  });

  it('is full together with the jobs from before an eviction', async () => {
    const queue = await introduced();
    const ids = await addAll(queue, 3);
    await queue.evict();
    ids.push(...(await addAll(queue, 2)));
    await settled(ids);
    expect(await callsWith(ids)).toMatchObject([{ ids }]);
  });

  it('has jobs of one type only, and of one group where its handler says so', async () => {
    const queue = await introduced();
    const groups = ['a', 'b', 'a', 'b', 'a', 'b', 'a', 'b', 'a'];
    const jobs = groups.map((group) => ({ type: 'chunk.grouped', args: [{}], options: { queue: queue.name, group } }));
    const ids = await server.addAll(jobs);
    const of = (group: string) => ids.filter((_, at) => groups[at] === group);
    const others = await addAll(queue, 4);
    await settled(of('a'));
    expect(await callsWith(ids)).toMatchObject([{ ids: of('a') }]);
    await queue.passTo(T0 + 5 * SECOND);
    await settled([...of('b'), ...others]);
    expect(await callsWith([...of('b'), ...others])).toHaveLength(2);
    expect(await callsWith(of('b'))).toMatchObject([{ ids: of('b') }]);
  });

  it('takes the jobs of higher priority first', async () => {
    const queue = await introduced();
    const low = await addAll(queue, 4);
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/pause`);
    const high = await addAll(queue, 3, 'chunk.five', { priority: 5 });
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/resume`);
    const ids = [...high, ...low.slice(0, 2)];
    await settled(ids);
    expect(await callsWith(ids)).toMatchObject([{ ids }]);
  });

  it('holds up no job of another type', async () => {
    const queue = await introduced();
    await addAll(queue, 4);
    const [single] = await addAll(queue, 1, 'chunk.one');
    await server.jobIn(single as string, 'completed');
  });

  it('has up to a thousand jobs', async () => {
    const queue = await introduced({ concurrency: 1 });
    const ids = await addAll(queue, 1000, 'chunk.many');
    await server.jobIn(ids[999] as string, 'completed');
    const [call, ...others] = await callsWith(ids.slice(0, 1));
    expect(others).toEqual([]);
    expect(call?.ids).toEqual(ids);
  });

  it('leaves out a job that was cancelled while it waited', async () => {
    const queue = await introduced();
    const ids = await addAll(queue, 4);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${ids[0]}`);
    const more = await addAll(queue, 1);
    expect(await callsWith(ids)).toEqual([]);
    const last = await addAll(queue, 1);
    const all = [...ids.slice(1), ...more, ...last];
    await settled(all);
    expect(await callsWith(all)).toMatchObject([{ ids: all }]);
  });

  it('counts from the moment at which its jobs became available', async () => {
    const queue = await introduced();
    const delayed = await addAll(queue, 2, 'chunk.five', { delay_until: new Date(T0 + 10 * SECOND).toISOString() });
    await queue.passTo(T0 + 15 * SECOND - 1);
    expect(await callsWith(delayed)).toEqual([]);
    await queue.passTo(T0 + 15 * SECOND);
    await settled(delayed);
    expect(await callsWith(delayed)).toMatchObject([{ ids: delayed }]);
  });
});

describe('the outcome of a job in a chunk', () => {
  /** Five jobs in a call, with these orders. */
  async function together(orders: object[], options: Json = { retry: LATER }): Promise<string[]> {
    const queue = await introduced();
    return await server.addAll(
      orders.map((order) => ({ type: 'chunk.five', args: [order], options: { queue: queue.name, ...options } })),
    );
  }

  it('is its own: the handler fails one with an error, and ends another', async () => {
    const ids = await together([{}, { do: 'fail' }, {}, { do: 'discard' }, {}]);
    await settled([ids[0], ids[2], ids[4]] as string[]);
    expect(await server.jobIn(ids[1] as string, 'retryable')).toMatchObject({
      attempt: 1,
      error: { type: 'TypeError', message: 'as ordered' },
    });
    expect(await server.jobIn(ids[3] as string, 'discarded')).toMatchObject({ error: { message: 'not needed' } });
  });

  it('is what the handler throws, for all that it did not fail itself', async () => {
    const ids = await together([{}, { do: 'fail' }, { do: 'throw' }, { do: 'discard' }, {}]);
    for (const at of [0, 2, 4]) {
      expect(await server.jobIn(ids[at] as string, 'retryable')).toMatchObject({ error: { type: 'RangeError' } });
    }
    expect(await server.jobIn(ids[1] as string, 'retryable')).toMatchObject({ error: { type: 'TypeError' } });
    await server.jobIn(ids[3] as string, 'discarded');
  });

  it('is a failure that says why when the handler returns a list of another length', async () => {
    const ids = await together([{}, {}, {}, {}, { do: 'short' }]);
    for (const job of await settled(ids, 'retryable')) {
      expect(job.error).toMatchObject({
        type: 'tocsin.invalid_results',
        message:
          'A chunked handler returns a list with a result for each of its 5 jobs, or nothing; it returned a list of 0.',
      });
    }
  });

  it('is a failure that says why when the handler asks for a step', async () => {
    const ids = await together([{}, {}, {}, {}, { do: 'step' }]);
    for (const job of await settled(ids, 'retryable')) {
      expect(job.error).toMatchObject({ type: 'TypeError', message: expect.stringContaining('ctx.step') });
    }
  });

  it('is a success without a result when the handler returns nothing', async () => {
    const ids = await together([{}, {}, {}, {}, { do: 'nothing' }]);
    for (const job of await settled(ids)) expect(job).not.toHaveProperty('result');
  });

  it('is a timeout for all jobs when the shortest limit of them is over', async () => {
    clock.set(Date.now());
    const ids = await together([{}, {}, {}, {}, { do: 'hang' }], { retry: LATER, timeout_ms: 100 });
    for (const job of await settled(ids, 'retryable')) {
      expect(job.error).toMatchObject({ type: 'timeout', message: 'The jobs did not finish within 100 ms.' });
    }
  });
});

describe('a job of a chunked type', () => {
  it('travels alone, and at once, in its last attempt', async () => {
    const queue = await introduced();
    const others = await addAll(queue, 2);
    const [last] = await addAll(queue, 1, 'chunk.five', { retry: { max_attempts: 1 } });
    await server.jobIn(last as string, 'completed');
    expect(await callsWith([last as string, ...others])).toMatchObject([{ ids: [last] }]);
  });

  it('is gathered again for its second attempt', async () => {
    const queue = await introduced();
    const retry = { initial_interval: 'PT1S', jitter: false };
    const [failed] = await addAll(queue, 1, 'chunk.five', { retry }, [{ do: 'fail' }]);
    const ids = [failed as string, ...(await addAll(queue, 4))];
    await server.jobIn(failed as string, 'retryable');
    await settled(ids.slice(1));
    await queue.passTo(T0 + 2 * SECOND);
    const more = await addAll(queue, 4);
    await settled(more);
    expect(await callsWith(more)).toMatchObject([{ ids: [failed, ...more], attempts: [2, 1, 1, 1, 1] }]);
  });

  it('counts under its limits like any other: once a whole chunk waits, those start that have room', async () => {
    const queue = await introduced();
    const limited = { rate_limit: { key: `chunks-of-${queue.name}`, concurrency: 2 } };
    const ids = await addAll(queue, 4, 'chunk.five', limited);
    expect(await callsWith(ids)).toEqual([]);
    ids.push(...(await addAll(queue, 1, 'chunk.five', limited)));
    await settled(ids.slice(0, 2));
    expect(await callsWith(ids.slice(0, 2))).toMatchObject([{ ids: ids.slice(0, 2) }]);
    await queue.passTo(T0 + 5 * SECOND);
    await settled(ids.slice(0, 4));
    expect(await callsWith(ids.slice(2, 4))).toMatchObject([{ ids: ids.slice(2, 4) }]);
  });
});

describe('a job that waits for its chunk', () => {
  const why = async (id: unknown) => (await server.job(id)).waiting_for as Json | undefined;

  it('says so, and until when', async () => {
    const queue = await introduced();
    const [id] = await addAll(queue, 1);
    await queue.passTo(T0 + SECOND);
    await addAll(queue, 1);
    expect(await why(id)).toMatchObject({
      reason: 'chunk',
      since: iso(T0),
      until: iso(T0 + 5 * SECOND),
      detail: `Its handler takes many jobs in one call: 2 of 5 jobs wait. The call starts with these at ${iso(T0 + 5 * SECOND)}.`,
    });
  });

  it('names what keeps its chunk from starting once it is complete', async () => {
    const queue = await introduced({ concurrency: 1 });
    const gate = `why-${queue.name}`;
    const ids = await addAll(queue, 10, 'chunk.five', {}, [{ do: 'gate', gate }]);
    await until(async () => (await callsWith(ids)).length === 1, 'one call');
    expect(await why(ids[9])).toMatchObject({ reason: 'concurrency' });
    await handler('CHUNKS', `/open?gate=${gate}`);
    await settled(ids);
  });
});

describe('a chunk takes one slot', () => {
  it('of the concurrency of its queue', async () => {
    const queue = await introduced({ concurrency: 2 });
    const gate = `slots-${queue.name}`;
    const ids = await addAll(queue, 15, 'chunk.five', {}, [{ do: 'gate', gate }]);
    await until(async () => (await callsWith(ids)).length === 2, 'two calls');
    expect(await server.counts(queue.name)).toMatchObject({ active: 10, available: 5 });
    await handler('CHUNKS', `/open?gate=${gate}`);
    await settled(ids);
    expect(await callsWith(ids)).toHaveLength(3);
  });

  it('of the concurrency that its handler announces', async () => {
    const queue = await introduced();
    const gate = `type-${queue.name}`;
    const ids = await addAll(queue, 6, 'chunk.narrow', {}, [{ do: 'gate', gate }]);
    await until(async () => (await callsWith(ids)).length === 1, 'one call');
    expect(await server.counts(queue.name)).toMatchObject({ active: 2, available: 4 });
    await handler('CHUNKS', `/open?gate=${gate}`);
    await settled(ids);
    expect(await callsWith(ids)).toHaveLength(3);
  });
});

describe('a chunk in a strict order', () => {
  const strict = { groups: { order: 'strict' } };
  const inGroup = (queue: TestQueue, orders: object[], options: Json = {}) =>
    server.addAll(
      orders.map((order) => ({
        type: 'chunk.five',
        args: [order],
        options: { queue: queue.name, group: 'a', retry: LATER, ...options },
      })),
    );

  it('has the jobs of one group in their order, and runs alone in it', async () => {
    const queue = await introduced(strict);
    const gate = `strict-${queue.name}`;
    const ids = await inGroup(queue, [{}, {}, { do: 'gate', gate }, ...Array(9).fill({})]);
    const others = await inGroup(queue, [{}, {}], { group: 'b' });
    await until(async () => (await callsWith(ids)).length === 1, 'a call');
    await queue.passTo(T0 + 5 * SECOND);
    await settled(others);
    expect(await callsWith(ids)).toMatchObject([{ ids: ids.slice(0, 5) }]);
    await handler('CHUNKS', `/open?gate=${gate}`);
    await settled(ids);
    expect(await callsWith(ids)).toMatchObject([
      { ids: ids.slice(0, 5) },
      { ids: ids.slice(5, 10) },
      { ids: ids.slice(10) },
    ]);
  });

  it('ends before a job of another type, and starts at once then', async () => {
    const queue = await introduced(strict);
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/pause`);
    const first = await inGroup(queue, [{}, {}]);
    const [single] = await addAll(queue, 1, 'chunk.one', { group: 'a' });
    const last = await inGroup(queue, [{}]);
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/resume`);
    await settled([...first, single as string]);
    expect(await callsWith([...first, ...last])).toMatchObject([{ ids: first }]);
    await queue.passTo(T0 + 5 * SECOND);
    await settled(last);
  });

  it('gives back unused what fails after its first failure, in its place', async () => {
    const queue = await introduced(strict);
    const retry = { ...LATER, initial_interval: 'PT10S' };
    const ids = await inGroup(queue, [{}, { do: 'fail' }, {}, { do: 'fail' }, { do: 'discard' }], { retry });
    const later = await inGroup(queue, [{}], { retry });
    await settled([ids[0], ids[2]] as string[]);
    expect(await server.jobIn(ids[1] as string, 'retryable')).toMatchObject({ attempt: 1 });
    for (const at of [3, 4]) expect(await server.jobIn(ids[at] as string, 'available')).toMatchObject({ attempt: 0 });
    await queue.evict();
    await queue.passTo(T0 + 20 * SECOND);
    await until(async () => (await callsWith(ids)).length === 2, 'the second call');
    expect((await callsWith(ids))[1]).toMatchObject({
      ids: [ids[1], ids[3], ids[4], ...later],
      attempts: [2, 1, 1, 1],
    });
  });
});

describe('a chunk of a group with limits of its own', () => {
  it.each(['fair', 'strict'])(
    'has no more jobs than the rate of the group lets start, in a %s order',
    async (order) => {
      const queue = await introduced({ groups: { order, rate: { limit: 3, period: '1m' } } });
      const ids = await addAll(queue, 8, 'chunk.grouped', { group: 'a' });
      await queue.passTo(T0 + 5 * SECOND);
      await settled(ids.slice(0, 3));
      expect(await callsWith(ids)).toMatchObject([{ ids: ids.slice(0, 3) }]);
      await queue.passTo(T0 + 66 * SECOND);
      await settled(ids.slice(3, 6));
      expect((await callsWith(ids)).slice(1)).toMatchObject([{ ids: ids.slice(3, 6) }]);
    },
  );

  it('waits until an operator resumes the group', async () => {
    const queue = await introduced({ groups: { order: 'fair' } });
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/groups/a/pause`);
    const ids = await addAll(queue, 5, 'chunk.grouped', { group: 'a' });
    await queue.passTo(T0 + 10 * SECOND);
    expect(await callsWith(ids)).toEqual([]);
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue.name}/groups/a/resume`);
    await settled(ids);
    expect(await callsWith(ids)).toMatchObject([{ ids }]);
  });
});

describe('the wait of a chunk', () => {
  it('sets one alarm, however many jobs come meanwhile', async () => {
    const queue = await introduced();
    await queue.passTo(T0 + 60 * SECOND);
    await queue.inside(({ storage }) => {
      const { setAlarm } = storage;
      const spied = Object.assign(storage, { alarms: [] as number[] });
      storage.setAlarm = (time, options) => {
        spied.alarms.push(Number(time));
        return setAlarm.call(storage, time, options);
      };
    });
    const ids: string[] = [];
    for (let n = 0; n < 4; n++) ids.push(...(await addAll(queue, 1)));
    await queue.passTo(T0 + 65 * SECOND);
    await settled(ids);
    const { alarms } = await queue.inside(({ storage }) => ({
      alarms: (storage as unknown as { alarms: number[] }).alarms,
    }));
    const ofChunk = alarms.filter((at) => at > T0 + 61 * SECOND && at <= T0 + 65 * SECOND);
    expect(ofChunk).toEqual([T0 + 65 * SECOND]);
  });
});

describe('a chunk for a handler that does not announce it', () => {
  it('is sent to a plain Worker whose mapping says so', async () => {
    const queue = await introduced();
    const ids = await addAll(queue, 3, 'pack.rows');
    const jobs = await settled(ids);
    expect(jobs.map(({ result }) => result)).toEqual([3, 3, 3]);
  });

  it('is sent to a URL whose mapping says so, with jobs of one group', async () => {
    const queue = await introduced();
    const ids: string[] = [];
    for (const group of ['a', 'b', 'a', 'a']) ids.push(...(await addAll(queue, 1, 'web.chunk.row', { group })));
    const [a, b, ...rest] = ids as [string, string, ...string[]];
    for (const id of [a, ...rest]) await server.jobIn(id, 'completed');
    expect(await server.state(b)).toBe('available');
    await queue.passTo(T0 + 5 * SECOND);
    await server.jobIn(b, 'completed');
  });
});
