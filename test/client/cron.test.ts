/** Schedules through the client: what is sent, when it is sent again, and that the server understands it. */

import { describe, expect, expectTypeOf, it } from 'vitest';
import {
  ConflictError,
  type CronEntry,
  type CronGroupSummary,
  InvalidJobError,
  NotFoundError,
  TocsinClient,
} from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { errorAnswer, fakeQueue } from './fake-queue';

const entry: CronEntry = { name: 'nightly', expression: '@daily', job: { type: 'report.build', args: [] } };
const shown = () => Response.json({ cron: { name: 'nightly' } });

describe('a schedule', () => {
  it('is sent with every member under its wire name', async () => {
    const { client, requests } = fakeQueue(shown);
    await client.cron.put({
      ...entry,
      job: { type: 'report.build', args: [1], options: { queue: 'reports', delay: 1500, priority: 5 } },
      timezone: 'Europe/Paris',
      overlapPolicy: 'enqueue',
      missedPolicy: 'fire_all',
      maxCatchup: 3,
      startAt: new Date(0),
      endAt: '2030-01-01T00:00:00Z',
      limit: 9,
      enabled: false,
      description: 'd',
    });
    expect(requests).toMatchObject([{ method: 'POST', path: '/cron' }]);
    expect(requests[0]?.body).toEqual({
      name: 'nightly',
      expression: '@daily',
      job_template: {
        type: 'report.build',
        args: [1],
        options: { queue: 'reports', delay_until: '+PT1.500S', priority: 5 },
      },
      timezone: 'Europe/Paris',
      overlap_policy: 'enqueue',
      missed_policy: 'fire_all',
      max_catchup: 3,
      start_at: '1970-01-01T00:00:00.000Z',
      end_at: '2030-01-01T00:00:00Z',
      limit: 9,
      enabled: false,
      description: 'd',
    });
  });

  it('whose jobs would all have the same id is not sent', async () => {
    const { client, requests } = fakeQueue();
    const job = { ...entry.job, options: { id: '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee' } } as CronEntry['job'];
    await expect(client.cron.put({ ...entry, job })).rejects.toThrow(InvalidJobError);
    await expect(client.cronGroups.put('g', [{ ...entry, job }])).rejects.toThrow(InvalidJobError);
    expect(requests).toEqual([]);
  });

  it('is declared again when there was no answer', async () => {
    const { client, requests } = fakeQueue((_, index) => {
      if (index === 0) throw new Error('connection lost');
      return shown();
    });
    expect(await client.cron.put(entry)).toEqual({ name: 'nightly' });
    expect(requests[1]?.body).toEqual(requests[0]?.body);
  });

  it('that was deleted by a try without an answer counts as deleted', async () => {
    const { client, requests } = fakeQueue((_, index) => {
      if (index === 0) throw new Error('connection lost');
      return errorAnswer(404, 'not_found');
    });
    await expect(client.cron.delete('nightly')).resolves.toBeUndefined();
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual(Array(2).fill('DELETE /cron/nightly'));
    await expect(client.cron.delete('nightly')).rejects.toThrow(NotFoundError);
  });

  it('is not triggered again when there was no answer, lest there be two jobs', async () => {
    const { client, requests } = fakeQueue(() => {
      throw new Error('connection lost');
    });
    await expect(client.cron.trigger('nightly')).rejects.toMatchObject({ outcomeUnknown: true });
    expect(requests).toHaveLength(1);
  });

  it('takes the jobs of the job map only', () => {
    const { cron } = new TocsinClient<{ 'mail.send': [string] }>({ url: 'http://localhost' });
    type Accepted = Parameters<typeof cron.put>[0]['job'];
    expectTypeOf<{ type: 'mail.send'; args: [string] }>().toExtend<Accepted>();
    expectTypeOf<{ type: 'mail.send'; args: [number] }>().not.toExtend<Accepted>();
    expectTypeOf<{ type: 'mail.sent'; args: [string] }>().not.toExtend<Accepted>();
  });
});

