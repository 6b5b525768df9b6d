import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { parseJob, withFingerprint } from '../../../src/job/envelope/parse';
import { unwrap } from '../../../src/job/errors';
import type { NewJob } from '../../../src/job/record';
import type { Reservation, UniqueLockApi, Wanted } from '../../../src/rpc/locks';
import { shardOf } from '../../../src/rpc/locks';
import { unpackReceipt } from '../../../src/rpc/receipts';
import { queueObject } from '../../../src/rpc/stubs';
import { clock, until } from '../../support/clock';
import { failAlways } from '../../support/faults';
import { TestQueue } from '../../support/queue';
import { server } from '../../support/server';
import { enqueued, post, refusedFor } from './jobs';

server.emptyBeforeEach();

const unique = { key: 'one' };

/** The same job as the other tests send, as an enqueue under way has it. */
async function newJob(): Promise<NewJob & { unique: NonNullable<NewJob['unique']> }> {
  const { job } = await withFingerprint(parseJob({ type: 'sync.user', args: [], unique }, { now: Date.now() }));
  if (!job.unique) throw new Error('The job is not unique.');
  return { ...job, unique: job.unique };
}

const stubOf = (fingerprint: string) => env.UNIQUE_LOCKS.getByName(shardOf(fingerprint));

/** Begins an enqueue and stops there, as a Worker does that dies. */
async function begin(queue: string, times: { ttl_ms?: number; wait_ms?: number; coordinator?: string } = {}) {
  const job = await newJob();
  const { fingerprint } = job.unique;
  const lock = stubOf(fingerprint) as unknown as UniqueLockApi;
  const ticket = uuidv7();
  const { ttl_ms = 30_000, wait_ms = 1_000, coordinator = queue } = times;
  const reserving = lock.reserve({
    ticket,
    coordinator,
    wanted: [{ fingerprint, queue }],
    ttl_ms,
    wait_ms,
    peek: false,
  });
  const release = (vacant: Wanted[] = []) => lock.release({ ticket, known: true, decided: [], vacant });
  return { job, ticket, outcome: await reserving, release };
}

async function evictLock(): Promise<void> {
  await evictDurableObject(stubOf((await newJob()).unique.fingerprint));
}

/** Queues that the lock object names for the fingerprint. */
async function namedQueues(): Promise<string[]> {
  const { fingerprint } = (await newJob()).unique;
  return runInDurableObject(stubOf(fingerprint), (_, { storage }) =>
    storage.sql
      .exec<{ queue: string }>('SELECT queue FROM holders WHERE fingerprint = ? ORDER BY queue', fingerprint)
      .toArray()
      .map(({ queue }) => queue),
  );
}

