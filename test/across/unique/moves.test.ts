/** Jobs that are unique over all queues keep their place when they go to another queue, whatever dies on the way. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { v7 as uuidv7 } from 'uuid';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { parseJob, withFingerprint } from '../../../src/job/envelope/parse';
import { unwrap } from '../../../src/job/errors';
import type { NewJob } from '../../../src/job/record';
import { shardOf } from '../../../src/rpc/locks';
import { queueObject } from '../../../src/rpc/stubs';
import { clock, T0, until } from '../../support/clock';
import { failAlways, failOnce } from '../../support/faults';
import { freshName, type Inside, TestQueue } from '../../support/queue';
import { rowsWritten } from '../../support/rows';
import { type Answer, type Json, server } from '../../support/server';
import { enqueued, post, refusedFor } from './jobs';

server.emptyBeforeEach();
clock.restoreAfterEach();

/** Counts in every state, so that a duplicate is refused at any moment of a move. */
const unique = { key: 'one', unique_while: 'exists' };
/** Counts while it has not ended. */
const whileOpen = { key: 'one' };

const DEAD = { max_attempts: 1, on_exhaustion: 'dead_letter' };

/** The queues of a test: where a job is, where it goes, and another one. */
const at = { from: '', to: '', third: '' };
beforeEach(() => {
  at.from = freshName('from');
  at.to = freshName('to');
  at.third = freshName('third');
});

const source = () => new TestQueue(at.from);
const target = () => new TestQueue(at.to);

async function newJob(policy: Json): Promise<NewJob> {
  const { job } = await withFingerprint(parseJob({ type: 'sync.user', args: [], unique: policy }, { now: Date.now() }));
  return job;
}

const fingerprintOf = async (policy: Json) => (await newJob(policy)).unique?.fingerprint as string;
const lockOf = async (policy: Json) => env.UNIQUE_LOCKS.getByName(shardOf(await fingerprintOf(policy)));
const evictLock = async () => evictDurableObject(await lockOf(unique));
/** What the lock object has in memory is gone. It cannot be evicted while the queue that reserved holds on to it. */
const loseReservations = async () =>
  runInDurableObject(await lockOf(unique), (object) =>
    (object as unknown as { reserved: Map<string, unknown> }).reserved.clear(),
  );

/** Queues that the lock object names. */
async function namedQueues(policy: Json = unique): Promise<string[]> {
  const fingerprint = await fingerprintOf(policy);
  return runInDurableObject(await lockOf(policy), (_, { storage }) =>
    storage.sql
      .exec<{ queue: string }>('SELECT queue FROM holders WHERE fingerprint = ? ORDER BY queue', fingerprint)
      .toArray()
      .map(({ queue }) => queue),
  );
}

/** How many jobs that have not ended there are. */
async function open(): Promise<number> {
  let sum = 0;
  for (const queue of await server.queues()) {
    const { available, scheduled, pending, active, retryable } = await new TestQueue(queue as string).counts();
    sum += [available, scheduled, pending, active, retryable].reduce<number>((all, n) => all + (n ?? 0), 0);
  }
  return sum;
}

/** A way in which a job goes from one queue to the other. */
interface Way {
  /** Makes the job. */
  make(policy: Json): Promise<string>;
  /** Begins to move it, and waits a moment for the end. */
  begin(id: string): Promise<Answer>;
  isOver(): Promise<boolean>;
}

const deletion: Way = {
  make: (policy) => enqueued(at.from, policy),
  begin: () => server.call('DELETE', `/ojs/v1/queues/${at.from}`, { strategy: 'move', target_queue: at.to }),
  isOver: async () => !(await server.queues()).includes(at.from),
};

const redrive: Way = {
  make: async (policy) => {
    const id = await enqueued(at.from, policy, { options: { retry: DEAD } });
    expect((await server.takeOne(at.from)).id).toBe(id);
    await server.nack(id, { error: { message: 'no relay' } });
    return id;
  },
  begin: (id) => server.call('POST', `/ojs/v1/dead-letter/${id}/retry`, { override: { queue: at.to } }),
  isOver: () => source().inside(({ q }) => !q.store.outbox.has('move')),
};

const WAYS = [
  ['whose queue is deleted', deletion],
  ['that is retried into another queue', redrive],
] as const;

