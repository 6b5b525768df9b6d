/** A dead letter that lives again in another queue: never lost and never there twice, whatever dies on the way. */

import { describe, expect, it, vi } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import { beginMove } from '../../../../src/queue/features/transfer/moves';
import { clock, T0, until } from '../../../support/clock';
import { failAlways, failOnce } from '../../../support/faults';
import { freshName, type Inside, TestQueue } from '../../../support/queue';
import { type RowCount, rowsWhile } from '../../../support/rows';
import { type Json, server } from '../../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };

const fetchJobs = (queue: string) => server.take(queue, { count: 50 });
const fetchIds = (queue: string) => server.takeIds(queue, { count: 50 });

/** A job that has failed for good in `queue`. */
async function dead(queue: string, change: Json = {}): Promise<string> {
  const { options, ...rest } = change;
  const id = await server.enqueue(queue, { ...rest, options: { retry: DEAD, ...(options as Json | undefined) } });
  expect(await fetchIds(queue)).toContain(id);
  await server.ok(200, 'PUT', `/ojs/v1/jobs/${id}/checkpoint`, { state: { page: 7 } });
  await server.nack(id, { error: { message: 'no relay' } });
  return id;
}

const retry = (id: string, override?: Json, prefix = '') =>
  server.call('POST', `/ojs/v1${prefix}/dead-letter/${id}/retry`, override && { override });
const counts = (name: string) => new TestQueue(name).counts();
const openMoves = (queue: string) => new TestQueue(queue).inside(({ q }) => q.store.outbox.count('move'));

const names = () => {
  const from = freshName('from');
  return { from, to: `${from}-to` };
};

/** Fires the alarms of `queue` until nothing is on its way from there. */
async function carriedThrough(queue: string): Promise<void> {
  await until(async () => {
    await new TestQueue(queue).alarm();
    return (await openMoves(queue)) === 0;
  }, `the moves of ${queue} to be carried through`);
}

describe('a dead letter retried into another queue', () => {
  it.each(['', '/admin'])('lives again there, with its id, errors and checkpoint (%s)', async (prefix) => {
    const { from, to } = names();
    const id = await dead(from, { args: [1], meta: { relay: 'main', tries: 1 }, options: { priority: 4 } });
    const answer = await retry(id, { queue: to, meta: { relay: 'backup' }, retry: { max_attempts: 7 } }, prefix);
    expect(answer, JSON.stringify(answer.body)).toMatchObject({
      status: 200,
      body: { job: { id, queue: to, state: 'available', attempt: 0, priority: 4, errors: [{ message: 'no relay' }] } },
    });
    expect(await server.job(id)).toMatchObject({
      id,
      queue: to,
      state: 'available',
      attempt: 0,
      args: [1],
      meta: { relay: 'backup', tries: 1 },
      max_attempts: 7,
    });
    expect((await server.job(id)).error).toBeUndefined();
    expect(await counts(from)).toEqual({});
    expect(await counts(to)).toEqual({ available: 1 });
    expect(await server.ok(200, 'GET', `/ojs/v1/jobs/${id}/checkpoint`)).toMatchObject({
      state: { page: 7 },
      sequence: 1,
    });
    expect((await server.call('GET', `/ojs/v1/dead-letter/${id}`)).status).toBe(404);
    expect(await fetchJobs(to)).toMatchObject([{ id, attempt: 1 }]);
    await server.ack(id);
    expect(await server.job(id)).toMatchObject({ state: 'completed', queue: to });
  });

  it('may die there again and come back', async () => {
    const { from, to } = names();
    const id = await dead(from);
    for (const [here, there] of [
      [from, to],
      [to, from],
      [from, to],
    ] as const) {
      expect((await retry(id, { queue: there })).status).toBe(200);
      expect(await counts(here)).toEqual({});
      expect(await fetchIds(there)).toEqual([id]);
      await server.nack(id, { error: { message: 'no relay' } });
      expect(await server.job(id)).toMatchObject({ state: 'discarded', queue: there });
    }
    expect((await server.job(id)).errors).toHaveLength(4);
    await server.ok(200, 'DELETE', `/ojs/v1/dead-letter/${id}`);
    expect(await new TestQueue(to).rows('SELECT * FROM aliases')).toEqual([]);
  });

  it('stays where it is when its own queue is named', async () => {
    const { from } = names();
    const id = await dead(from);
    expect((await retry(id, { queue: from })).body.job).toMatchObject({ id, queue: from, state: 'available' });
    expect(await fetchIds(from)).toEqual([id]);
  });

  it('is not refused as a duplicate, and stands in the way of later ones there', async () => {
    const { from, to } = names();
    const unique = { keys: ['type', 'args'], states: ['available', 'active'] };
    const id = await dead(from, { type: 'a.b', args: [5], options: { unique } });
    expect((await retry(id, { queue: to })).status).toBe(200);
    const again = { type: 'a.b', args: [5], options: { queue: to, unique } };
    expect(await server.call('POST', '/ojs/v1/jobs', again)).toMatchObject({
      status: 409,
      body: { error: { code: 'duplicate', details: { existing_job_id: id } } },
    });
    expect(await new TestQueue(from).rows('SELECT key FROM unique_keys')).toEqual([]);
  });

  it('costs a handful of rows in either queue', async () => {
    const { from, to } = names();
    await server.enqueue(from);
    await server.enqueue(to, { options: { delay_until: '+PT1S' } });
    const id = await dead(from);
    let target: RowCount | undefined;
    const source = await rowsWhile(new TestQueue(from).stub, async () => {
      target = await rowsWhile(new TestQueue(to).stub, () => retry(id, { queue: to }));
    });
    // The decision, written and deleted; the job with its index entry; its checkpoint; at most the mark of the sequence.
    expect(source.written - source.alarms).toBeLessThanOrEqual(6);
    // The job with its index entry; its id; its checkpoint; what is remembered, with its index entry.
    expect(target && target.written - target.alarms).toBe(6);
  });
});

