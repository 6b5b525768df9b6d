/** Operations on many jobs: bounded steps, each counted once, carried through whatever dies. */

import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../../src/job/errors';
import type { JobFilter } from '../../../../src/job/filter';
import { createTask, stepTask } from '../../../../src/queue/features/bulk/feature';
import { list } from '../../../../src/queue/read/list';
import type { BulkAction, OperationView } from '../../../../src/rpc/operations';
import { clock, MINUTE, until } from '../../../support/clock';
import { failOnce } from '../../../support/faults';
import { type JobChange, steady, TestQueue } from '../../../support/queue';

import { countRows, startCounting } from '../../../support/rows';

clock.restoreAfterEach();

const many = (n: number, change: JobChange = {}): JobChange[] => Array<JobChange>(n).fill(change);

async function filled(n: number, change: JobChange = {}): Promise<TestQueue> {
  const queue = new TestQueue();
  for (let left = n; left > 0; left -= 1000) await queue.enqueue(...many(Math.min(left, 1000), change));
  return queue;
}

async function completed(n: number, change: JobChange = {}): Promise<TestQueue> {
  const queue = await filled(n, change);
  for (let left = n; left > 0; left -= 100) {
    const jobs = await queue.claim({ count: 100 });
    await queue.inside(({ instance }) =>
      Promise.all(jobs.map(({ id }) => instance.settle({ kind: 'completed', job_id: id }))),
    );
  }
  return queue;
}

const begin = async (
  queue: TestQueue,
  action: BulkAction,
  filter: JobFilter = {},
  waitMs = 0,
): Promise<OperationView> => unwrap(await queue.api.operate({ id: uuidv7(), action, filter }, waitMs));

/** The operation at its end; alarms fire as they would. */
const ended = (queue: TestQueue, id: string): Promise<OperationView> =>
  until(async () => {
    const view = await queue.api.operation(id, 20);
    return view?.done ? view : undefined;
  }, `operation ${id} to end`);