/** The alarm carries the move to its end. */
async function carriedThrough(way: Way): Promise<void> {
  await until(async () => {
    if (await way.isOver()) return true;
    await source().alarm();
    return way.isOver();
  }, 'the move to be over');
}

/** A duplicate is refused in every queue that there is, and the job is open in the target alone. */
async function protectedThere(id: string): Promise<void> {
  expect(await server.job(id)).toMatchObject({ queue: at.to, state: 'available' });
  for (const queue of Object.values(at))
    expect([queue, await post(queue, unique)]).toMatchObject([queue, refusedFor(id)]);
  expect(await open()).toBe(1);
  expect(await target().claimAll()).toEqual([id]);
}

type Call = (...args: unknown[]) => Promise<unknown>;
type Peer = (queue: string) => { adopt: Call; adoptMoved: Call; considerMoved: Call };

/** Stands between the queue and what its targets answer, until the queue is evicted. */
function betweenPeers({ engine }: Inside, answer: (real: () => Promise<unknown>) => Promise<unknown>): void {
  const { others } = (engine as unknown as { host: { others: { queue: Peer } } }).host;
  const { queue: peer } = others;
  vi.spyOn(others, 'queue').mockImplementation((queue) => ({
    adopt: (...args) => answer(() => peer(queue).adopt(...args)),
    adoptMoved: (...args) => answer(() => peer(queue).adoptMoved(...args)),
    considerMoved: (...args) => peer(queue).considerMoved(...args),
  }));
}