describe('a queue that is not willing', () => {
  /** What must be as it was. */
  async function untouched(id: string, from: string): Promise<void> {
    expect(await server.job(id)).toMatchObject({ state: 'discarded', queue: from, error: { message: 'no relay' } });
    expect((await server.call('GET', `/ojs/v1/dead-letter/${id}`)).status).toBe(200);
    expect(await openMoves(from)).toBe(0);
  }

  it.each<[string, (to: string) => Promise<unknown>, number, string]>([
    ['draining', (to) => server.setMode(to, 'drain'), 409, 'conflict'],
    ['of other types', (to) => server.configure(to, { allowed_job_types: ['x.*'] }), 400, 'invalid_request'],
    [
      'full',
      async (to) => {
        await server.configure(to, { max_size: 1 });
        await server.enqueue(to);
      },
      429,
      'QUEUE_FULL',
    ],
  ])('because it is %s refuses, and nothing has changed', async (_, prepare, status, code) => {
    const { from, to } = names();
    const id = await dead(from);
    await prepare(to);
    const before = await counts(to);
    expect(await retry(id, { queue: to, meta: { a: 1 } })).toMatchObject({ status, body: { error: { code } } });
    await untouched(id, from);
    expect(await counts(to)).toEqual(before);
    expect((await retry(id)).body.job).toMatchObject({ queue: from, meta: {} });
  });

  it('because it is being deleted refuses', async () => {
    const { from, to } = names();
    const id = await dead(from);
    await server.enqueue(to);
    await fetchIds(to);
    await server.call('DELETE', `/ojs/v1/queues/${to}`, { strategy: 'move', target_queue: `${to}-2` });
    expect((await retry(id, { queue: to })).status).toBe(409);
    await untouched(id, from);
  });

  it('because it has a job with this id refuses', async () => {
    const { from, to } = names();
    const chosen = '01962222-bbbb-7ccc-8ddd-eeeeeeee0021';
    const id = await dead(from, { id: chosen });
    await new TestQueue(to).add({ id: chosen });
    expect(await retry(id, { queue: to })).toMatchObject({ status: 409, body: { error: { code: 'duplicate' } } });
    await untouched(id, from);
    expect(await counts(to)).toEqual({ available: 1 });
  });

  it.each<[Json, number, string]>([
    [{ queue: 'No' }, 400, 'override.queue'],
    [{ queue: '_default' }, 400, 'override.queue'],
    [{ queue: 'elsewhere', args: [] }, 422, 'override.args'],
  ])('or cannot be one: %j is refused', async (override, status, field) => {
    const { from } = names();
    const id = await dead(from);
    expect(await retry(id, override)).toMatchObject({ status, body: { error: { details: { field } } } });
    await untouched(id, from);
    expect(await server.queues()).toEqual([from]);
  });

  it.each([undefined, 'elsewhere'])(
    'or takes no more meta than a job may have, in all its lives: into %s',
    async (queue) => {
      const { from } = names();
      const id = await dead(from);
      const part = (name: string) => ({ meta: { [name]: 'é'.repeat(20_000) } });
      expect(await retry(id, part('first'))).toMatchObject({ status: 200 });
      for (const job of await new TestQueue(from).claim({ count: 1 })) {
        await new TestQueue(from).nack(job.id, { message: 'failed', retryable: false });
      }
      expect(await server.state(id)).toBe('discarded');
      const answer = await retry(id, { ...part('second'), ...(queue && { queue }) });
      expect(answer).toMatchObject({ status: 413, body: { error: { details: { field: 'override.meta' } } } });
      expect(await server.state(id)).toBe('discarded');
      expect(await server.queues()).toEqual([from]);
    },
  );

  it.each([{ max_attempts: -1 }, { backoff_coefficient: 0.1 }])(
    'is not created for a retry policy that cannot be: %j',
    async (policy) => {
      const { from, to } = names();
      const id = await dead(from);
      expect((await retry(id, { queue: to, retry: policy })).status).toBe(422);
      await untouched(id, from);
      expect(await server.queues()).toEqual([from]);
    },
  );

  it('is not created for a type that the settings of all queues do not allow', async () => {
    const { from, to } = names();
    const id = await dead(from);
    await server.configure('_default', { allowed_job_types: ['x.*'] });
    expect((await retry(id, { queue: to })).status).toBe(400);
    await untouched(id, from);
    expect(await server.queues()).toEqual([from]);
  });

  it('that refuses only when it is asked for good leaves the dead letter as it was', async () => {
    const { from, to } = names();
    const id = await dead(from);
    const source = new TestQueue(from);
    await server.setMode(to, 'drain');
    await decided(source, id, to);
    await carriedThrough(from);
    await untouched(id, from);
    // A message of the refused decision that comes late changes nothing either.
    await server.setMode(to, 'resume');
    const late = await new TestQueue(to).api.adoptMoved('decision', { ...EMPTY, id });
    expect(unwrap(late)).toHaveProperty('refused');
    expect(await counts(to)).toEqual({});
    expect((await retry(id, { queue: to })).status).toBe(200);
    expect(await fetchIds(to)).toEqual([id]);
  });

  it('is not supported for many dead letters at once', async () => {
    for (const path of ['/ojs/v1/dead-letter/retry', '/ojs/v1/admin/dead-letter/retry']) {
      const answer = await server.call('POST', path, { confirm: true, filter: {}, override: { queue: 'other' } });
      expect(answer).toMatchObject({
        status: 422,
        body: { error: { code: 'unsupported', details: { field: 'override.queue' } } },
      });
    }
  });
});