describe('an operation on many jobs', () => {
  it('acts on all that match, in many steps, and leaves the others', async () => {
    const queue = await filled(1800, { type: 'a.job' });
    await queue.enqueue(...many(30, { type: 'b.job' }), ...many(20, { type: 'a.job', priority: 3 }));
    const view = await begin(queue, 'cancel', { types: ['a.*'] }, 20_000);
    expect(view).toMatchObject({ done: true, matched: 1820, succeeded: 1820, failed: 0 });
    expect(await queue.counts()).toEqual({ available: 30, cancelled: 1820 });
    expect(await queue.claimAll()).toHaveLength(30);
  });

  it('leaves jobs that run alone, and those that came after its start', async () => {
    const queue = await filled(1200);
    const running = await queue.claim({ count: 5 });
    const view = await begin(queue, 'cancel');
    const later = await queue.add();
    const end = await ended(queue, view.id);
    expect(end.succeeded).toBe(1195);
    expect(await queue.state(later)).toBe('available');
    for (const { id } of running) expect(await queue.state(id)).toBe('active');
  });

  it('gives jobs another life in their old order', async () => {
    const queue = new TestQueue();
    const jobs = [...(await queue.enqueue(...many(700))), ...(await queue.enqueue(...many(500, { priority: 9 })))];
    await begin(queue, 'cancel', {}, 20_000);
    expect((await begin(queue, 'retry', { states: ['cancelled'] }, 20_000)).succeeded).toBe(1200);
    const ids = jobs.map(({ id }) => id);
    expect(await queue.claimAll()).toEqual([...ids.slice(700), ...ids.slice(0, 700)]);
  });

  it('deletes completed jobs out of their chunks, with all that lies beside them', async () => {
    const queue = new TestQueue();
    const kinds = ['keep.job', 'drop.job'];
    const chosen = uuidv7();
    await queue.enqueue(...kinds.flatMap((type) => many(150, { type })), { type: 'drop.job', id: chosen });
    const jobs = await queue.claim({ count: 100 });
    for (let more = jobs; more.length > 0; more = await queue.claim({ count: 100 })) {
      await queue.inside(({ instance }) =>
        Promise.all(
          more.map(({ id }) => instance.settle({ kind: 'completed', job_id: id, result: `"${'x'.repeat(70_000)}"` })),
        ),
      );
    }
    const view = await begin(queue, 'delete', { types: ['drop.*'] }, 20_000);
    expect(view).toMatchObject({ done: true, matched: 151, succeeded: 151 });
    expect(await queue.counts()).toEqual({ completed: 150 });
    expect((await queue.listAll()).map(({ type }) => type)).toEqual(Array(150).fill('keep.job'));
    expect(await queue.rows('SELECT count(*) AS n FROM results')).toEqual([{ n: 150 }]);
    expect(await queue.rows('SELECT * FROM aliases')).toEqual([]);
    expect(await queue.state(chosen)).toBe('404');
  });

  it('purges by age: whole chunks at once, the rest job by job', async () => {
    const queue = await completed(600);
    await queue.enqueue(...many(50));
    const cutoff = Date.now();
    const younger = await until(async () => (Date.now() > cutoff ? queue.add() : undefined), 'the next millisecond');
    const none = await begin(queue, 'purge', { aged: { max: cutoff - 3_600_000 } }, 20_000);
    expect(none).toMatchObject({ done: true, matched: 0, succeeded: 0 });
    const view = await begin(queue, 'purge', { aged: { max: cutoff } }, 20_000);
    expect(view).toMatchObject({ done: true, succeeded: 650, failed: 0 });
    expect(await queue.counts()).toEqual({ available: 1 });
    expect(await queue.claimAll()).toEqual([younger]);
  });

  it('that purges waiting jobs notifies requests that wait for them', async () => {
    const queue = new TestQueue();
    const id = await queue.add();
    const waiting = queue.api.awaitEnd(id, 10_000);
    await begin(queue, 'purge', { states: ['available'] }, 20_000);
    const outcome = await waiting;
    expect(outcome.ok).toBe(false);
  });

  it('has nothing to do where no state fits, or there is no queue', async () => {
    const queue = await filled(3);
    expect(await begin(queue, 'delete', { states: ['available'] })).toMatchObject({ done: true, matched: 0 });
    expect(await begin(new TestQueue(), 'cancel')).toMatchObject({ done: true, matched: 0 });
    expect(await queue.api.operation(uuidv7(), 0)).toBeNull();
  });
});

describe('what is cut off', () => {
  it.each([1, 3, 5])('continues after the object died, %i times, and counts each job once', async (deaths) => {
    const queue = await filled(3000);
    const { id } = await begin(queue, 'cancel');
    for (let n = 0; n < deaths; n++) {
      await queue.die();
      if (n === 0) expect(await queue.rows('SELECT done_at FROM tasks')).toEqual([{ done_at: null }]);
      await queue.alarm();
    }
    const view = await ended(queue, id);
    expect(view).toMatchObject({ matched: 3000, succeeded: 3000, failed: 0 });
    expect(await queue.counts()).toEqual({ cancelled: 3000 });
  });

  it('by a statement that fails leaves no half step, and the step is made again', async () => {
    const queue = await filled(900);
    await queue.inside(({ sql }) => failOnce(sql, /INSERT INTO jobs/, 250));
    const { id } = await begin(queue, 'cancel');
    await until(
      async () => (await queue.rows<{ data: string }>('SELECT data FROM tasks'))[0]?.data.includes('failures'),
      'the failure',
    );
    expect((await queue.counts()).cancelled ?? 0).toBeLessThan(1);
    await until(async () => {
      await queue.alarm();
      return (await queue.api.operation(id, 0))?.done;
    }, 'the operation to be made again');
    expect(await queue.api.operation(id, 0)).toMatchObject({ matched: 900, succeeded: 900, failed: 0 });
  });

  it('again and again is abandoned, reported, and delays no other operation', async () => {
    const queue = await filled(10);
    await queue.inside(({ sql }) => {
      const exec = sql.exec;
      sql.exec = ((query: string, ...bindings: unknown[]) => {
        if (/INSERT INTO jobs/.test(query)) throw new Error('always');
        return exec.call(sql, query, ...bindings);
      }) as SqlStorage['exec'];
    });
    const first = await begin(queue, 'cancel');
    const second = await begin(queue, 'purge', { types: ['no.such'] });
    await until(async () => {
      // Each failure doubles the pause before the next try.
      clock.advance(MINUTE);
      await queue.alarm();
      return (await queue.api.operation(second.id, 0))?.done;
    }, 'the operation behind it');
    expect(await queue.api.operation(first.id, 0)).toMatchObject({
      done: true,
      succeeded: 0,
      failed: 1,
      errors: [{ error: 'backend_error' }],
    });
  });
});

