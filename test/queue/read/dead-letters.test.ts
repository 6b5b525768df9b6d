import { describe, expect, it } from 'vitest';
import { RANK_BIT } from '../../../src/job/ids';
import { STATE } from '../../../src/queue/store/job-row';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

const T0 = Date.UTC(2040, 0, 1);

/** A queue with this many dead letters, discarded `each` at the same moment; their types and errors take turns. */
async function withDeadLetters(count: number, { name = freshName(), each = 1, body = '' } = {}): Promise<TestQueue> {
  const queue = new TestQueue(name);
  await queue.add();
  await queue.inside(({ sql, q }) => {
    sql
      .exec(
        `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO jobs (key, state, type, priority, attempt, claims, created_at, enqueued_at, ended_at, body, history, keep_until)
         SELECT ${RANK_BIT} + 1000 + i, ${STATE.dead}, 'dead.' || (i % 3), 0, 3, 3, ?, ?, CAST(? AS INTEGER) + (i / CAST(? AS INTEGER)) * 1000,
           json_object('type', 'dead.' || (i % 3), 'args', json_array(?), 'meta', json_object()),
           json_object('error', json_object('code', 'handler_error', 'type', 'E' || (i % 2), 'message', 'm', 'occurred_at', 0, 'attempt', 3)), iif(i % 5, NULL, CAST(? AS INTEGER) + 10000000000)
         FROM n`,
        ...[count, T0, T0, T0, each, body, T0],
      )
      .toArray();
    q.load();
  });
  return queue;
}

/** Rows that a queue reads for one request. */
const rowsRead = (queue: TestQueue, path: string): Promise<number> =>
  queue.rowsRead(() => server.ok(200, 'GET', V1 + path));

/** Ids of all pages, by cursor. */
async function throughPages(path: string, largest = Number.POSITIVE_INFINITY): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor = ''; ; ) {
    const page = await server.ok(200, 'GET', `${V1}${path}${cursor}`);
    ids.push(...(page.jobs as Json[]).map(({ id }) => id as string));
    expect(JSON.stringify(page).length).toBeLessThan(largest);
    if (!page.pagination?.has_more) return ids;
    cursor = `&cursor=${page.pagination.next_cursor}`;
  }
}

describe('a page of dead letters', () => {
  it('reads as many rows as it shows, however many there are', async () => {
    for (const each of [1, 5000]) {
      const queue = await withDeadLetters(4000, { each });
      const first = `/dead-letter?queue=${queue.name}&limit=10`;
      const { pagination, total } = await server.ok(200, 'GET', V1 + first);
      expect(total).toBe(4000);
      const read = [await rowsRead(queue, first), await rowsRead(queue, `${first}&cursor=${pagination?.next_cursor}`)];
      for (const rows of read) expect(rows).toBeLessThan(60);
    }
  });

  it('looks at a bounded number of rows with a filter, and continues from there', async () => {
    const queue = await withDeadLetters(25_000, { each: 7 });
    await queue.inside(({ sql }) => sql.exec("UPDATE jobs SET type = 'rare' WHERE key % 9000 = 0").toArray());
    const path = `/dead-letter?queue=${queue.name}&type=rare&limit=50`;
    const page = await server.ok(200, 'GET', V1 + path);
    expect(page.pagination?.has_more).toBe(true);
    expect(page.total_is_exact).toBe(false);
    // Two index entries and a row at most for each of those that are looked at: 10,000 for the page, 20,000 for the total.
    expect(await rowsRead(queue, path)).toBeLessThan(100_000);
    const rare = await queue.inside(({ sql }) => sql.exec("SELECT 1 FROM jobs WHERE type = 'rare'").toArray().length);
    expect(await throughPages(path)).toHaveLength(rare);
  });

  it.each([
    ['', 60],
    ['&type=dead.1', 21],
    ['&error_type=E1', 30],
    ['&type=dead.*&error_type=E0', 30],
  ])('shows each of several queues once, though many ended in the same moment (%s)', async (filter, count) => {
    const names = [freshName(), freshName(), freshName()];
    for (const name of names) await withDeadLetters(20, { name, each: 8 });
    const path = `/dead-letter?queue=${names.join(',')}${filter}`;
    const whole = await throughPages(`${path}&limit=200`);
    expect(new Set(whole).size).toBe(count);
    expect(await throughPages(`${path}&limit=7`)).toEqual(whole);
    const byNumber = await server.ok(200, 'GET', `${V1}${path}&per_page=7&page=3`);
    expect((byNumber.jobs as Json[]).map(({ id }) => id)).toEqual(whole.slice(14, 21));
    expect(byNumber.total).toBe(count);
  });

  it('ends early when its jobs are large, and the next one continues', async () => {
    const queue = await withDeadLetters(30, { body: 'x'.repeat(700_000) });
    const ids = await throughPages(`/dead-letter?queue=${queue.name}&limit=200`, 10 * 1024 * 1024);
    expect(new Set(ids).size).toBe(30);
    expect(ids).toHaveLength(30);
  });
});

describe('statistics of dead letters', () => {
  it('are counted once and read nothing until one comes or goes', async () => {
    const queue = await withDeadLetters(600, { each: 10 });
    const stats = () => server.ok(200, 'GET', `${V1}/dead-letter/stats`);
    const expected = { by_type: { 'dead.0': 200, 'dead.1': 200, 'dead.2': 200 }, by_error_type: { E0: 300, E1: 300 } };
    const of = async () => ((await stats()).by_queue as Json)[queue.name];
    expect(await of()).toBe(600);
    expect(unwrapped(await queue.api.deadLetterKinds())).toMatchObject({ total: 600, complete: true });
    expect(Object.fromEntries(unwrapped(await queue.api.deadLetterKinds()).types)).toEqual(expected.by_type);
    expect(Object.fromEntries(unwrapped(await queue.api.deadLetterKinds()).errors)).toEqual(expected.by_error_type);
    expect(await rowsRead(queue, '/dead-letter/stats')).toBe(0);
    const [id] = await throughPages(`/dead-letter?queue=${queue.name}&limit=200`);
    await server.ok(200, 'DELETE', `${V1}/dead-letter/${id}`);
    expect(await of()).toBe(599);
  });

  it('look at the newest ten thousand of a queue, and say so', async () => {
    const queue = await withDeadLetters(12_000);
    expect(unwrapped(await queue.api.deadLetterKinds())).toMatchObject({ total: 12_000, complete: false });
    const { by_queue, counts_are_exact } = await server.ok(200, 'GET', `${V1}/dead-letter/stats`);
    expect([(by_queue as Json)[queue.name], counts_are_exact]).toEqual([12_000, false]);
  });
});

function unwrapped<T>(outcome: { ok: true; value: T } | { ok: false }): T {
  if (!outcome.ok) throw new Error('refused');
  return outcome.value;
}
