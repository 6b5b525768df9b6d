/** Rows of lock objects whose jobs are gone go within a day, however many others there are. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { expect, it } from 'vitest';
import { TURN_ROWS } from '../../../src/locks/object';
import { clock, DAY, T0 } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { server } from '../../support/server';
import { enqueued } from './jobs';

clock.startAtT0();
server.emptyBeforeEach();

const lock = env.UNIQUE_LOCKS.getByName('lock-of-round-tests');

/** Rows in the lock object, by queue. */
const rows = () =>
  runInDurableObject(lock, (_, { storage }) => {
    const query = 'SELECT queue, count(*) AS n FROM holders GROUP BY queue';
    const found = storage.sql.exec<{ queue: string; n: number }>(query).toArray();
    return Object.fromEntries(found.map(({ queue, n }) => [queue, n]));
  });

/** Puts rows there, whose enqueues are over. @param names fingerprints, from `<name>-0` on */
const put = (queue: string, name: string, count: number) =>
  runInDurableObject(lock, (_, { storage }) => {
    storage.sql.exec(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
       INSERT INTO holders (fingerprint, queue, tickets) SELECT ? || i, ?, '[]' FROM n`,
      ...[count, `${name}-`, queue],
    );
  });

/** The lock object exists, and its round is planned. */
async function begin(): Promise<void> {
  const wanted = [{ fingerprint: 'first', queue: 'nobody' }];
  const ticket = '01962222-bbbb-7ccc-8ddd-000000000001';
  await lock.reserve({ ticket, coordinator: 'nobody', wanted, ttl_ms: 1000, wait_ms: 1000, peek: false });
  await lock.release({ ticket, known: true, decided: [], vacant: [] });
}

it('dead rows are removed though more live ones precede them than one turn reads, whenever the object is evicted', async () => {
  const alive = new TestQueue('alive');
  await enqueued('alive', { keys: ['type', 'queue'] });
  await begin();
  await put('alive', 'a', TURN_ROWS + 5_000);
  await put('gone', 'z', 10);
  await alive.inside(({ sql }) => {
    sql.exec(
      `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
       INSERT INTO unique_keys (fingerprint, key) SELECT 'a-' || i, 1 FROM n`,
      TURN_ROWS + 5_000,
    );
  });
  const day = T0 + DAY;
  for (let turn = 0; turn < 2; turn++) {
    clock.set(day + turn * 10_000);
    await clock.ring(lock);
    await evictDurableObject(lock);
  }
  expect(await rows()).toEqual({ alive: TURN_ROWS + 5_000 });
  // The next round begins at the first row, a day later.
  expect(await clock.armedAt(lock)).toBeGreaterThan(day + DAY);
  await alive.inside(({ sql }) => void sql.exec("DELETE FROM unique_keys WHERE fingerprint = 'a-0'"));
  clock.set(day + 2 * DAY);
  await clock.ring(lock);
  expect(await rows()).toEqual({ alive: TURN_ROWS + 5_000 - 1 });
});

it('dead rows are removed though an earlier queue cannot be asked, and another row cannot be read', async () => {
  const broken = new TestQueue('broken');
  await broken.add();
  await broken.inside(({ sql }) => void sql.exec("UPDATE meta SET value = '99' WHERE key = 'schema'"));
  await broken.evict();
  await begin();
  await put('broken', 'a', 3);
  await put('gone', 'z', 10);
  await runInDurableObject(lock, (_, { storage }) => {
    storage.sql.exec("UPDATE holders SET tickets = '[' WHERE fingerprint = 'z-3'");
  });
  const again = {
    ticket: '01962222-bbbb-7ccc-8ddd-000000000002',
    coordinator: 'gone',
    ttl_ms: 1000,
    wait_ms: 1000,
    peek: false,
  };
  const reserved = await lock.reserve({ ...again, wanted: [{ fingerprint: 'z-3', queue: 'gone' }] });
  expect(reserved).toMatchObject({ ok: true, value: { granted: true } });
  clock.set(T0 + DAY);
  await clock.ring(lock);
  expect(await rows()).toEqual({ broken: 3 });
});
