/** The operators' list in other orders than that of making. */

import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { unwrap } from '../../../src/job/errors';
import { histories } from '../../support/long';
import { freshName, TestQueue } from '../../support/queue';
import { type Json, server } from '../../support/server';

server.emptyBeforeEach();

let queue: string;
beforeEach(() => {
  queue = freshName('sorted');
});

const page = (query: string) => server.ok(200, 'GET', `/ojs/v1/admin/jobs?${query}`);
const list = async (query: string) => ((await page(query)).items as Json[]).map(({ id }) => id as string);
const finish = async (count: number) => {
  const jobs = await server.take(queue, { count });
  for (const { id } of jobs as Json[]) await server.ack(id);
};

describe('operators see jobs of all queues', () => {
  it('by priority, in either direction, wherever they lie', async () => {
    const low = await server.enqueue(queue, { options: { priority: -5 } });
    const completed = await server.enqueue(queue, { options: { priority: 9 } });
    await finish(1);
    const plain = await server.enqueue(`${queue}-b`);
    const high = await server.enqueue(queue, { options: { priority: 50, delay_until: '+PT1H' } });
    const same = await server.enqueue(`${queue}-c`, { options: { priority: 9, pending: true } });
    const cancelled = await server.enqueue(queue, { options: { priority: 10 } });
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${cancelled}`);
    const order = [high, cancelled, same, completed, plain, low];
    expect(await list('sort=priority')).toEqual(order);
    expect(await list('sort=priority&order=desc')).toEqual(order);
    expect(await list('sort=priority&order=asc')).toEqual([...order].reverse());
    expect(await list(`sort=priority&queue=${queue}&state=completed,scheduled`)).toEqual([high, completed]);
    expect(await list('sort=priority&priority_max=9&type=test.*')).toEqual([same, completed, plain, low]);
  });

  it('by the time for which they were scheduled; those without one come last', async () => {
    const soon = await server.enqueue(queue, { options: { delay_until: '+PT1H' } });
    const none = await server.enqueue(`${queue}-b`, { options: { priority: 7 } });
    const late = await server.enqueue(`${queue}-b`, { options: { delay_until: '+P2D' } });
    const moved = await server.enqueue(queue, { options: { delay_until: '+P9D' } });
    await server.ok(200, 'PATCH', `/ojs/v1/jobs/${moved}`, { scheduled_at: '+P1D' });
    const gone = await server.enqueue(queue, { options: { delay_until: '+P3D' } });
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${gone}`);
    expect(await list('sort=scheduled_at')).toEqual([gone, late, moved, soon, none]);
    expect(await list('sort=scheduled_at&order=asc')).toEqual([soon, moved, late, gone, none]);
  });

  it('by age, the oldest first', async () => {
    const ids = [await server.enqueue(queue), await server.enqueue(`${queue}-b`)];
    await finish(1);
    ids.push(await server.enqueue(queue), await server.enqueue(`${queue}-b`));
    expect(await list('order=asc')).toEqual(ids);
    expect(await list('sort=created_at&order=desc')).toEqual([...ids].reverse());
  });

  it('in pages that together are the whole, without what jobs carry', async () => {
    const jobs = fc.array(
      fc.record({
        priority: fc.integer({ min: -3, max: 3 }),
        hours: fc.option(fc.integer({ min: 1, max: 4 })),
        place: fc.constantFrom('a', 'b'),
      }),
      { minLength: 1, maxLength: 25 },
    );
    const sort = fc.constantFrom('priority' as const, 'scheduled_at' as const, 'created_at' as const);
    await fc.assert(
      fc.asyncProperty(jobs, sort, fc.boolean(), fc.integer({ min: 1, max: 9 }), async (wanted, by, asc, size) => {
        queue = freshName('pages');
        const entries = wanted.map(({ priority, hours, place }) => ({
          type: 'test.echo',
          args: ['payload'],
          options: { queue: `${queue}-${place}`, priority, ...(hours !== null && { delay_until: `+PT${hours}H` }) },
        }));
        await server.ok(201, 'POST', '/ojs/v1/jobs/batch', { jobs: entries });
        const shown: Json[] = [];
        for (let at = 1; ; at++) {
          const query = `queue=${queue}-a,${queue}-b&sort=${by}&order=${asc ? 'asc' : 'desc'}`;
          const { items, pagination } = await page(`${query}&page=${at}&per_page=${size}`);
          expect(pagination).toMatchObject({ total: wanted.length, page: at, per_page: size });
          shown.push(...(items as Json[]));
          if (pagination?.has_more !== true) break;
        }
        expect(new Set(shown.map(({ id }) => id)).size).toBe(wanted.length);
        const values = shown
          .map((job) => job[by] as string | number | undefined)
          .filter((value) => value !== undefined);
        const sorted = [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
        expect(values).toEqual(asc ? sorted : sorted.reverse());
        expect(shown.findLastIndex((job) => job[by] !== undefined)).toBe(values.length - 1);
        for (const job of shown) expect(job).not.toHaveProperty('args');
      }),
      { numRuns: histories(12) },
    );
  });

  it.each([
    ['sort=size', 400, 'sort'],
    ['sort=priority,created_at&sort=x', 400, 'sort'],
    ['order=up', 400, 'order'],
    ['sort=priority&order=descending', 400, 'order'],
    ['sort=priority&state=gone', 400, 'state'],
    ['sort=priority&cursor=abc', 400, 'cursor'],
    ['sort=priority&page=1000&per_page=100', 400, 'page'],
  ])('%s is refused with %i, naming %s', async (query, status, field) => {
    await server.enqueue(queue);
    const answer = await server.call('GET', `/ojs/v1/admin/jobs?${query}`);
    expect(answer).toMatchObject({ status, body: { error: { details: { field } } } });
  });
});

describe('sorting', () => {
  /** A queue with so many rows, made by hand because enqueuing them would take too long. */
  async function crowded(name: string, rows: number): Promise<TestQueue> {
    const inside = new TestQueue(name);
    await inside.enqueue({});
    await inside.inside(({ sql, q }) => {
      sql.exec(
        `WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
         INSERT INTO jobs (key, state, type, priority, attempt, claims, created_at, enqueued_at, body)
         SELECT i, 0, 'test.job', 0, 0, 0, 1, 1, '{}' FROM n`,
        rows,
      );
      q.load();
    });
    return inside;
  }

  it('is refused where too much would have to be read, and works again when the list is narrowed', async () => {
    await crowded(queue, 100_002);
    const scheduled = await server.enqueue(queue, { options: { delay_until: '+PT1H', priority: 4 } });
    const refused = await server.call('GET', '/ojs/v1/admin/jobs?sort=priority');
    expect(refused).toMatchObject({
      status: 422,
      body: { error: { code: 'unsupported', details: { field: 'sort', max_jobs: 100_000 } } },
    });
    expect((await page('per_page=2')).items).toHaveLength(2);
    expect(await list('sort=priority&state=scheduled')).toEqual([scheduled]);
  });

  it('reads in bounded steps', async () => {
    const inside = await crowded(queue, 50_000);
    await inside.startCounting();
    let before: number | undefined;
    let steps = 0;
    do {
      const request = { filter: {}, sort: 'priority', descending: true, limit: 20 } as const;
      const part = unwrap(await inside.api.sorted({ ...request, ...(before !== undefined && { before }) }));
      expect(part.entries).toHaveLength(20);
      const { read, written } = await inside.counted();
      expect(read).toBeLessThan(22_000);
      expect(written).toBe(0);
      before = part.next;
      steps++;
    } while (before !== undefined);
    expect(steps).toBe(3);
  });
});
