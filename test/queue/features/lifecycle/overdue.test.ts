/** Very many jobs whose time is over at once: ended in bounded turns, and seen by nobody as if it were not over. */
import { describe, expect, it } from 'vitest';
import { SIZES } from '../../../../src/queue/store/sizes';
import { clock, T0 } from '../../../support/clock';
import { freshName, type JobChange, refusal, steady, TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';

clock.startAtT0();

const MINUTE = 60_000;

/** Half of a turn: others follow. */
const ENDED_PER_TURN = SIZES.turnChanges / 2;
const MANY = 10 * ENDED_PER_TURN;

/** An alarm makes a few transactions; each job writes its row and some entries of indexes. */
const ROWS_PER_TURN = 1_830;

const many = (change: JobChange): JobChange[] => Array<JobChange>(MANY).fill(change);

/** Rings the alarm until it stands for later. @returns the rows that each turn wrote */
async function turns(queue: TestQueue): Promise<number[]> {
  const written: number[] = [];
  await queue.startCounting();
  for (let at = await queue.armedAt(); at !== null && at <= Date.now() + 100; at = await queue.armedAt()) {
    await queue.alarm();
    written.push((await queue.counted()).written);
    if (written.length > 100) throw new Error('the alarm does not come to an end');
  }
  return written;
}

describe('jobs that expire together', () => {
  async function expired(change: JobChange = {}): Promise<{ queue: TestQueue; ids: string[] }> {
    const queue = new TestQueue();
    const jobs = await queue.enqueue(...many({ expiresAt: T0 + MINUTE, ...change }), { type: 'last' });
    clock.set(T0 + MINUTE);
    return { queue, ids: jobs.map(({ id }) => id) };
  }

  it('are discarded in turns of bounded size, until all are', async () => {
    const { queue } = await expired();
    const written = await turns(queue);
    expect(written.length).toBeGreaterThan(2);
    expect(Math.max(...written)).toBeLessThanOrEqual(ROWS_PER_TURN);
    expect(await queue.rows('SELECT key FROM jobs WHERE ended_at IS NULL')).toHaveLength(0);
    expect(await queue.counts()).toEqual({ discarded: MANY, available: 1 });
  });

  it('are read as discarded before their turn has come', async () => {
    const { queue, ids } = await expired();
    const last = ids.at(-2) as string;
    expect(await queue.get(last)).toMatchObject({ state: 'discarded', history: { reason: 'expired' } });
    const open = await queue.rows('SELECT key FROM jobs WHERE ended_at IS NULL');
    expect(open.length).toBeGreaterThan(ENDED_PER_TURN);
    const middle = ids[MANY - 100] as string;
    expect(refusal(await queue.api.cancel(middle))).toMatchObject({
      status: 409,
      details: { current_state: 'discarded' },
    });
  });

  it('are counted and listed as discarded before their turn has come', async () => {
    const { queue } = await expired();
    expect(await queue.counts()).toEqual({ discarded: MANY, available: 1 });
    const { queue: other } = await expired();
    expect((await other.listAll()).filter(({ state }) => state !== 'discarded')).toHaveLength(1);
  });

  it('are never claimed, and do not block the jobs behind them', async () => {
    const { queue } = await expired();
    await queue.startCounting();
    expect((await queue.claim({ count: 10 })).map(({ type }) => type)).toEqual(['last']);
    expect((await queue.counted()).written).toBeLessThanOrEqual(ROWS_PER_TURN);
  });

  it('leave their room to others', async () => {
    const queue = new TestQueue(freshName('bounded'));
    await queue.inside(() => undefined);
    await queue.api.configure({ max_depth: MANY });
    await queue.enqueue(...many({ expiresAt: T0 + MINUTE }));
    clock.set(T0 + MINUTE);
    const newcomers = many({ type: 'new' }).slice(0, MANY / 2);
    expect(await queue.enqueue(...newcomers)).toHaveLength(MANY / 2);
    const again = many({ type: 'new' }).slice(0, MANY / 2 + 1);
    const refused = await queue.api.enqueue([]).then(() => queue.enqueue(...again).catch((error) => error));
    expect(refused).toMatchObject({ data: { status: 429, code: 'QUEUE_FULL' } });
    expect(await queue.counts()).toEqual({ available: MANY / 2, discarded: MANY });
  });

  it('are left to run when they started in time', async () => {
    const queue = new TestQueue();
    await queue.enqueue(...many({ expiresAt: T0 + MINUTE }));
    const claimed: string[] = [];
    while (claimed.length < MANY - 150) claimed.push(...(await queue.claim({ count: 100 })).map(({ id }) => id));
    clock.set(T0 + MINUTE);
    await turns(queue);
    const waiting = MANY - claimed.length;
    expect(await queue.counts()).toEqual({ active: claimed.length, discarded: waiting });
    await queue.nack(claimed[0] as string, { message: 'late' }, { requeue: true });
    expect(await queue.state(claimed[0] as string)).toBe('discarded');
  });
});

describe('leases that end together', () => {
  /** @returns the ids of jobs whose leases have ended, in the order of their claims */
  async function lapsed(attempts: number): Promise<{ queue: TestQueue; ids: string[] }> {
    const queue = new TestQueue();
    await queue.enqueue(...many({ retry: steady(attempts) }));
    const ids: string[] = [];
    while (ids.length < MANY) {
      const jobs = await queue.claim({ count: 100, visibility_timeout_ms: MINUTE, worker_id: 'w' });
      ids.push(...jobs.map(({ id }) => id));
    }
    clock.set(T0 + MINUTE);
    return { queue, ids };
  }

  it('are ended in turns of bounded size, until all are', async () => {
    const { queue } = await lapsed(3);
    const written = await turns(queue);
    expect(written.length).toBeGreaterThan(2);
    expect(Math.max(...written)).toBeLessThanOrEqual(ROWS_PER_TURN);
    expect(await queue.counts()).toEqual({ available: MANY });
  });

  it('are over for a report that comes before their turn', async () => {
    const { queue, ids } = await lapsed(3);
    for (const [place, act] of [
      [1, (id: string) => queue.api.settle({ kind: 'completed', job_id: id })],
      [2, (id: string) => queue.api.settle({ kind: 'failed', job_id: id, error: { message: 'late' } })],
    ] as const) {
      const id = ids.at(-place) as string;
      expect(refusal(await act(id)), `report ${place}`).toMatchObject({ status: 409 });
      expect(await queue.get(id)).toMatchObject({ state: 'available', attempt: 1 });
    }
    const beat = await queue.api.heartbeat({ worker_id: 'w', job_ids: [ids.at(-4) as string] });
    expect(beat).toMatchObject({ ok: true, value: { extended: [], lost: [expect.any(String)] } });
    expect((await queue.rows('SELECT key FROM jobs WHERE claims > 0')).length).toBeLessThan(MANY);
  });

  it('are over for who holds them, and who asks for all of theirs', async () => {
    const { queue } = await lapsed(3);
    expect(await queue.api.leasedBy('w')).toEqual([]);
    expect(await queue.counts()).toEqual({ available: MANY });
  });

  it('end their jobs for who counts, where no attempts are left', async () => {
    const { queue, ids } = await lapsed(1);
    expect(await queue.get(ids.at(-1) as string)).toMatchObject({ state: 'discarded' });
    expect(await queue.counts()).toEqual({ discarded: MANY });
  });

  it('are ended to the last although the object dies after each turn', async () => {
    const { queue } = await lapsed(1);
    for (let turn = 0; turn < MANY / ENDED_PER_TURN + 1; turn++) {
      await queue.evict();
      await queue.alarm();
    }
    expect(await queue.rows('SELECT key FROM jobs WHERE ended_at IS NULL')).toHaveLength(0);
  });
});

describe('dead letters beyond their bound', () => {
  const bound = (queue: TestQueue, max_count: number) => queue.api.configure({ dead_letter: { max_count } });
  const dies = { retry: { ...steady(1), on_exhaustion: 'dead_letter' as const } };
  const events = async (queue: TestQueue, type: string) =>
    (await queue.api.events({ types: [type], limit: 1000 })).map(({ data }) => data);

  async function withDeadLetters(count: number): Promise<TestQueue> {
    const queue = new TestQueue();
    await queue.enqueue(...Array<JobChange>(count).fill(dies));
    await queue.claimAll({ visibility_timeout_ms: MINUTE });
    clock.set(Date.now() + MINUTE);
    expect((await queue.stats()).dead).toBe(count);
    return queue;
  }

  it('are removed in turns of bounded size when the bound is lowered, and an event says so', async () => {
    const queue = await withDeadLetters(1_200);
    await bound(queue, 10);
    const written = await turns(queue);
    expect(written.length).toBeGreaterThan(2);
    expect(Math.max(...written)).toBeLessThanOrEqual(1_100);
    expect((await queue.stats()).dead).toBe(10);
    const told = await events(queue, 'queue.dead_letters_evicted');
    expect(told.reduce((sum, { evicted }) => sum + (evicted as number), 0)).toBe(1_190);
    expect(told[0]).toMatchObject({ max_count: 10 });
  });

  it('are removed to the last although the object dies in between', async () => {
    const queue = await withDeadLetters(1_100);
    await bound(queue, 0);
    for (let turn = 0; turn < 5; turn++) {
      await queue.evict();
      await queue.alarm();
    }
    expect((await queue.stats()).dead).toBe(0);
  });

  it('go one by one as new ones come, and an event says so', async () => {
    const queue = await withDeadLetters(3);
    await bound(queue, 3);
    const [first] = await queue.enqueue(dies);
    await queue.claim();
    await queue.nack(first?.id as string);
    expect((await queue.stats()).dead).toBe(3);
    expect(await queue.state(first?.id as string)).toBe('discarded');
    expect(await events(queue, 'queue.dead_letters_evicted')).toEqual([{ evicted: 1, max_count: 3 }]);
  });

  it('are not kept at all where the bound is 0: the answer and the event are those of any other', async () => {
    const name = freshName('none');
    await server.configure(name, { dead_letter: { retention: { max_count: 0 } } });
    const queue = new TestQueue(name);
    const id = await queue.add(dies);
    await queue.claim();
    const answer = await server.call('POST', '/ojs/v1/workers/nack', {
      job_id: id,
      error: { message: 'no', code: 'x' },
    });
    expect(answer).toMatchObject({ status: 200, body: { job: { id, state: 'discarded', attempt: 1 } } });
    expect(await queue.state(id)).toBe('404');
    expect((await queue.stats()).dead).toBe(0);
    expect(await events(queue, 'job.discarded')).toMatchObject([
      { attempt: 1, dead_letter: true, duration_ms: 0, error: { code: 'x', message: 'no' } },
    ]);
  });
});
