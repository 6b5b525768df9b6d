/** Leases when memory is rebuilt: as many as there are, and as they were. */

import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import { RANK_BIT } from '../../../src/job/ids';
import { clock, T0 } from '../../support/clock';
import { isLong } from '../../support/long';
import { TestQueue } from '../../support/queue';

clock.startAtT0();

const MANY = 170_000;

describe('a queue with very many leases', () => {
  it.runIf(isLong)('opens again, and knows what runs and until when', async () => {
    const queue = new TestQueue();
    const waiting = await queue.add({ priority: 1 });
    await queue.inside(({ sql }) => {
      sql.exec(
        `INSERT INTO jobs (key, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, body)
         WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= ?)
         SELECT ? + i, state, type, 0, due_at, 0, 0, created_at, enqueued_at, body FROM n, jobs WHERE priority = 1`,
        MANY,
        RANK_BIT,
      );
      sql.exec(
        `INSERT INTO leases (id, data)
         SELECT key - ?1, json_object('s', ?2, 'h', 1, 'q', ?3, 'w', 'w1',
           'e', json_array(json_array(key, 1, 1, ?4, 60000, ?4, 1, type))) FROM jobs WHERE priority = 0`,
        RANK_BIT,
        T0,
        MANY + 2,
        T0 + 60_000,
      );
      sql.exec(
        `INSERT INTO progress (key, claim, expires_at, data) SELECT key, 1, ?, '{}' FROM jobs WHERE priority = 0`,
        T0 + 90_000,
      );
    });
    await queue.evict();
    expect(await queue.counts()).toEqual({ active: MANY, available: 1 });
    expect(await queue.claimAll()).toEqual([waiting]);
    await queue.inside(({ q }) => {
      q.load();
      expect(q.store.leases.active.size).toBe(MANY + 1);
      expect(q.store.leases.active.get(RANK_BIT + 7)).toMatchObject({ workerId: 'w1', expiresAt: T0 + 90_000 });
    });
    expect(await queue.counts()).toEqual({ active: MANY + 1 });
    expect(await queue.api.activity()).toMatchObject({ oldest_available_at: null });
    for (const filter of [{ states: ['active' as const] }, { attempt: { min: 1 } }]) {
      expect(unwrap(await queue.api.list({ limit: 2, filter })).jobs).toHaveLength(2);
    }
  });

  it('hands out no more than memory holds, and continues as soon as some have ended', async () => {
    const queue = new TestQueue();
    const ids = (await queue.enqueue({}, {}, {}, {})).map(({ id }) => id) as [string, string, string, string];
    await queue.inside(({ q }) => {
      q.store.leases.mostAtOnce = 3;
    });
    expect(await queue.claim({ count: 4 })).toHaveLength(3);
    expect(await queue.claim()).toEqual([]);
    await queue.ack(ids[1]);
    expect(await queue.claim({ count: 4 })).toMatchObject([{ id: ids[3] }]);
  });

  it('calls a worker that waits as soon as one of as many as memory holds has ended', async () => {
    const queue = new TestQueue();
    const [first, second] = (await queue.enqueue({}, {})).map(({ id }) => id) as [string, string];
    await queue.inside(({ q }) => {
      q.store.leases.mostAtOnce = 1;
    });
    await queue.claim();
    const waiting = queue.api.claim({ count: 1, wait_ms: 20_000 });
    await queue.waiting('work', 1);
    await queue.ack(first);
    expect(unwrap(await waiting)).toMatchObject([{ record: { id: second } }]);
  });
});