describe('an enqueue that dies', () => {
  it('before its job was on the way blocks no longer than its reservation; what arrives late is refused', async () => {
    const { job, ticket } = await begin('a', { ttl_ms: 50 });
    const id = await enqueued('b', unique);
    const late = await queueObject(env, 'a').enqueue([job], ticket);
    expect(late).toMatchObject({ ok: false, error: { status: 503, retryable: true } });
    expect(await post('a', unique)).toMatchObject(refusedFor(id));
    expect(await server.counts('a')).toMatchObject({ available: 0 });
  });

  it('after its job arrived leaves a job that counts', async () => {
    const { job, ticket } = await begin('a', { ttl_ms: 50 });
    const [made] = unpackReceipt(unwrap(await queueObject(env, 'a').enqueue([job], ticket))).jobs;
    expect(await post('b', unique)).toMatchObject(refusedFor(made?.record.id));
  });

  it('cancels what it replaces in another queue with its decision, and not before', async () => {
    const replaced = { id: await enqueued('b', unique), queue: 'b' };
    const stateOfReplaced = async () => (await server.job(replaced.id)).state;
    const abandoned = await begin('a', { ttl_ms: 50 });
    unwrap(await queueObject(env, 'a').prepareBatch(abandoned.ticket, 'a', [abandoned.job]));
    await queueObject(env, 'a').giveUpBatch(abandoned.ticket);
    const refused = await queueObject(env, 'a').decideBatch(abandoned.ticket, [], undefined, [replaced]);
    expect(refused).toMatchObject({ ok: false, error: { status: 503 } });
    expect(await stateOfReplaced()).toBe('available');
    await abandoned.release();
    // Its caller dies when it has decided.
    const { job, ticket } = await begin('a', { ttl_ms: 50 });
    unwrap(await queueObject(env, 'a').prepareBatch(ticket, 'a', [job]));
    unwrap(await queueObject(env, 'a').decideBatch(ticket, [], undefined, [replaced]));
    await until(async () => (await stateOfReplaced()) === 'cancelled', 'its cancellation');
    expect(await server.counts('a')).toMatchObject({ available: 1 });
  });

  it('has nothing run beside what it replaces: new jobs stay hidden until that has ended', async () => {
    const replaced = { id: await enqueued('b', unique), queue: 'b' };
    const { job, ticket } = await begin('a', { coordinator: 'c' });
    unwrap(await queueObject(env, 'c').prepareBatch(ticket, 'c', []));
    const [made] = unwrap(await queueObject(env, 'a').prepareBatch(ticket, 'c', [job])).jobs;
    const works = await new TestQueue('b').inside(({ sql }) => failAlways(sql, /^\s*(UPDATE|INSERT)/));
    const told = { ok: false, error: { status: 503, retryable: true } };
    expect(await queueObject(env, 'c').decideBatch(ticket, ['a'], undefined, [replaced])).toMatchObject(told);
    // Neither those that give up nor those that ask what was decided change anything.
    expect(await queueObject(env, 'c').giveUpBatch(ticket)).toMatchObject(told);
    expect(await queueObject(env, 'c').batchDecision(ticket)).toMatchObject(told);
    expect(await server.counts('a')).toMatchObject({ available: 0 });
    expect(await server.job(replaced.id)).toMatchObject({ state: 'available' });
    works();
    await clock.ring(new TestQueue('c').stub);
    await until(async () => (await server.counts('a')).available === 1, 'the new job');
    expect(await server.job(replaced.id)).toMatchObject({ state: 'cancelled' });
    expect(await server.job(made?.record.id)).toMatchObject({ state: 'available' });
  });

  it('between preparing and deciding leaves no job, and cannot decide any more', async () => {
    const { job, ticket } = await begin('a', { ttl_ms: 50 });
    unwrap(await queueObject(env, 'a').prepareBatch(ticket, 'a', [job]));
    const id = await enqueued('a', unique);
    expect(await queueObject(env, 'a').decideBatch(ticket, [])).toMatchObject({
      ok: false,
      error: { status: 503 },
    });
    expect(await server.counts('a')).toMatchObject({ available: 1 });
    expect(await post('b', unique)).toMatchObject(refusedFor(id));
  });

  it('between deciding and telling the others leaves the job, also for them', async () => {
    const { job, ticket } = await begin('a', { ttl_ms: 50, coordinator: 'c' });
    unwrap(await queueObject(env, 'c').prepareBatch(ticket, 'c', []));
    const [made] = unwrap(await queueObject(env, 'a').prepareBatch(ticket, 'c', [job])).jobs;
    unwrap(await queueObject(env, 'c').decideBatch(ticket, ['a']));
    expect(await post('b', unique)).toMatchObject(refusedFor(made?.record.id));
    expect(await server.job(made?.record.id)).toMatchObject({ state: 'available' });
  });

  it('twice in a row is remembered twice: neither job may arrive late', async () => {
    const first = await begin('a', { ttl_ms: 30 });
    const second = await begin('a', { ttl_ms: 30 });
    expect(second.outcome).toMatchObject({ ok: true, value: { open: [{ ticket: first.ticket }] } });
    const id = await enqueued('b', unique);
    for (const { job, ticket } of [first, second]) {
      expect(await queueObject(env, 'a').enqueue([job], ticket)).toMatchObject({ ok: false });
    }
    expect(await post('a', unique)).toMatchObject(refusedFor(id));
  });
});

