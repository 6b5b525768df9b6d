/** Saying how long a job is kept: at enqueue, wherever a job is written, and by PATCH. */

import { beforeEach, describe, expect, it } from 'vitest';
import { TocsinClient } from '../../../src/client';
import { clock, DAY, HOUR, T0 } from '../../support/clock';
import { TestQueue } from '../../support/queue';
import { type Json, server, V1 } from '../../support/server';

server.emptyBeforeEach();
clock.restoreAfterEach();

let queue: TestQueue;
beforeEach(() => {
  clock.set(T0);
  queue = new TestQueue();
});

const status = async (id: string) => (await server.call('GET', `${V1}/jobs/${id}`)).status;
const add = (options: Json = {}) => server.enqueue(queue.name, { options });
const patch = async (id: string, body: Json) => (await server.ok(200, 'PATCH', `${V1}/jobs/${id}`, body)).job as Json;

async function fetchAll(): Promise<string[]> {
  const body = await server.ok(200, 'POST', `${V1}/workers/fetch`, { queues: [queue.name], count: 100 });
  return (body.jobs ?? []).map(({ id }) => id as string);
}

describe('a retention', () => {
  it('is shown as it was given, whichever way the job came, and without what says nothing', async () => {
    const retention = { completed: 'P1D', discarded: 5000, dead_letter: '2w' };
    const options = { queue: queue.name, retention };
    const body = { type: 'test.echo', args: [], options };
    expect((await server.ok(201, 'POST', `${V1}/jobs`, body)).job).toMatchObject({ retention });
    const flat = { type: 'test.echo', args: [], queue: queue.name, retention: { ...retention, cancelled: null } };
    expect((await server.ok(201, 'POST', `${V1}/jobs`, flat)).job?.retention).toEqual(retention);
    expect((await server.ok(201, 'POST', `${V1}/jobs/batch`, { jobs: [body, body] })).jobs?.[1]).toMatchObject({
      retention,
    });
    expect((await server.ok(201, 'POST', `${V1}/jobs/bulk`, { jobs: [body] })).items?.[0]).toBeDefined();
    const ids = await fetchAll();
    expect(ids).toHaveLength(5);
    for (const id of ids) expect((await server.job(id)).retention).toEqual(retention);
    for (const nothing of [null, {}, { completed: null }]) {
      expect(await server.job(await add({ retention: nothing }))).not.toHaveProperty('retention');
    }
  });

  it('of a cron entry and of a workflow step is that of its jobs', async () => {
    const retention = { completed: '2h' };
    const entry = { name: queue.name, expression: '@daily', type: 'test.echo', queue: queue.name, retention };
    await server.ok(201, 'POST', `${V1}/cron`, entry);
    await server.ok(201, 'POST', `${V1}/cron/${queue.name}/trigger`);
    const steps = [{ type: 'test.echo', args: [], options: { queue: queue.name, retention } }];
    await server.ok(201, 'POST', `${V1}/workflows`, { type: 'chain', steps });
    await expect.poll(() => queue.counts()).toEqual({ available: 2 });
    for (const id of await fetchAll()) expect(await server.job(id)).toMatchObject({ retention });
  });

  it.each<[string, unknown, string]>([
    ['no object', 'P1D', 'retention'],
    ['a list', [], 'retention'],
    ['a number', 5, 'retention'],
    ['an end nobody knows', { failed: 'P1D' }, 'retention.failed'],
    ['no duration', { completed: 'soon' }, 'retention.completed'],
    ['a negative duration', { discarded: -1 }, 'retention.discarded'],
    ['months', { cancelled: 'P1M' }, 'retention.cancelled'],
    ['true', { dead_letter: true }, 'retention.dead_letter'],
    ['more than a hundred years', { completed: 'P36501D' }, 'retention.completed'],
  ])('that is %s is refused, and nothing is enqueued or changed', async (_, retention, field) => {
    const refusedAt = async (body: Json, path: string, method = 'POST', url = `${V1}/jobs`) => {
      const answer = await server.call(method, url, body);
      expect(answer.status, JSON.stringify(answer.body)).toBe(400);
      expect(answer.body.error?.details?.field).toBe(path);
    };
    const id = await add({ priority: 1, retention: { completed: 'P3D' } });
    const before = await server.job(id);
    await refusedAt({ type: 'test.echo', args: [], queue: queue.name, retention }, field);
    await refusedAt({ type: 'test.echo', args: [], options: { queue: queue.name, retention } }, `options.${field}`);
    await refusedAt({ retention }, field, 'PATCH', `${V1}/jobs/${id}`);
    expect(await server.job(id)).toEqual(before);
    expect(await queue.counts()).toEqual({ available: 1 });
  });
});

describe('a change of retention', () => {
  it('touches only what it names; null goes back to what the queue says', async () => {
    const id = await add({ delay_until: '+PT1H', retention: { completed: 'P1D', discarded: '3h' } });
    expect((await patch(id, { retention: { discarded: '9h', cancelled: 0 } })).retention).toEqual({
      completed: 'P1D',
      discarded: '9h',
      cancelled: 0,
    });
    expect((await patch(id, { options: { retention: { completed: null } } })).retention).toEqual({
      discarded: '9h',
      cancelled: 0,
    });
    expect((await patch(id, { retention: {} })).retention).toEqual({ discarded: '9h', cancelled: 0 });
    expect((await patch(id, { priority: 3 })).retention).toEqual({ discarded: '9h', cancelled: 0 });
    expect(await patch(id, { retention: { discarded: null, cancelled: null } })).not.toHaveProperty('retention');
    await patch(id, { retention: { cancelled: '1h' } });
    expect(await patch(id, { retention: null })).not.toHaveProperty('retention');
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await queue.passTo(T0 + 2 * HOUR);
    expect(await status(id)).toBe(200);
  });

  it('is what counts when the job ends', async () => {
    const [sooner, later] = [await add({ retention: { completed: 'P9D' } }), await add()];
    await patch(sooner, { retention: { completed: '1h' } });
    await patch(later, { retention: { completed: 'P9D' } });
    for (const id of await fetchAll()) await server.ack(id);
    await queue.passTo(T0 + 8 * DAY);
    expect([await status(sooner), await status(later)]).toEqual([404, 200]);
    await queue.passTo(T0 + 9 * DAY);
    expect(await status(later)).toBe(404);
  });

  it('is refused once the job runs or has ended', async () => {
    const id = await add();
    await fetchAll();
    expect((await server.call('PATCH', `${V1}/jobs/${id}`, { retention: { completed: 0 } })).status).toBe(409);
  });
});

it('retention is set and changed through the client', async () => {
  const service = { fetch: (url: string, init?: RequestInit) => Promise.resolve(server.send(new Request(url, init))) };
  const tocsin = new TocsinClient({ service });
  const options = { queue: queue.name, delay: '1h', retention: { completed: 'P1D', cancelled: 1000 } } as const;
  const made = await tocsin.enqueue('test.echo', [], options);
  expect((await tocsin.get(made.id)).retention).toEqual(options.retention);
  const changed = await tocsin.patch(made.id, { retention: { completed: null, deadLetter: '2w' } });
  expect(changed.retention).toEqual({ cancelled: 1000, deadLetter: '2w' });
  expect(await tocsin.patch(made.id, { retention: null })).not.toHaveProperty('retention');
});