describe('the server', () => {
  server.emptyBeforeEach();
  const client = new TocsinClient({
    service: { fetch: async (input, init) => server.send(new Request(input, init as RequestInit)) },
  });

  it('takes, shows, pauses, resumes, triggers and deletes a schedule of the client', async () => {
    const queue = freshName('cron');
    const job = { type: 'report.build', args: [{ of: 'sales' }], options: { queue } };
    const { cron } = client;
    expect(await cron.put({ ...entry, job })).toMatchObject({ name: 'nightly', queue, status: 'active', runCount: 0 });
    expect(await cron.pause('nightly')).toMatchObject({ enabled: false, status: 'paused' });
    expect(await cron.put({ ...entry, job })).toMatchObject({ status: 'paused' });
    expect(await cron.resume('nightly')).toMatchObject({ enabled: true });
    expect(await cron.trigger('nightly')).toMatchObject({ type: 'report.build', args: [{ of: 'sales' }], queue });
    expect(await cron.patch('nightly', { expression: '@hourly', limit: 3, job: { ...job, args: [2] } })).toMatchObject({
      expression: '@hourly',
      limit: 3,
      args: [2],
    });
    expect(await cron.patch('nightly', { expression: '@daily', limit: null })).not.toHaveProperty('limit');
    const { executions, skipped } = await cron.history('nightly', { limit: 5 });
    expect(executions).toMatchObject([{ state: 'available', trigger: 'manual' }]);
    expect(skipped).toEqual([]);
    const read = await cron.get('nightly');
    expect(read).toMatchObject({ runCount: 1, fireCount: 0 });
    expect(read.nextFires).toHaveLength(5);
    await cron.delete('nightly');
    await expect(cron.get('nightly')).rejects.toThrow(NotFoundError);
  });

  it('keeps a group as it was declared last', async () => {
    const { cron, cronGroups } = client;
    const named = (name: string): CronEntry => ({ ...entry, name });
    const first = await cronGroups.put('billing', [named('a'), named('b')], { timezone: 'Europe/Paris' });
    expect(first).toMatchObject({ name: 'billing', created: ['a', 'b'], deleted: [] });
    expect(first.entries[0]).toMatchObject({ group: 'billing', timezone: 'Europe/Paris' });
    const second = await cronGroups.put('billing', [{ ...named('b'), timezone: 'Europe/Paris' }, named('c')]);
    expect(second).toMatchObject({ created: ['c'], unchanged: ['b'], updated: [], deleted: ['a'] });
    await expect(cronGroups.put('other', [named('c')])).rejects.toThrow(ConflictError);
    await cron.put(named('loose'));
    const names: string[] = [];
    for await (const { name } of cron.list({ group: 'billing' })) names.push(name);
    expect(names.sort()).toEqual(['b', 'c']);
    expect((await cronGroups.get('billing')).entries.map(({ name }) => name).sort()).toEqual(['b', 'c']);
    const groups: CronGroupSummary[] = [];
    for await (const group of cronGroups.list()) groups.push(group);
    expect(groups).toEqual([{ name: 'billing', count: 2 }]);
    await cronGroups.delete('billing');
    await expect(cronGroups.get('billing')).rejects.toThrow(NotFoundError);
  });
});

it('a list of schedules continues until there are no more', async () => {
  const { client, requests } = fakeQueue((_, index) =>
    Response.json({
      crons: [{ name: `n-${index}` }],
      pagination: { has_more: index < 2, next_cursor: index < 2 ? `after-${index}` : null },
    }),
  );
  const names: string[] = [];
  for await (const { name } of client.cron.list()) names.push(name);
  expect(names).toEqual(['n-0', 'n-1', 'n-2']);
  const cursors = requests.map(({ query }) => query.get('cursor'));
  expect(cursors).toEqual([null, 'after-0', 'after-1']);
});