const EMPTY = {
  pending: false,
  type: 'test.echo',
  priority: 0,
  due_at: 0,
  attempt: 0,
  claims: 1,
  created_at: 0,
  enqueued_at: 0,
  expires_at: null,
  body: '{"type":"test.echo","args":[],"meta":{}}',
  history: null,
};

/** The decision is written, and whoever made it is gone. */
async function decided(source: TestQueue, id: string, target: string): Promise<void> {
  await source.inside(({ engine, q }) =>
    engine.writeNow((now) => beginMove(q, id, { target, override: {} }, 'decision', now)),
  );
  await source.evict();
}

describe('a move that is cut off', () => {
  /** Whatever happened: the job is in the target, once, and nowhere else. */
  async function arrivedOnce(id: string, from: string, to: string): Promise<void> {
    await carriedThrough(from);
    expect(await counts(from)).toEqual({});
    expect(await counts(to)).toEqual({ available: 1 });
    expect(await server.job(id)).toMatchObject({ queue: to, state: 'available', attempt: 0 });
    expect(await new TestQueue(to).claimAll()).toEqual([id]);
    expect(await new TestQueue(from).claimAll()).toEqual([]);
    expect(await new TestQueue(from).rows("SELECT address FROM outbox WHERE kind = 'move'")).toEqual([]);
  }

  it('before the decision is on disk has not begun', async () => {
    const { from, to } = names();
    const id = await dead(from);
    await new TestQueue(from).inside(({ sql }) => failOnce(sql, /INSERT OR REPLACE INTO outbox/));
    expect((await retry(id, { queue: to })).status).toBe(500);
    expect(await server.job(id)).toMatchObject({ queue: from, state: 'discarded' });
    expect(await openMoves(from)).toBe(0);
    expect((await retry(id, { queue: to })).status).toBe(200);
    await arrivedOnce(id, from, to);
  });

  it('after the decision is carried through by the alarm', async () => {
    const { from, to } = names();
    const id = await dead(from);
    const source = new TestQueue(from);
    await decided(source, id, to);
    expect(await source.armedAt()).not.toBeNull();
    await arrivedOnce(id, from, to);
  });

  it.each([/INSERT INTO jobs/, /INSERT OR REPLACE INTO aliases/, /INSERT INTO inbox/])(
    'while the target takes the job, at %s, is answered 503 and arrives by itself',
    async (statement) => {
      const { from, to } = names();
      const id = await dead(from);
      await server.setMode(to, 'resume');
      const heal = await new TestQueue(to).inside(({ sql }) => failAlways(sql, statement));
      expect((await retry(id, { queue: to })).status).toBe(503);
      expect(await counts(to)).toEqual({});
      expect(await server.job(id)).toMatchObject({ queue: from, state: 'discarded' });
      heal();
      await arrivedOnce(id, from, to);
    },
  );

  it.each([/DELETE FROM jobs/, /DELETE FROM outbox/])(
    'after the target has the job, at %s, takes it from here once',
    async (statement) => {
      const { from, to } = names();
      const id = await dead(from);
      const source = new TestQueue(from);
      await source.inside(({ sql }) => failOnce(sql, statement));
      expect((await retry(id, { queue: to })).status).toBe(503);
      await source.evict();
      await arrivedOnce(id, from, to);
    },
  );

  it('by the loss of the answer takes nothing twice, even when the target takes no jobs any more', async () => {
    const { from, to } = names();
    const id = await dead(from);
    const source = new TestQueue(from);
    await source.inside(loseAnswer);
    expect((await retry(id, { queue: to })).status).toBe(503);
    expect(await counts(to)).toEqual({ available: 1 });
    await server.setMode(to, 'drain');
    await source.evict();
    await arrivedOnce(id, from, to);
  });

  it('leaves the dead letter readable, and to no other decision', async () => {
    const { from, to } = names();
    const id = await dead(from);
    await new TestQueue(from).inside(loseAnswer);
    await retry(id, { queue: to });
    expect(await server.job(id)).toMatchObject({ queue: from, state: 'discarded' });
    for (const [method, path, body] of [
      ['POST', `/ojs/v1/dead-letter/${id}/retry`],
      ['POST', `/ojs/v1/admin/jobs/${id}/retry`],
      ['POST', `/ojs/v1/dead-letter/${id}/retry`, { override: { queue: `${to}-2` } }],
      ['POST', `/ojs/v1/dead-letter/${id}/retry`, { override: { queue: to, meta: { a: 1 } } }],
      ['DELETE', `/ojs/v1/dead-letter/${id}`],
    ] as [string, string, Json?][]) {
      expect([path, body, (await server.call(method, path, body)).status]).toEqual([path, body, 409]);
    }
    const filter = { queue: from };
    expect(await server.ok(200, 'POST', '/ojs/v1/dead-letter/retry', { filter, confirm: true })).toMatchObject({
      succeeded: 0,
      failed: 1,
    });
    expect(await server.ok(200, 'DELETE', '/ojs/v1/dead-letter', { filter, confirm: true })).toMatchObject({
      succeeded: 0,
    });
    expect(await counts(from)).toEqual({ discarded: 1 });
    // The runner that has it there already is heard there.
    expect(await fetchIds(to)).toEqual([id]);
    expect((await server.call('PUT', `/ojs/v1/jobs/${id}/checkpoint`, { state: 8 })).status).toBe(200);
    expect((await server.call('POST', '/ojs/v1/workers/ack', { job_id: id, attempt: 1 })).status).toBe(200);
    // The same decision once more completes it.
    await new TestQueue(from).evict();
    expect((await retry(id, { queue: to })).body.job).toMatchObject({ id, queue: to, state: 'completed' });
    expect(await openMoves(from)).toBe(0);
    expect(await server.job(id)).toMatchObject({ queue: to, state: 'completed' });
    expect(await counts(from)).toEqual({});
  });

  it('outlives the retention of the dead letter without keeping the alarm busy', async () => {
    const { from, to } = names();
    // No alarm fires by itself.
    clock.set(T0);
    const id = await dead(from);
    const source = new TestQueue(from);
    await source.inside(({ engine }) => breakPeer(engine, () => Promise.reject(new Error('out of reach'))));
    await retry(id, { queue: to });
    await server.configure(from, { dead_letter: { retention: { max_age: 'PT0S' } } });
    for (let n = 0; n < 3; n++) await source.alarm();
    expect(await source.armedAt()).toBe(T0 + 1_000);
    expect(await counts(from)).toEqual({ discarded: 1 });
    clock.set(T0 + 5_000);
    await source.evict();
    await arrivedOnce(id, from, to);
  });

  it('holds up the deletion of its queue, and begins in none that is being deleted', async () => {
    const { from, to } = names();
    const [id, other] = [await dead(from), await dead(from)];
    const source = new TestQueue(from);
    await source.inside(loseAnswer);
    await retry(id, { queue: to });
    const removal = await server.call('DELETE', `/ojs/v1/queues/${from}`, {});
    expect(removal.body).toMatchObject({ state: 'deleting' });
    expect((await retry(other as string, { queue: to })).status).toBe(409);
    await source.evict();
    await until(async () => {
      await source.alarm();
      return !(await server.queues()).includes(from);
    }, 'the queue to be gone');
    expect(await new TestQueue(to).claimAll()).toEqual([id]);
  });
});

type Engine = Inside['engine'];
type Call = (...args: unknown[]) => Promise<unknown>;
type Peer = (queue: string) => { adoptMoved: Call; considerMoved: Call };

/** Puts something else in the place of what the next target answers. */
function breakPeer(engine: Engine, answer: (real: () => Promise<unknown>) => Promise<unknown>): void {
  const { others } = (engine as unknown as { host: { others: { queue: Peer } } }).host;
  const { queue: peer } = others;
  vi.spyOn(others, 'queue').mockImplementation((queue) => ({
    adoptMoved: (...args) => answer(() => peer(queue).adoptMoved(...args)),
    considerMoved: (...args) => peer(queue).considerMoved(...args),
  }));
}

/** The target answers, and nobody hears it. */
const loseAnswer = ({ engine }: Inside): void =>
  breakPeer(engine, async (real) => {
    await real();
    throw new Error('the answer was lost');
  });