describe.each(WAYS)('a job %s', (_, way) => {
  it('stands in the way of the same job everywhere, and the lock object names its new queue alone', async () => {
    const id = await way.make(unique);
    await way.begin(id);
    expect(await namedQueues()).toEqual([at.to]);
    await protectedThere(id);
  });

  it.each([
    ['ignore', { status: 200, body: { deduplicated: true } }, 'available'],
    ['replace', { status: 201 }, 'cancelled'],
    ['replace_except_schedule', { status: 201 }, 'cancelled'],
  ])('is treated as the policy of the next one says: %s', async (on_conflict, answer, state) => {
    const id = await way.make(unique);
    await way.begin(id);
    const next = await post(at.third, { ...unique, on_conflict });
    expect(next).toMatchObject(answer);
    if (on_conflict === 'ignore') expect(next.body.job?.id).toBe(id);
    expect(await server.job(id)).toMatchObject({ queue: at.to, state });
    expect(await open()).toBe(1);
  });

  it('counts there as long as its policy says, from its creation on', async () => {
    clock.set(T0);
    const id = await way.make(unique);
    clock.set(T0 + 50 * 60_000);
    await way.begin(id);
    const hourly = { ...unique, period: '1h' };
    expect(await post(at.third, hourly)).toMatchObject(refusedFor(id));
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${id}`);
    expect(await post(at.third, hourly)).toMatchObject(refusedFor(id, 'cancelled'));
    clock.set(T0 + 61 * 60_000);
    expect((await post(at.third, hourly)).status).toBe(201);
  });

  it('still counts after everybody has lost their memory', async () => {
    const id = await way.make(unique);
    await way.begin(id);
    await evictLock();
    await source().evict();
    await target().evict();
    await protectedThere(id);
  });

  it('that is unique in its queue asks no lock object', async () => {
    const id = await way.make({ keys: ['type', 'queue'] });
    const reservations = await source().inside(({ engine }) => {
      const { others } = (engine as unknown as { host: { others: { reservations: () => unknown } } }).host;
      return vi.spyOn(others, 'reservations');
    });
    await way.begin(id);
    expect(await server.job(id)).toMatchObject({ queue: at.to });
    expect(reservations).not.toHaveBeenCalled();
    reservations.mockRestore();
  });

  it('costs two rows at its lock object', async () => {
    const id = await way.make(unique);
    expect(await rowsWritten(await lockOf(unique), () => way.begin(id))).toBe(2);
    expect(await namedQueues()).toEqual([at.to]);
  });

  it('waits for an enqueue of the same job, which then does not see it move', async () => {
    const id = await way.make(unique);
    const lock = await lockOf(unique);
    const fingerprint = await fingerprintOf(unique);
    const ticket = uuidv7();
    const wanted = [{ fingerprint, queue: at.third }];
    const times = { ttl_ms: 30_000, wait_ms: 1_000, peek: false };
    unwrap(await lock.reserve({ ticket, coordinator: at.third, wanted, ...times }));
    const moved = way.begin(id);
    await until(
      () => runInDurableObject(lock, (object) => (object as unknown as { waiting: unknown[] }).waiting.length === 1),
      'the move to wait for its turn',
    );
    expect(await target().counts()).toEqual({});
    await lock.release({ ticket, known: true, decided: [], vacant: [] });
    await moved;
    await carriedThrough(way);
    await protectedThere(id);
  });

  it('gives up an enqueue of the same job that died, which cannot arrive any more', async () => {
    const id = await way.make(whileOpen);
    const lock = await lockOf(whileOpen);
    const job = await newJob(whileOpen);
    const fingerprint = job.unique?.fingerprint as string;
    const ticket = uuidv7();
    const wanted = [{ fingerprint, queue: at.third }];
    const times = { ttl_ms: 30, wait_ms: 1_000, peek: false };
    unwrap(await lock.reserve({ ticket, coordinator: at.third, wanted, ...times }));
    await way.begin(id);
    const late = await queueObject(env, at.third).enqueue([job], ticket);
    expect(late).toMatchObject({ ok: false, error: { status: 503 } });
    await protectedThere(id);
  });
});

describe.each(WAYS)('the move of a job %s', (_, way) => {
  /** Whatever is enqueued while the move stands still is refused, or asked to come again. */
  async function refusedMeanwhile(): Promise<void> {
    const answers = await Promise.all([post(at.third, unique), post(at.to, unique)]);
    for (const { status } of answers) expect([409, 503]).toContain(status);
  }

  it('that dies before it is its turn at the lock object has not begun', async () => {
    const id = await way.make(unique);
    await source().inside(({ engine }) => {
      const { others } = (engine as unknown as { host: { others: { reservations: () => unknown } } }).host;
      vi.spyOn(others, 'reservations').mockImplementation(() => {
        throw new Error('died');
      });
    });
    await way.begin(id);
    expect(await target().counts()).toEqual({});
    await refusedMeanwhile();
    await source().evict();
    await carriedThrough(way);
    await protectedThere(id);
  });

  it('goes no further than the lock object, when that cannot note the new queue', async () => {
    const id = await way.make(unique);
    const heal = await runInDurableObject(await lockOf(unique), (_object, { storage }) =>
      failAlways(storage.sql, /INSERT OR REPLACE INTO holders/),
    );
    await way.begin(id);
    expect(await target().counts()).toEqual({});
    heal();
    await refusedMeanwhile();
    await carriedThrough(way);
    await protectedThere(id);
  });

  it('that dies before the target hears of the job leaves it where it is', async () => {
    const id = await way.make(unique);
    await source().inside((inside) => betweenPeers(inside, () => Promise.reject(new Error('died'))));
    await way.begin(id);
    expect(await namedQueues()).toContain(at.to);
    await refusedMeanwhile();
    await source().evict();
    await carriedThrough(way);
    await protectedThere(id);
  });

  it.each([/INSERT INTO jobs/, /unique_keys \(/, /INSERT INTO inbox/])(
    'that fails in the target, at %s, is made again',
    async (statement) => {
      const id = await way.make(unique);
      await server.setMode(at.to, 'resume');
      const heal = await target().inside(({ sql }) => failAlways(sql, statement));
      await way.begin(id);
      expect(await target().counts()).toEqual({});
      heal();
      await refusedMeanwhile();
      await carriedThrough(way);
      await protectedThere(id);
    },
  );

  it('of which the answer is lost has both queues say that the job is there', async () => {
    const id = await way.make(unique);
    await source().inside((inside) =>
      betweenPeers(inside, async (real) => {
        await real();
        throw new Error('the answer was lost');
      }),
    );
    await way.begin(id);
    expect(await target().counts()).toEqual({ available: 1 });
    expect(await namedQueues()).toEqual([at.from, at.to]);
    await refusedMeanwhile();
    await source().evict();
    await carriedThrough(way);
    await protectedThere(id);
  });

  it('that dies before the job is gone from its old queue takes it from there later', async () => {
    const id = await way.make(unique);
    await source().inside(({ sql }) => failOnce(sql, /DELETE FROM jobs/));
    await way.begin(id);
    await refusedMeanwhile();
    await source().evict();
    await carriedThrough(way);
    await protectedThere(id);
  });

  it('that was given up meanwhile is refused when it arrives, and made again', async () => {
    const id = await way.make(unique);
    let given: Answer | undefined;
    let late: unknown;
    await source().inside((inside) =>
      betweenPeers(inside, async (real) => {
        if (given) return real();
        // The reservation is lost, so the next enqueue has this move decided before it looks into the queues.
        await loseReservations();
        given = await post(at.third, unique);
        late = await real();
        return late;
      }),
    );
    await way.begin(id);
    await carriedThrough(way);
    expect([409, 503]).toContain(given?.status);
    expect(late).toMatchObject({ ok: false, error: { status: 503 } });
    await protectedThere(id);
  });

  it.each(['reject', 'ignore', 'replace'])('lets no second job in when many come meanwhile that %s', async (policy) => {
    for (let round = 0; round < 2; round++) {
      await server.ok(200, 'POST', '/ojs/v1/admin/reset');
      // A dead letter counts too: no operator has decided that there may be two.
      const id = await way.make(unique);
      const all = { ...unique, on_conflict: policy };
      const queues = [at.third, at.to, 'fourth', at.third, at.to, 'fourth'];
      const [, ...answers] = await Promise.all([way.begin(id), ...queues.map((queue) => post(queue, all))]);
      const accepted = answers.filter(({ status }) => status === 201);
      for (const { status } of answers) expect([200, 201, 409, 503]).toContain(status);
      await carriedThrough(way);
      if (policy !== 'replace') expect(accepted).toEqual([]);
      if (policy !== 'replace' || way === deletion) expect(await open()).toBe(1);
    }
  });
});

describe('a queue with many unique jobs', () => {
  it('moves them in steps, and each stands in the way of its like', async () => {
    const keys = Array.from({ length: 230 }, (_, n) => ({ key: `key-${n}` }));
    const jobs = keys.map((policy) => ({ type: 'sync.user', args: [], queue: at.from, unique: policy }));
    for (let n = 0; n < jobs.length; n += 100) {
      await server.ok(201, 'POST', '/ojs/v1/jobs/batch', { jobs: jobs.slice(n, n + 100) });
    }
    const calls: { shards: string[]; fingerprints: number }[] = [];
    await source().inside(({ engine }) => {
      const { others } = (engine as unknown as { host: { others: { reservations: (queue: string) => Reserving } } })
        .host;
      const { reservations } = others;
      vi.spyOn(others, 'reservations').mockImplementation((queue) => {
        const made = reservations(queue);
        const { reserve } = made;
        made.reserve = (wanted) => {
          calls.push({ shards: wanted.map(({ fingerprint }) => shardOf(fingerprint)), fingerprints: wanted.length });
          return reserve.call(made, wanted);
        };
        return made;
      });
    });
    await deletion.begin('');
    await carriedThrough(deletion);
    expect(calls.map(({ fingerprints }) => fingerprints)).toEqual([100, 100, 30]);
    expect(await target().counts()).toEqual({ available: 230 });
    for (const n of [0, 99, 100, 229]) {
      expect((await post(at.third, keys[n] as Json)).status).toBe(409);
      expect(await namedQueues(keys[n])).toContain(at.to);
    }
  });

  it('whose target drains tries less and less often', async () => {
    await enqueued(at.from, unique);
    await server.setMode(at.to, 'drain');
    clock.set(T0);
    const tries: number[] = [];
    let watched: unknown;
    let first = Number.NaN;
    // An object that the runtime has constructed anew meanwhile begins to wait anew.
    const watch = (inside: Inside) => {
      if (inside.engine === watched) return;
      watched = inside.engine;
      tries.length = 0;
      betweenPeers(inside, (real) => {
        if (tries.length === 0) first = Date.now();
        tries.push((Date.now() - first) / 1_000);
        return real();
      });
    };
    await source().inside(watch);
    await deletion.begin('');
    for (let rings = 0; tries.length < 9; rings++) {
      await source().inside(watch);
      if (rings > 50) throw new Error(`the move was tried at ${tries} in ${rings} alarms`);
      // The runtime may have rung an alarm by itself, whose time has passed for it: none is set while that runs.
      await until(async () => (await source().armedAt()) !== null, 'the next alarm to be set');
      clock.set((await source().armedAt()) ?? Date.now());
      await source().alarm();
      await until(() => source().inside(({ engine }) => !isRemoving(engine)), 'the step to be over');
    }
    expect(tries).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
    await server.setMode(at.to, 'resume');
    clock.set(T0 + 600_000);
    await carriedThrough(deletion);
    expect(await open()).toBe(1);
  });
});

type Reserving = { reserve: (wanted: { fingerprint: string; queue: string }[]) => Promise<unknown> };
const isRemoving = (engine: Inside['engine']) =>
  (engine.relay as unknown as { busy: Map<string, unknown> }).busy.size > 0;

describe('a job that is set aside because its queue is deleted', () => {
  /** The move stands still between here and there. @returns lets it go on */
  async function halfway(): Promise<() => void> {
    let goOn: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const reached = new Promise<void>((resolve) => {
      void source().inside((inside) =>
        betweenPeers(inside, async (real) => {
          resolve();
          await gate;
          return real();
        }),
      );
    });
    await source().inside(() => undefined);
    void deletion.begin('');
    await reached;
    return goOn;
  }

  it('cannot be cancelled in its former queue, and does not count as gone', async () => {
    const id = await enqueued(at.from, whileOpen);
    const goOn = await halfway();
    expect(await source().api.cancel(id)).toMatchObject({
      ok: false,
      error: { status: 503, retryable: true },
    });
    goOn();
    await carriedThrough(deletion);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${id}`);
    expect(await server.job(id)).toMatchObject({ queue: at.to, state: 'cancelled' });
  });

  it('is replaced once it has arrived', async () => {
    const id = await enqueued(at.from, whileOpen);
    const goOn = await halfway();
    const replacing = post(at.third, { ...whileOpen, on_conflict: 'replace' });
    goOn();
    expect(await replacing).toMatchObject({ status: 201 });
    await carriedThrough(deletion);
    expect(await server.job(id)).toMatchObject({ queue: at.to, state: 'cancelled' });
    expect(await open()).toBe(1);
  });

  it('is not set aside while a batch that replaces it is being decided', async () => {
    const old = await enqueued(at.from, whileOpen);
    const job = await newJob({ ...whileOpen, on_conflict: 'replace' });
    const ticket = uuidv7();
    const { api } = source();
    unwrap(await api.prepareBatch(ticket, at.from, [job]));
    await deletion.begin('');
    expect(await target().counts()).toEqual({});
    unwrap(await api.decideBatch(ticket, []));
    await carriedThrough(deletion);
    expect(await open()).toBe(1);
    expect((await server.call('GET', `/ojs/v1/jobs/${old}`)).status).toBe(404);
    expect(await server.counts(at.to)).toMatchObject({ available: 1 });
  });
});