describe('rows', () => {
  it('read and written by a step are bounded, however many jobs wait', async () => {
    const queue = await filled(6000);
    const { id } = { id: uuidv7() };
    const steps = await queue.inside(({ engine, q, storage }) => {
      startCounting(storage);
      engine.writeNow((now) => createTask(q, { id, action: 'cancel', filter: { priority: { min: 0 } } }, now));
      const counted = [countRows(storage)];
      for (let done = false; !done; ) {
        done = engine.writeNow((now) => stepTask(q, id, now));
        counted.push(countRows(storage));
      }
      return counted;
    });
    expect(steps.length).toBeLessThanOrEqual(15);
    for (const { read, written } of steps) {
      // Each job is read to find it, to act on it, and to show it; two rows are written for it.
      expect(read).toBeLessThanOrEqual(9_000);
      expect(written).toBeLessThanOrEqual(2 * 500 + 5);
    }
  });

  it('read for a page of rare jobs do not grow with the backlog', async () => {
    const cost: number[] = [];
    for (const backlog of [1000, 8000]) {
      const queue = new TestQueue();
      const [rare] = await queue.enqueue(...many(3, { retry: steady(1) }));
      await queue.cancel(rare?.id as string);
      for (let left = backlog; left > 0; left -= 1000) await queue.enqueue(...many(1000));
      cost.push(
        await queue.inside(({ q, storage }) => {
          q.store.counts.line = backlog + 2;
          startCounting(storage);
          const page = list(
            q,
            { limit: 50, states: ['cancelled', 'discarded', 'retryable'], total: false },
            Date.now(),
          );
          expect(page.jobs).toHaveLength(1);
          expect(page.has_more).toBe(false);
          return countRows(storage).read;
        }),
      );
    }
    expect(cost[1]).toBeLessThanOrEqual((cost[0] as number) + 10);
    expect(cost[1]).toBeLessThan(1000);
  });

  it('read for a page of common jobs are about as many as it shows', async () => {
    const queue = await filled(3000);
    const read = await queue.inside(({ q, storage }) => {
      startCounting(storage);
      list(q, { limit: 50, filter: { types: ['test.*'] }, total: false }, Date.now());
      return countRows(storage).read;
    });
    expect(read).toBeLessThan(400);
  });

  it('looked at for one page are bounded where no index helps, and the next page continues', async () => {
    const queue = await filled(12_000);
    const [page, rest] = await queue.inside(({ q }) => {
      const first = list(q, { limit: 50, filter: { types: ['no.such'] }, total: false }, Date.now());
      return [
        first,
        list(q, { limit: 50, filter: { types: ['no.such'] }, before: first.next as number, total: false }, Date.now()),
      ];
    });
    expect(page).toMatchObject({ jobs: [], has_more: true, next: expect.any(Number) });
    expect(rest).toMatchObject({ jobs: [], has_more: false });
  });
});
