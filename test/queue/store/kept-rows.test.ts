/** Cost of jobs that say themselves how long they are kept, and that the others do not pay for them. */

import { beforeEach, describe, expect, it } from 'vitest';
import type { JobRetention } from '../../../src/job/retention';
import { newestEnded, oldestEnded } from '../../../src/queue/store/ended-rows';
import { STATE } from '../../../src/queue/store/job-row';
import { clock, DAY, HOUR, T0 } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { rowsWhile } from '../../support/rows';

clock.restoreAfterEach();

let queue: TestQueue;
beforeEach(() => {
  clock.set(T0);
  queue = new TestQueue();
});

describe('rows', () => {
  const counted = (run: () => Promise<unknown>) => rowsWhile(queue.stub, run);

  /** Completes jobs in batches of 100 until they are pruned; rows written for each, without alarms. */
  async function life(retention?: JobRetention): Promise<number> {
    await queue.add({ pending: true });
    const jobs = Array(100).fill(retention ? { body: { retention } } : {});
    const { written, alarms } = await counted(async () => {
      for (let n = 0; n < 4; n++) await queue.enqueue(...jobs);
      for (let n = 0; n < 4; n++) {
        const claimed = await queue.claim({ count: 100 });
        await queue.inside(({ instance }) =>
          Promise.all(claimed.map(({ id }) => instance.settle({ kind: 'completed', job_id: id, result: '1' }))),
        );
      }
      await queue.passTo(T0 + 30 * DAY);
    });
    expect(await queue.rows('SELECT chunk FROM archive')).toEqual([]);
    return (written - alarms) / 400;
  }

  it('written for completed jobs of one retention are as many as for any other', async () => {
    const plain = await life();
    queue = new TestQueue();
    clock.set(T0);
    // Their chunks are not joined by others.
    expect(await life({ completed: 'P20D' })).toBeLessThanOrEqual(plain + 0.02);
    expect(plain).toBeLessThan(0.1);
  });

  it('written for an end are two, and one more where the job says how long it stays', async () => {
    const [plain, own] = [await queue.add(), await queue.add({ body: { retention: { cancelled: 'P9D' } } })];
    await queue.cancel(await queue.add());
    const cost = async (id: string) => {
      return queue.rowsWritten(() => queue.cancel(id));
    };
    expect([await cost(plain), await cost(own)]).toEqual([2, 3]);
  });

  it('written for a change are one', async () => {
    const id = await queue.add();
    const change = { id, retention: { completed: 'P1D' as const } };
    expect((await counted(() => queue.api.patch(change))).written).toBe(1);
    expect((await counted(() => queue.api.patch(change))).written).toBe(0);
  });

  it('that stay longer are not read again by each alarm, in the archive as among those that failed', async () => {
    await queue.cancel(await queue.add({ body: { retention: { cancelled: 'P900D' } } }));
    await queue.inside(({ sql, q }) => {
      const numbers = 'WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)';
      sql.exec(
        `${numbers} INSERT INTO jobs
           (key, state, type, priority, attempt, claims, created_at, enqueued_at, ended_at, keep_until, body)
         SELECT i, 2 + i % 3, 't', 0, 0, 0, ?1, ?1, ?1, ?1 + ?2, '{}' FROM n`,
        T0,
        900 * DAY,
      );
      sql.exec(
        `${numbers} INSERT INTO archive (chunk, lo, hi, jobs, ended_at, data)
         SELECT -1000000 + i, 100000 + i, 100000 + i, 1, ?, '[]' FROM n`,
        T0,
      );
      q.load();
    });
    const plain = await queue.add();
    await queue.cancel(plain);
    clock.set(T0 + 200 * DAY);
    const { read } = await counted(() => queue.inside(({ instance }) => instance.alarm()));
    expect(await queue.state(plain)).toBe('404');
    expect(read).toBeLessThan(100);
    expect((await counted(() => queue.inside(({ instance }) => instance.alarm()))).read).toBeLessThan(80);
  });

  it('of dead outbox messages are read in order through the index, without sorting', async () => {
    await queue.add();
    const plans = await queue.inside(({ sql }) => {
      const seen: string[] = [];
      const { exec } = sql;
      const explain = ((query: string, ...bindings: unknown[]) => {
        const plan = exec.call(sql, `EXPLAIN QUERY PLAN ${query}`, ...bindings);
        seen.push(...Array.from(plan, ({ detail }) => String(detail)));
        return exec.call(sql, query, ...bindings);
      }) as SqlStorage['exec'];
      sql.exec = explain;
      oldestEnded(sql, STATE.dead, 3, T0);
      newestEnded(sql, STATE.dead, { since: 0, until: T0, before: { at: T0 - 1, key: 5 } }, 10);
      sql.exec = exec;
      return seen;
    });
    expect(plans.filter((line) => line.includes('jobs_ended'))).toHaveLength(6);
    expect(plans.filter((line) => line.includes('TEMP B-TREE'))).toEqual([]);
  });
});

describe('chunks that go at the same moment', () => {
  it('are all kept and all removed, however many they are, and the others are numbered on as before', async () => {
    for (let n = 0; n < 520; n++) await queue.add({ body: { retention: { completed: '1h' } } });
    const ids = await queue.claimAll();
    // One transaction each: a chunk of its own.
    await queue.inside(async ({ instance }) => {
      for (const id of ids) await instance.settle({ kind: 'completed', job_id: id });
    });
    expect(await queue.counts()).toEqual({ completed: 520 });
    await queue.add();
    await queue.ack((await queue.claim())[0]?.id as string);
    expect(await queue.rows('SELECT chunk FROM archive WHERE chunk >= 0')).toEqual([{ chunk: 1 }]);
    await queue.passTo(T0 + HOUR + 1);
    await queue.passTo(T0 + HOUR + 1000);
    expect(await queue.counts()).toEqual({ completed: 1 });
  });
});