describe('a move that is sent again', () => {
  const moved = {
    ...{ pending: false, type: 'test.echo', priority: 0, due_at: 0, attempt: 0, claims: 0, created_at: 0 },
    ...{ enqueued_at: 0, expires_at: null, body: '{"type":"test.echo","args":[],"meta":{}}', history: null },
  };

  it('weeks later is remembered, whatever has become of the job', async () => {
    const { api, name } = new TestQueue(freshName());
    const queue = new TestQueue(name);
    clock.set(T0);
    const [one, two] = [uuidv7(), uuidv7()];
    unwrap(await api.adopt('step', [{ ...moved, id: one }]));
    unwrap(await api.adoptMoved('decision', { ...moved, id: two }));
    await server.ok(200, 'POST', `/ojs/v1/queues/${name}/purge`, { states: ['available'], confirm: true });
    await queue.passTo(T0 + 80 * 86_400_000);
    await server.setMode(name, 'drain');
    unwrap(await api.adopt('step', [{ ...moved, id: one }]));
    expect(unwrap(await api.adoptMoved('decision', { ...moved, id: two }))).toEqual({ job: null });
    expect(await queue.counts()).toEqual({});
    await queue.passTo(T0 + 101 * 86_400_000);
    expect(await queue.rows('SELECT key FROM inbox')).toEqual([]);
  });
});

it('a job without a unique policy is moved without asking anybody', async () => {
  await server.enqueue(at.from);
  await deletion.begin('');
  expect(await target().counts()).toEqual({ available: 1 });
  expect(await env.UNIQUE_LOCKS.getByName('register').shards()).toEqual([]);
});
