/** Keeping ended jobs for less time removes them, so it takes the scope of removing them, whatever setting does it. */

import { beforeEach, describe, expect, it } from 'vitest';
import { freshName } from '../../support/queue';
import { type Json, server, TestServer, V1 } from '../../support/server';

server.emptyBeforeEach();

const guarded = TestServer.with({
  API_KEYS: JSON.stringify([
    { key: 'producer', scopes: ['data:read', 'data:write'] },
    { key: 'operator', scopes: ['data:read', 'data:write', 'admin:read', 'admin:write'] },
    { key: 'owner', scopes: ['data:read', 'data:write', 'admin:read', 'admin:write', 'admin:purge'] },
  ]),
});
const as = (key: string, method: string, path: string, body: unknown) =>
  guarded.call(method, V1 + path, body, { Authorization: `Bearer ${key}` });

let queue: string;
beforeEach(() => {
  queue = freshName('kept');
});

const settingsOf = async (name: string) => (await server.ok(200, 'GET', `${V1}/queues/${name}/config`)).config;

describe('settings that keep ended jobs for less time than now', () => {
  it.each<[string, Json]>([
    ['retention.completed', { retention: { completed: 'PT0S' } }],
    ['retention.discarded', { retention: { discarded: '29d' } }],
    ['retention.cancelled', { retention: { cancelled: 0 } }],
    ['dead_letter.retention.max_age', { dead_letter: { retention: { max_age: '1d' } } }],
    ['dead_letter.retention.max_count', { dead_letter: { retention: { max_count: 0 } } }],
    ['max_storage_bytes', { max_storage_bytes: 1_000_000 }],
  ])('%s takes the purge scope, for one queue and for all', async (field, change) => {
    await server.enqueue(queue);
    for (const [key, path] of [
      ['producer', `/queues/${queue}/config`],
      ['operator', `/admin/queues/${queue}/config`],
      ['producer', '/queues/_default/config'],
      ['operator', '/admin/queues/_default/config'],
    ] as const) {
      const answer = await as(key, 'PUT', path, { concurrency: 3, ...change });
      expect(answer).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } });
      expect(answer.body.error?.details).toEqual({ field, required_scope: 'admin:purge' });
      expect(await settingsOf(queue)).toEqual({});
      expect(await settingsOf('_default')).toEqual({});
    }
    for (const path of [`/queues/${queue}/config`, '/queues/_default/config']) {
      expect((await as('owner', 'PUT', path, change)).status).toBe(200);
    }
  });

  it('are seen where a setting goes back to a lower one, and what keeps longer is free', async () => {
    await server.enqueue(queue);
    const put = async (change: Json) => (await as('producer', 'PUT', `/queues/${queue}/config`, change)).status;
    expect(await put({ retention: { completed: '30d' } })).toBe(200);
    expect(await put({ retention: { completed: '30d', cancelled: '8d' }, concurrency: 2 })).toBe(200);
    expect(await put({ retention: null })).toBe(403);
    expect(await put({ retention: { completed: null } })).toBe(403);
    expect(await put({ retention: { completed: '29d' } })).toBe(403);
    expect(await put({ dead_letter: { retention: { max_count: 20_000 } } })).toBe(200);
    expect(await put({ dead_letter: null })).toBe(403);
    expect(await put({ concurrency: null })).toBe(200);
    expect(await put({ max_storage_bytes: 9_500_000_000 })).toBe(200);
    expect(await put({ max_storage_bytes: 9_000_000_000 })).toBe(403);
    expect((await as('owner', 'PUT', `/queues/${queue}/config`, { max_storage_bytes: 2_000_000 })).status).toBe(200);
    expect(await put({ max_storage_bytes: 3_000_000 })).toBe(200);
    expect(await put({ max_storage_bytes: 2_500_000 })).toBe(403);
    const one = await as('owner', 'PUT', `/queues/${queue}/config`, { retention: { completed: null } });
    expect(one.body.config).toMatchObject({ retention: { cancelled: 'P8D' } });
    expect((one.body.config as Json).retention).not.toHaveProperty('completed');
  });

  it('are free while nothing is kept: for a queue that is new', async () => {
    expect((await as('producer', 'POST', '/queues', { name: queue, retention: { completed: 0 } })).status).toBe(201);
    expect((await as('producer', 'PUT', `/queues/${queue}/config`, { retention: { cancelled: 0 } })).status).toBe(200);
  });
});

describe('the retention of a job that waits', () => {
  it('is lowered with the purge scope only, and raised with any', async () => {
    const id = await server.enqueue(queue, { options: { retention: { completed: '30d' } } });
    const patch = (key: string, retention: unknown) => as(key, 'PATCH', `/jobs/${id}`, { priority: 5, retention });
    for (const retention of [{ completed: 0 }, { completed: '29d' }, { dead_letter: '1d' }, null]) {
      expect(await patch('producer', retention)).toMatchObject({ status: 403, body: { error: { code: 'forbidden' } } });
      expect(await server.job(id)).toMatchObject({ priority: 0, retention: { completed: '30d' } });
    }
    expect((await patch('producer', { completed: '31d', cancelled: '7d' })).status).toBe(200);
    expect((await patch('owner', { completed: 0 })).status).toBe(200);
  });
});
