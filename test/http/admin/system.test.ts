/** What the deployment says of itself: its configuration without secrets, what surrounds jobs, and unique jobs. */
import { describe, expect, it } from 'vitest';
import { clock, HOUR, iso, T0 } from '../../support/clock';
import { type Json, server, TestServer } from '../../support/server';

server.emptyBeforeEach();
clock.startAtT0();

describe('the configuration', () => {
  const secrets = { API_KEYS: JSON.stringify([{ key: 'sesame-1', name: 'ops', scopes: ['admin:read'] }]) };
  const variables = { ...secrets, TARGET_SECRET: 'sesame-2-sesame-2-sesame-2', DEFAULT_RETRY_LIMIT: '4' };

  it('tells keys by name and scope, targets, limits, defaults and variables, and no secret', async () => {
    const guarded = TestServer.with(variables);
    for (const path of ['/ojs/v1/admin/system/config', '/ojs/v1/admin/config']) {
      const { status, body } = await guarded.call('GET', path, undefined, { Authorization: 'Bearer sesame-1' });
      expect(status).toBe(200);
      expect(JSON.stringify(body)).not.toContain('sesame');
      expect(body).toMatchObject({
        access: { open_to_localhost: false, keys: [{ name: 'ops', scopes: expect.arrayContaining(['admin:read']) }] },
        limits: { max_batch_size: 1000 },
        queue_defaults: { config: {}, effective: { concurrency: 10 } },
        retry: { max_attempts: 5 },
        variables: {
          API_KEYS: { set: true },
          TARGET_SECRET: { set: true },
          DEFAULT_RETRY_LIMIT: { set: true, value: '4' },
          MAX_STORAGE_BYTES: { set: false },
        },
      });
      const targets = body.targets as Json[];
      expect(targets.find(({ name }) => name === 'PLAIN')).toMatchObject({ kind: 'binding', batch_size: 10 });
    }
  });
});

describe('what surrounds a job', () => {
  it('is listed in order, with what each step does', async () => {
    const { enqueue, execution } = (await server.ok(200, 'GET', '/ojs/v1/middleware')) as Record<string, Json[]>;
    for (const steps of [enqueue, execution] as Json[][]) {
      expect(steps.map(({ order }) => order)).toEqual(steps.map((_, index) => index + 1));
      for (const { name, description } of steps)
        expect([typeof name, typeof description]).toEqual(['string', 'string']);
    }
    expect(enqueue?.map(({ name }) => name)).toContain('unique_jobs');
  });
});

describe('unique jobs', () => {
  const list = (query = '') => server.ok(200, 'GET', `/ojs/v1/unique-jobs${query}`);
  const add = (queue: string, key: string, more: Json = {}) =>
    server.add('uniq.job', [], { queue, unique: { key, keys: ['queue'], ...more } });

  it('that keep others away are listed with what they hold, and go when they hold it no more', async () => {
    const first = await add('ua', 'one');
    const second = await add('ub', 'two', { period: 'PT1H' });
    const { items, total } = await list();
    expect(total).toBe(2);
    expect(items).toEqual([
      expect.objectContaining({ job_id: first, type: 'uniq.job', queue: 'ua', state: 'available', locked_until: null }),
      expect.objectContaining({ job_id: second, queue: 'ub', locked_until: iso(T0 + HOUR), created_at: iso(T0) }),
    ]);
    expect(items?.[0]?.key).toMatch(/^[0-9a-f]{64}$/);
    await server.ok(200, 'DELETE', `/ojs/v1/jobs/${first}`);
    expect((await list()).items).toMatchObject([{ job_id: second }]);
    clock.at(HOUR);
    expect(await list()).toMatchObject({ items: [], total: 0, pagination: { total: 0, page: 1, per_page: 20 } });
  });

  it('come in pages, by number and by cursor, each once', async () => {
    const ids = [];
    for (const queue of ['ua', 'ub', 'uc']) {
      for (let n = 0; n < 3; n++) ids.push(await add(queue, `key-${n}`));
    }
    const byPage = [];
    for (let page = 1; page <= 3; page++) {
      const { items = [], pagination } = await list(`?page=${page}&per_page=4`);
      expect(pagination).toMatchObject({ total: 9, page, per_page: 4, has_more: page < 3 });
      byPage.push(...items.map(({ job_id }) => job_id));
    }
    const byCursor = [];
    for (let cursor: unknown = ''; cursor !== null; ) {
      const { items = [], pagination } = await list(`?limit=2${cursor ? `&cursor=${cursor}` : ''}`);
      byCursor.push(...items.map(({ job_id }) => job_id));
      cursor = pagination?.next_cursor;
    }
    expect(byPage.toSorted()).toEqual(ids.toSorted());
    expect(byCursor).toEqual(byPage);
    expect((await list('?queue=ub')).items).toHaveLength(3);
  });

  it('refuse a cursor of another list', async () => {
    expect((await server.call('GET', '/ojs/v1/unique-jobs?cursor=bm9wZQ')).status).toBe(400);
  });
});
