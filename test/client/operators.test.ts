/** What operators do through the client, against the queue itself. */
import { describe, expect, it } from 'vitest';
import { InvalidJobError, NotFoundError } from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';
import { all, liveClient } from './live-client';

server.emptyBeforeEach();

describe('numbers', () => {
  it('are read now, over time, by type, and by what they cost', async () => {
    const tocsin = liveClient();
    const queue = freshName('numbers');
    await tocsin.enqueue('mail.send', [], { queue });
    await tocsin.enqueue('mail.send', [], { queue });
    const stats = await tocsin.stats.get(queue);
    expect(stats).toMatchObject({ queuesTotal: 1, errorRate: 0, suspendedTargets: [] });
    expect(stats.jobs).toMatchObject({ available: 2, completed: 0 });
    expect(stats.throughput.enqueuedPerMinute).toBe(2);
    expect(Date.parse(stats.oldestAvailableAt as string)).toBeLessThanOrEqual(Date.parse(stats.computedAt));
    const history = await tocsin.stats.history({ period: '1m', since: '5m', queue });
    expect(history.reduce((sum, { enqueued }) => sum + enqueued, 0)).toBe(2);
    expect(await tocsin.stats.types(queue)).toMatchObject([{ queue, type: 'mail.send', enqueued: 2, completed: 0 }]);
    const { items, total } = await tocsin.stats.cost(queue);
    expect(items.find(({ type }) => type === 'mail.send')?.jobs).toBe(2);
    expect(total.rowsWritten).toBeGreaterThan(0);
    await expect(tocsin.stats.get(freshName('none'))).rejects.toThrow(NotFoundError);
  });
});

describe('maintenance', () => {
  it('begins, is seen, and ends', async () => {
    const tocsin = liveClient();
    expect(await tocsin.maintenance.get()).toMatchObject({ enabled: false, startedAt: null });
    const begun = await tocsin.maintenance.begin({ reason: 'moving', duration: '20m' });
    expect(begun).toMatchObject({ enabled: true, reason: 'moving' });
    const lasts = Date.parse(begun.endsAt as string) - Date.parse(begun.startedAt as string);
    expect(lasts).toBeGreaterThan(1_190_000);
    expect(lasts).toBeLessThanOrEqual(1_200_000);
    expect(await tocsin.maintenance.get()).toMatchObject({ enabled: true });
    expect(await tocsin.maintenance.end()).toMatchObject({ enabled: false });
    await expect(tocsin.maintenance.begin({ duration: '0s' })).rejects.toThrow(InvalidJobError);
  });
});

describe('webhooks and alert rules', () => {
  it('are made, changed, read and removed; what the user remembers with them keeps its names', async () => {
    const tocsin = liveClient();
    const metadata = { owner_name: 'ann', teamId: 7, nested: { so_it: 'is' } };
    const url = 'https://a.hooks.example/tocsin';
    const { id, secret } = await tocsin.webhooks.create({ url, events: ['job.discarded'], metadata });
    expect(secret).toMatch(/^whsec_/);
    expect(await tocsin.webhooks.get(id)).toMatchObject({ url, active: true, metadata, successCount: 0 });
    expect(await all(tocsin.webhooks.list())).toMatchObject([{ id, metadata }]);
    const changed = await tocsin.webhooks.change(id, { active: false, metadata: null, filter: { types: ['a.*'] } });
    expect(changed).toMatchObject({ active: false, filter: { types: ['a.*'] } });
    expect(changed).not.toHaveProperty('metadata');
    expect(await tocsin.webhooks.rotateSecret(id)).not.toBe(secret);
    expect(await all(tocsin.webhooks.deliveries({ subscription: id }))).toEqual([]);
    await expect(tocsin.webhooks.delivery('none')).rejects.toThrow(NotFoundError);

    const rule = { name: 'late', metric: 'oldest_age', above: '5m', for: '1m', subscriptionId: id } as const;
    const alert = await tocsin.alerts.create(rule);
    expect(alert).toMatchObject({ above: 300, for: 'PT1M', state: 'ok', subscriptionId: id, queue: null });
    expect(await tocsin.alerts.change(alert.id, { above: 60, subscriptionId: null })).toMatchObject({ above: 60 });
    expect(await all(tocsin.alerts.list())).toMatchObject([{ id: alert.id, subscriptionId: null }]);
    await tocsin.alerts.delete(alert.id);
    await expect(tocsin.alerts.get(alert.id)).rejects.toThrow(NotFoundError);
    await tocsin.webhooks.delete(id);
    expect(await all(tocsin.webhooks.list())).toEqual([]);
  });

  it('refuse what is wrong', async () => {
    const tocsin = liveClient();
    const create = tocsin.webhooks.create({ url: 'https://a.hooks.example/', events: ['job.unheard_of'] });
    await expect(create).rejects.toThrow(InvalidJobError);
    await expect(tocsin.alerts.create({ name: 'x', metric: 'depth', above: -1 })).rejects.toThrow(InvalidJobError);
  });
});

describe('the audit log', () => {
  it('says what was changed, in the names in which it was said', async () => {
    const tocsin = liveClient();
    const queue = freshName('audited');
    await tocsin.queues.configure(queue, { maxSize: 10 });
    await tocsin.queues.pause(queue);
    const entries = await all(tocsin.audit.list({ queue }, { pageSize: 1 }));
    expect(entries.map(({ action, target }) => [action, target])).toEqual([
      ['queue.pause', queue],
      ['queue.configure', queue],
    ]);
    expect(entries[1]).toMatchObject({ change: { max_size: 10 }, status: 200, actor: { keyHint: null } });
    expect(await all(tocsin.audit.list({ queue, action: ['queue.pause'], since: '1h' }))).toHaveLength(1);
  });
});

describe('schemas and pools', () => {
  it('keep the names of what they are about', async () => {
    const tocsin = liveClient();
    const schema = { prefixItems: [{ properties: { userId: {}, user_id: {} } }], minItems: 1 };
    expect(await tocsin.schemas.put('mail.send', 1, schema)).toMatchObject({ type: 'mail.send', version: 1, schema });
    await tocsin.schemas.put('mail.send', 2, { maxItems: 2 });
    expect(await tocsin.schemas.get('mail.send')).toMatchObject({ version: 2 });
    expect((await tocsin.schemas.get('mail.send', 1)).schema).toEqual(schema);
    expect(await all(tocsin.schemas.list())).toHaveLength(2);
    await tocsin.schemas.delete('mail.send', 1);
    await expect(tocsin.schemas.get('mail.send', 1)).rejects.toThrow(NotFoundError);
    await tocsin.schemas.delete('mail.send', 2);

    const [first, second] = [freshName('first'), freshName('second')] as [string, string];
    const name = freshName('pool');
    const pool = await tocsin.pools.put(name, { queues: [first, second], weights: { [first]: 3 } });
    expect(pool).toMatchObject({ strategy: 'weighted', weights: { [first]: 3, [second]: 1 }, activeJobs: 0 });
    expect(await tocsin.pools.get(name)).toEqual(pool);
    expect((await all(tocsin.pools.list())).map((one) => one.name)).toContain(name);
    const { queues, stats } = await tocsin.pools.stats(name);
    expect(queues.map((one) => one.weight)).toEqual([3, 1]);
    expect(Object.keys(stats.since)).toEqual([name]);
    await tocsin.pools.delete(name);
    await expect(tocsin.pools.get(name)).rejects.toThrow(NotFoundError);
  });
});
