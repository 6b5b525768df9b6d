/** The deployment, its feed and its workflows through the client; and giving up. */

import { beforeEach, describe, expect, it } from 'vitest';
import { AbortedError, InvalidJobError, UnavailableError, WaitTimeoutError } from '../../src/client';
import { freshName } from '../support/queue';
import { server } from '../support/server';

import { errorAnswer, fakeQueue } from './fake-queue';
import { all, liveClient } from './live-client';

server.emptyBeforeEach();
const client = liveClient();
let queue: string;
beforeEach(() => {
  queue = freshName('server');
});

describe('the deployment', () => {
  it('says how it is and what it offers', async () => {
    await client.enqueue('a.b', [], { queue });
    expect(await client.server.health()).toMatchObject({ status: 'ok', queues: { total: 1 } });
    const manifest = await client.server.manifest();
    expect(manifest).toMatchObject({ conformanceLevel: 4, implementation: { name: 'tocsin' } });
    expect(manifest.capabilities.workflows).toBe(true);
  });

  it('that is not well says so, and is not asked again', async () => {
    const { client, requests } = fakeQueue(() => Response.json({ status: 'unhealthy' }, { status: 503 }));
    expect(await client.server.health()).toMatchObject({ status: 'unhealthy' });
    expect(requests).toHaveLength(1);
  });

  it('shows what a retry policy would do', async () => {
    const { effective, delays, decision } = await client.server.previewRetry({
      policy: { maxAttempts: 3, initialInterval: '1s', jitter: false },
      layers: { queue: { onExhaustion: 'dead_letter' } },
      attempts: 2,
      from: 3,
      failure: { errorType: 'Boom', retryAt: new Date(0) },
    });
    expect(effective).toMatchObject({ maxAttempts: 3 });
    expect(delays.map(({ delayMs }) => delayMs)).toEqual([4000, 8000]);
    expect(decision).toMatchObject({ outcome: 'dead_letter', reason: 'retries_exhausted' });
    // @ts-expect-error there is no such strategy
    const wrong = client.server.previewRetry({ policy: { backoffStrategy: 'sideways' } });
    await expect(wrong).rejects.toThrow(InvalidJobError);
  });
});

describe('the feed', () => {
  it('goes from the oldest event on, over pages, and on from where it was left', async () => {
    const jobs = await client.enqueueMany([1, 2, 3].map((n) => ({ type: 'a.b', args: [n], options: { queue } })));
    const types = ['job.enqueued'];
    const events = await all(client.events.list({ queue, types }, { pageSize: 2 }));
    expect(events.map(({ subject }) => subject)).toEqual(jobs.map(({ id }) => id));
    const last = events.at(-1)?.id ?? '';
    expect(await client.events.latest()).toBe(last);
    const { id } = await client.enqueue('a.b', [4], { queue });
    expect((await all(client.events.list({ types, after: last }))).map(({ subject }) => subject)).toEqual([id]);
    expect(await all(client.events.list({ queue, since: new Date(Date.now() + 60_000) }))).toEqual([]);
  });

  it('has no latest event when nothing happened', async () => {
    expect(await client.events.latest()).toBeUndefined();
  });
});

describe('a workflow', () => {
  it('is listed, followed and awaited', async () => {
    const { chain } = client.flow;
    const { id } = await client.workflows.start(chain({ type: 'a.b', args: [] }), {
      name: 'one',
      jobOptions: { queue },
    });
    expect(await all(client.workflows.list({ state: ['running', 'failed'] }))).toMatchObject([{ id, stepCount: 1 }]);
    expect(await client.workflows.progress(id)).toMatchObject({
      workflowId: id,
      progress: 0,
      steps: [{ type: 'a.b' }],
    });
    await expect(client.workflows.wait(id, { timeoutMs: 50 })).rejects.toThrow(WaitTimeoutError);
    const worker = client.worker('w', { queues: [queue] });
    for (const job of await worker.fetch({ waitMs: 5000 })) await worker.ack(job);
    expect(await client.workflows.wait(id)).toMatchObject({ id, state: 'completed' });
    expect(await all(client.workflows.list({ state: 'running' }))).toEqual([]);
  });
});

describe('giving up', () => {
  it('ends a request that is under way', async () => {
    const controller = new AbortController();
    const { client } = fakeQueue(() => {
      controller.abort('no longer wanted');
      throw new Error('aborted');
    });
    const call = client.with({ signal: controller.signal }).enqueue('a', []);
    await expect(call).rejects.toMatchObject({ name: 'AbortedError', outcomeUnknown: true, cause: 'no longer wanted' });
  });

  it('sends nothing afterwards, and waits for no further try', async () => {
    const controller = new AbortController();
    const { client, requests } = fakeQueue(() => errorAnswer(503, 'unavailable', {}, { 'Retry-After': '1' }), {
      signal: controller.signal,
      sleep: async () => controller.abort(),
    });
    await expect(client.get('x')).rejects.toThrow(AbortedError);
    await expect(client.get('x')).rejects.toMatchObject({ outcomeUnknown: false });
    expect(requests).toHaveLength(1);
  });

  it('ends a wait for a job', async () => {
    const controller = new AbortController();
    const { client } = fakeQueue(() => Response.json({ state: 'active' }), {
      signal: controller.signal,
      sleep: () => new Promise(() => controller.abort()),
    });
    await expect(client.jobs.wait('x')).rejects.toThrow(AbortedError);
  });

  it('concerns only the client that was given the signal', async () => {
    const { client } = fakeQueue();
    const given = client.with({ signal: AbortSignal.abort() });
    await expect(given.enqueue('a', [])).rejects.toThrow(AbortedError);
    expect((await client.enqueue('a', [])).id).toBe('id-0');
  });
});

it('an answer of another shape is an error wherever it comes', async () => {
  const { client } = fakeQueue(() => Response.json({}));
  const calls = [
    () => client.jobs.progress('x'),
    () => client.queues.config('x'),
    () => client.rateLimits.get('x'),
    () => client.workers.get('x'),
    () => client.workflows.get('x'),
    () => client.cronGroups.get('x'),
    () => client.server.manifest(),
    () => client.events.list().next(),
    () => client.worker('w', { queues: ['a'] }).fetch(),
  ];
  for (const call of calls) await expect(call()).rejects.toThrow(UnavailableError);
});
