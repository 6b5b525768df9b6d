/** How lists are read: by cursor or by page, and what operators see when they say nothing. */

import { beforeEach, describe, expect, it } from 'vitest';
import { type Json, server, V1 } from '../support/server';

server.emptyBeforeEach();

const group = { type: 'group', jobs: [{ type: 'a.b', args: [] }] };
const names = ['l1', 'l2', 'l3', 'l4', 'l5'];

beforeEach(async () => {
  for (const name of names) {
    await server.ok(201, 'POST', `${V1}/queues`, { name });
    await server.ok(201, 'POST', `${V1}/cron`, {
      name,
      cron: '@daily',
      type: 'a.b',
      args: [],
      options: { queue: name },
    });
    await server.ok(200, 'PUT', `${V1}/cron-groups/${name}`, {
      entries: [{ name: `of-${name}`, cron: '@daily', type: 'a.b', args: [], options: { queue: name } }],
    });
    await server.ok(200, 'POST', `${V1}/workers/heartbeat`, { worker_id: name, active_jobs: [] });
    await server.ok(201, 'POST', `${V1}/workflows`, group);
  }
});

type Page = Json & { pagination: { next_cursor: string | null; has_more: boolean; per_page: number } };

/** Every entry of a list, two at a time. */
async function walk(path: string, list: string): Promise<Json[]> {
  const found: Json[] = [];
  let cursor: string | null = '';
  while (cursor !== null) {
    const page = (await server.ok(
      200,
      'GET',
      `${path}?limit=2${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
    )) as Page;
    expect((page[list] as Json[]).length).toBeLessThanOrEqual(2);
    found.push(...(page[list] as Json[]));
    expect(page.pagination.has_more).toBe(page.pagination.next_cursor !== null);
    cursor = page.pagination.next_cursor;
  }
  return found;
}

describe('a cursor', () => {
  it.each([
    ['/queues', 'queues', 'name'],
    ['/cron', 'crons', 'name'],
    ['/crons', 'items', 'name'],
    ['/cron-groups', 'groups', 'name'],
    ['/workflows', 'workflows', 'id'],
    ['/admin/queues', 'items', 'name'],
    ['/admin/workers', 'items', 'id'],
  ])('leads through all of %s, each once', async (path, list, id) => {
    const found = await walk(V1 + path, list);
    const { pagination } = (await server.ok(200, 'GET', `${V1}${path}`)) as { pagination: Json };
    expect(new Set(found.map((entry) => entry[id])).size).toBe(found.length);
    expect(found).toHaveLength(pagination.total as number);
    expect(found.length).toBeGreaterThanOrEqual(names.length);
    expect(await server.call('GET', `${V1}${path}?cursor=none`)).toMatchObject({ status: 400 });
  });

  it('continues where the last page ended, whatever came and went', async () => {
    const first = (await server.ok(200, 'GET', `${V1}/workflows?limit=2`)) as Page;
    await server.ok(201, 'POST', `${V1}/workflows`, group);
    const path = `${V1}/workflows?limit=2&cursor=${first.pagination.next_cursor}`;
    const ids = (page: Json) => (page.workflows as Json[]).map(({ id }) => id);
    expect(ids(await server.ok(200, 'GET', path)).filter((id) => ids(first).includes(id))).toEqual([]);
  });
});

describe("operators' lists", () => {
  it.each(['/admin/jobs', '/admin/queues', '/admin/workers', '/admin/dead-letter', '/crons'])(
    'show twenty when nothing is said, and items: %s',
    async (path) => {
      const page = (await server.ok(200, 'GET', V1 + path)) as Page;
      expect(page.pagination.per_page).toBe(20);
      expect(page.items).toBeInstanceOf(Array);
    },
  );
});
