/** Jobs of a workflow that do not all fit into their queue at once. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { QueueApi } from '../../src/rpc/queue';
import type { WorkflowEngine } from '../../src/workflow/engine';
import { clock, MINUTE } from '../support/clock';
import { type Json, server } from '../support/server';
import { ack, begin, fetchJobs, freshQueue, step, workflow, workflowIn } from './workflows';

clock.startAtT0();

const stubOf = (id: string) => env.WORKFLOWS.getByName(id);

/** The alarm of a workflow rings after the longest pause, and what it does has ended. */
async function ring(id: string): Promise<void> {
  clock.advance(MINUTE);
  await clock.ring(stubOf(id));
  await runInDurableObject(stubOf(id), (object) => (object as unknown as { engine: WorkflowEngine }).engine.work());
}

const group = (queue: string, count: number, options: (n: number) => Json = () => ({ group: 'g' })) => ({
  type: 'group',
  jobs: Array.from({ length: count }, (_, n) => step(queue, { args: [n], options: options(n) })),
});

/** Runs the workflow as far as it goes. @returns the first argument of each job, in the order in which they ran */
async function run(id: string, queue: string): Promise<unknown[]> {
  const ran: unknown[] = [];
  for (let idle = 0; idle < 2; idle++) {
    for (const job of await fetchJobs(queue)) {
      ran.push((job.args as unknown[])[0]);
      await ack(job);
      idle = 0;
    }
    await ring(id);
  }
  return ran;
}

describe('jobs of a workflow that are more than their queue takes at once', () => {
  it.each<[string, Json]>([
    ['a bound of their group', { groups: { max_waiting: 2 } }],
    ['a bound of their queue in jobs', { max_size: 3 }],
    ['a bound of their queue in bytes', { max_size_bytes: 300 }],
    ['a bound of a queue that drops its oldest', { max_size: 3, overflow_policy: 'drop_oldest' }],
    ['a bound of groups that drop their oldest', { groups: { max_waiting: 3, overflow_policy: 'drop_oldest' } }],
  ])('all run although %s is lower', async (_, settings) => {
    const queue = freshQueue();
    await server.configure(queue, settings);
    const id = await begin(group(queue, 8));
    expect((await run(id, queue)).sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(await workflowIn(id, 'completed')).toMatchObject({ jobs_completed: 8, jobs_failed: 0 });
  });

  it('wait for the room of their own group only', async () => {
    const queue = freshQueue();
    await server.configure(queue, { groups: { max_waiting: 1 } });
    await begin(group(queue, 1, () => ({ group: 'full' })));
    const id = await begin(group(queue, 4, (n) => ({ group: n < 2 ? 'full' : `g${n}` })));
    expect(await server.counts(queue)).toMatchObject({ available: 3 });
    expect((await workflow(id)).steps.map(({ job_id }) => job_id !== null)).toEqual([false, false, true, true]);
  });

  it('wait, while those that are refused for good end with the reason', async () => {
    const queue = freshQueue();
    const { jobs } = group(queue, 3);
    const other = { ...step(queue), type: 'test.other' };
    const id = await begin({ type: 'chain', steps: [step(queue), { type: 'group', jobs: [other, ...jobs] }] });
    await server.configure(queue, { max_size: 2, allowed_job_types: ['test.step'] });
    await ack((await fetchJobs(queue))[0] as Json);
    expect((await run(id, queue)).sort()).toEqual([0, 1, 2]);
    const ended = await workflowIn(id, 'failed');
    const states = ended.steps[1]?.steps.map(({ state }) => state);
    expect(states).toEqual(['failed', 'completed', 'completed', 'completed']);
  });

  it('are taken once each, although the answer is lost and objects are evicted', async () => {
    const queue = freshQueue();
    await server.configure(queue, { max_size: 2 });
    const id = await begin(group(queue, 1));
    await ack((await fetchJobs(queue))[0] as Json);
    await workflowIn(id, 'completed');
    const other = await begin({ type: 'chain', steps: [step(queue, { args: ['first'] }), group(queue, 5)] });
    const lost = await runInDurableObject(stubOf(other), (object) => {
      const { host } = (object as unknown as { engine: { host: { queue(name: string): QueueApi } } }).engine;
      const real = host.queue;
      const calls = { n: 0 };
      host.queue = (name) =>
        ({
          startSteps: async (start: Parameters<QueueApi['startSteps']>[0]) => {
            calls.n++;
            await real(name).startSteps(start);
            throw new Error('the answer is lost');
          },
        }) as unknown as QueueApi;
      return calls;
    });
    await ack((await fetchJobs(queue))[0] as Json);
    await ring(other);
    expect(lost.n).toBeGreaterThan(0);
    await evictDurableObject(stubOf(other));
    expect((await run(other, queue)).sort()).toEqual([0, 1, 2, 3, 4]);
    await workflowIn(other, 'completed');
  });
});

describe('a workflow of the version before', () => {
  it('gets all of its jobs taken, or none', async () => {
    const queue = freshQueue();
    await server.configure(queue, { max_size: 2 });
    const stub = env.QUEUES.getByName(queue) as unknown as QueueApi;
    const job = { type: 'test.step', priority: 0, body: JSON.stringify({ type: 'test.step', args: [], meta: {} }) };
    const start = (count: number) =>
      stub.startSteps({
        workflow: crypto.randomUUID(),
        steps: Array.from({ length: count }, (_, n) => ({ step: n + 1, job })),
        cancelled: false,
        first: true,
      });
    expect(await start(3)).toMatchObject({ ok: false, error: { code: 'QUEUE_FULL', retryable: true } });
    expect(await server.counts(queue)).toMatchObject({ depth: 0 });
    expect(await start(2)).toMatchObject({ ok: true, value: [expect.any(String), expect.any(String)] });
  });
});
