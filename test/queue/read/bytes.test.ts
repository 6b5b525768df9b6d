/** Answers with jobs are bounded by the bytes of all that travels: bodies, error histories, results. */
import { describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import type { JobView } from '../../../src/job/record';
import { bytesOf, bytesOfView, MAX_CLAIM_BYTES } from '../../../src/job/size';
import { TestQueue } from '../../support/queue';
import { server, V1 } from '../../support/server';

server.emptyBeforeEach();

const MAX_BYTES = 8 * 1024 * 1024;
const COUNT = 50;

/** A queue whose jobs have failed so often that their histories have 240 kB each. */
async function scarred(name: string): Promise<{ q: TestQueue; ids: string[] }> {
  const q = new TestQueue(name);
  // Jobs that expire have rows of their own.
  const jobs = await q.enqueue(...Array.from({ length: COUNT }, () => ({ expiresAt: Date.now() + 3_600_000 })));
  await q.inside(({ sql }) => {
    const error = { attempt: 1, occurred_at: 0, duration_ms: 1, code: 'e', type: 'e', backoff_ms: 1, reason: null };
    const errors = Array.from({ length: 30 }, () => ({ ...error, message: 'm'.repeat(8_000) }));
    sql.exec('UPDATE jobs SET history = ?', JSON.stringify({ error: errors[0], errors })).toArray();
  });
  return { q, ids: jobs.map(({ id }) => id) };
}

const sizeOf = (views: readonly JobView[]) => views.reduce((sum, view) => sum + bytesOfView(view), 0);

describe('error histories', () => {
  it('do not make a claim larger than a message may be, and every job is handed out', async () => {
    const { q, ids } = await scarred('q');
    const claimed: string[] = [];
    for (;;) {
      const views = unwrap(await q.api.claim({ count: 100 }));
      if (views.length === 0) break;
      expect(sizeOf(views)).toBeLessThan(1.1 * MAX_CLAIM_BYTES);
      claimed.push(...views.map(({ record }) => record.id));
    }
    expect(claimed).toEqual(ids);
  });

  it('do not make a fetch over several queues larger either', async () => {
    await scarred('a');
    await scarred('b');
    await scarred('c');
    const views = await server.take(['a', 'b', 'c'], { count: 100 });
    expect(views.length).toBeGreaterThan(COUNT / 2);
    expect(views.length).toBeLessThan(2 * COUNT);
  });

  it('end a page early, with a cursor to continue', async () => {
    const { ids } = await scarred('q');
    const seen: string[] = [];
    let cursor = '';
    for (let pages = 0; pages < 10; pages++) {
      const page = await server.ok(200, 'GET', `${V1}/jobs?queue=q&limit=200${cursor}`);
      expect(page.jobs?.length).toBeLessThan(COUNT);
      seen.push(...(page.jobs ?? []).map(({ id }) => id as string));
      if (!page.pagination?.has_more) break;
      cursor = `&cursor=${page.pagination.next_cursor}`;
    }
    expect(seen.reverse()).toEqual(ids);
  });

  it('leave the pages that a number or an offset leads to whole', async () => {
    const { ids } = await scarred('q');
    const newest = [...ids].reverse();
    const read = async (query: string) =>
      ((await server.ok(200, 'GET', `${V1}/jobs?queue=q&${query}`)).jobs ?? []).map(({ id }) => id);
    expect(await read('page=1&per_page=45')).toEqual(newest.slice(0, 45));
    expect(await read('page=2&per_page=45')).toEqual(newest.slice(45));
    expect(await read('offset=3&limit=42')).toEqual(newest.slice(3, 45));
    expect(await read(`offset=${COUNT}`)).toEqual([]);
  });

  it('count in an answer about many jobs, which names what it left out', async () => {
    const { q, ids } = await scarred('q');
    const { jobs, omitted } = await q.api.getMany(ids);
    expect(sizeOf(jobs)).toBeLessThanOrEqual(MAX_BYTES);
    expect([...jobs.map(({ record }) => record.id), ...omitted]).toEqual(ids);
  });
});

describe('claims that wait', () => {
  it('are not all served in one turn when their jobs are large', async () => {
    const q = new TestQueue('q');
    await q.add();
    await q.claim();
    const large = Array.from({ length: 12 }, () => ({ body: { args: ['x'.repeat(900_000)] } }));
    const claims = Array.from({ length: 3 }, () => q.api.claim({ count: 100, wait_ms: 20_000 }));
    await q.waiting('work', 3);
    let found: number[] = [];
    const made = await q.transactionsOf(async () => {
      await q.enqueue(...large);
      found = (await Promise.all(claims)).map((outcome) => unwrap(outcome).length);
    });
    expect(found).toEqual([4, 4, 4]);
    // The enqueue, and a turn for each claim.
    expect(made).toBeGreaterThanOrEqual(4);
  });
});

describe('a page by its number', () => {
  it('that is too large to be whole is refused by name', async () => {
    const q = new TestQueue('q');
    const args = ['x'.repeat(900_000)];
    for (let n = 0; n < 8; n++) await q.enqueue(...Array.from({ length: 5 }, () => ({ body: { args } })));
    const path = `${V1}/jobs?queue=q&per_page=40`;
    expect(await server.call('GET', path)).toMatchObject({
      status: 422,
      body: { error: { code: 'unsupported', details: { limit: 40, max_bytes: 2 * MAX_BYTES } } },
    });
    expect((await server.ok(200, 'GET', `${V1}/jobs?queue=q&per_page=30&page=2`)).jobs).toHaveLength(10);
    expect((await server.ok(200, 'GET', `${V1}/jobs?queue=q&limit=40`)).pagination).toMatchObject({ has_more: true });
  });
});

describe('text of several bytes a character', () => {
  it('counts as bytes', async () => {
    const q = new TestQueue();
    const args = ['€'.repeat(300_000)];
    await q.enqueue(...Array.from({ length: 12 }, () => ({ body: { args } })));
    const views = unwrap(await q.api.claim({ count: 100 }));
    expect(views).toHaveLength(4);
    expect(bytesOf('€'.repeat(300_000))).toBe(900_000);
    expect(unwrap(await q.api.list({ limit: 100 })).jobs).toHaveLength(2);
  });
});

describe('completed jobs with large bodies', () => {
  it('are read a few at once, however many a list looks at', async () => {
    const q = new TestQueue('q');
    const args = ['x'.repeat(900 * 1024)];
    for (let n = 0; n < 3; n++) {
      await server.addAll(Array.from({ length: 8 }, () => ({ type: 'large', args, options: { queue: 'q' } })));
      for (let taken = 0; taken < 8; ) {
        const jobs = await q.claim({ count: 8 });
        taken += jobs.length;
        for (const { id } of jobs) await q.ack(id);
      }
    }
    let most = 0;
    await q.inside(({ sql }) => {
      const { exec } = sql;
      sql.exec = ((query: string, ...bindings: unknown[]) => {
        const cursor = exec.call(sql, query, ...bindings);
        const { toArray } = cursor;
        cursor.toArray = () => {
          const rows = toArray.call(cursor);
          most = Math.max(most, JSON.stringify(rows).length);
          return rows;
        };
        return cursor;
      }) as typeof exec;
    });
    const page = await server.ok(200, 'GET', `${V1}/jobs?queue=q&state=completed&limit=1`);
    expect(page.jobs).toHaveLength(1);
    expect(most).toBeGreaterThan(900 * 1024);
    expect(most).toBeLessThan(6 * 1024 * 1024);
  });
});