describe('a lock object that is evicted', () => {
  it('between reservation and enqueue lets no request wait, and refuses the late one', async () => {
    const { job, ticket } = await begin('a');
    await evictLock();
    const id = await enqueued('b', unique);
    expect(await queueObject(env, 'a').enqueue([job], ticket)).toMatchObject({
      ok: false,
      error: { status: 503 },
    });
    expect(await post('a', unique)).toMatchObject(refusedFor(id));
  });

  it('between enqueue and release still knows where the job is', async () => {
    const { job, ticket, release } = await begin('a');
    const [made] = unpackReceipt(unwrap(await queueObject(env, 'a').enqueue([job], ticket))).jobs;
    await evictLock();
    expect(await post('b', unique)).toMatchObject(refusedFor(made?.record.id));
    await release();
    expect(await post('b', unique)).toMatchObject(refusedFor(made?.record.id));
  });

  it('after an enqueue, like its queue, has forgotten nothing', async () => {
    const id = await enqueued('a', unique);
    await evictLock();
    await new TestQueue('a').evict();
    expect(await post('b', unique)).toMatchObject(refusedFor(id));
    expect(await post('a', unique)).toMatchObject(refusedFor(id));
    await server.complete('a');
    await evictLock();
    await enqueued('b', unique);
  });
});

describe('a reservation', () => {
  it('keeps others waiting until it is released', async () => {
    const { outcome, release } = await begin('a');
    expect(outcome.ok).toBe(true);
    const next = post('b', unique);
    const told = await begin('b', { wait_ms: 20 });
    expect(told.outcome).toMatchObject({ ok: false, error: { status: 503, retryable: true } });
    await release();
    expect(await next).toMatchObject({ status: 201 });
  });

  it('that is over cannot be used to remove what others rely on', async () => {
    const { job, release } = await begin('a', { ttl_ms: 20 });
    await enqueued('b', unique);
    await release([{ fingerprint: job.unique.fingerprint, queue: 'b' }]);
    expect(await namedQueues()).toContain('b');
  });
});

it('a ticket that is forgotten is refused', async () => {
  const { job } = await begin('a');
  const old = uuidv7({ msecs: Date.now() - 61_000 });
  expect(await queueObject(env, 'a').enqueue([job], old)).toMatchObject({ ok: false, error: { status: 503 } });
});

describe('a queue that is named and has no such job any more', () => {
  it('is no longer named after the next enqueue', async () => {
    await server.configure('a', { retention: { completed: 0 } });
    await enqueued('a', unique);
    await server.complete('a');
    expect(await namedQueues()).toEqual(['a']);
    await enqueued('b', unique);
    expect(await namedQueues()).toEqual(['b']);
  });

  it('is no longer named after the daily round', async () => {
    await server.configure('a', { retention: { completed: 0 } });
    await enqueued('a', unique);
    const { fingerprint } = (await newJob()).unique;
    await clock.ring(stubOf(fingerprint));
    expect(await namedQueues()).toEqual(['a']);
    await server.complete('a');
    await clock.ring(stubOf(fingerprint));
    expect(await namedQueues()).toEqual([]);
    expect(await runInDurableObject(stubOf(fingerprint), (_, { storage }) => storage.getAlarm())).toBeNull();
  });
});

it('a reset empties the lock objects', async () => {
  await enqueued('a', unique);
  await server.ok(200, 'POST', '/ojs/v1/admin/reset');
  const { outcome } = await begin('b');
  expect(outcome).toEqual({
    ok: true,
    value: { granted: true, holders: [], open: [] } satisfies Reservation,
  });
  expect(await namedQueues()).toEqual(['b']);
});
