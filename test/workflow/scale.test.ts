/** A thousand jobs in one workflow, and what the jobs of workflows cost in rows written. */

import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, it } from 'vitest';
import type { QueueApi } from '../../src/rpc/queue';
import { until } from '../support/clock';
import { TestQueue } from '../support/queue';
import { countRows, startCounting } from '../support/rows';
import { type Json, server } from '../support/server';
import { begin, fetchJobs, fetchOne, freshQueue, step, WORKFLOWS, work, workflow, workflowIn } from './workflows';

const thousand = (queue: string) => Array.from({ length: 1000 }, (_, n) => step(queue, { args: [n] }));

const inStorage = <T>(stub: DurableObjectStub, look: (storage: DurableObjectStorage) => T): Promise<T> =>
  runInDurableObject(stub, (_, state) => look(state.storage));

/** Completes everything that waits in a queue, a hundred jobs at a time and from inside, because this is not about HTTP. */
async function drain(queue: string): Promise<number> {
  let done = 0;
  for (;;) {
    const jobs = await fetchJobs(queue);
    if (jobs.length === 0) return done;
    await new TestQueue(queue).inside(({ instance }) =>
      Promise.all(
        jobs.map((one) =>
          (instance as unknown as QueueApi).settle({
            kind: 'completed',
            job_id: one.id as string,
            result: JSON.stringify((one.args as number[])[0]),
          }),
        ),
      ),
    );
    done += jobs.length;
  }
}

describe('a batch of 1000 jobs', () => {
  it('runs through, calls back once, and hands over every result in its place', async () => {
    const queue = freshQueue();
    const callbacks = { on_success: step(`${queue}-cb`) };
    const id = await begin({ type: 'batch', jobs: thousand(queue), callbacks });
    expect(await workflow(id)).toMatchObject({ jobs_total: 1000, metadata: { job_count: 1000 } });
    expect(await drain(queue)).toBe(1000);
    expect(await workflowIn(id, 'completed')).toMatchObject({ jobs_completed: 1000, jobs_failed: 0 });
    const [callback, ...others] = [await fetchOne(`${queue}-cb`), ...(await fetchJobs(`${queue}-cb`))] as [Json];
    expect(others).toEqual([]);
    expect(callback.parent_results).toEqual(Array.from({ length: 1000 }, (_, n) => n));
    expect(await server.counts(queue)).toMatchObject({ completed: 1000, depth: 0 });
  });
});

describe('the progress of a workflow', () => {
  it('names the state of every job, however much its errors weigh', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: thousand(queue).slice(0, 45) });
    await new TestQueue(queue).inside(({ sql }) => {
      const errors = [{ code: 'e', type: 'e', message: 'm'.repeat(240_000) }];
      sql.exec('UPDATE jobs SET history = ?', JSON.stringify({ errors })).toArray();
    });
    const shown = JSON.stringify(await server.ok(200, 'GET', `${WORKFLOWS}/${id}/progress`));
    expect(shown.split('"state":"available"')).toHaveLength(46);
  });
});

describe('a group of 1000 jobs', () => {
  it('can be cancelled whole', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: thousand(queue) });
    expect(await server.ok(200, 'DELETE', `${WORKFLOWS}/${id}`)).toMatchObject({
      state: 'cancelled',
      steps_cancelled: 1000,
    });
    expect(await server.counts(queue)).toMatchObject({ cancelled: 1000, depth: 0 });
  });

  it('costs few rows beside those of its jobs', async () => {
    const queue = freshQueue();
    const object = new TestQueue(queue);
    await server.setMode(queue, 'pause');
    await server.ok(200, 'POST', `/ojs/v1/queues/${queue}/resume`);
    await object.startCounting();
    const id = await begin({ type: 'group', jobs: thousand(queue) });
    const workflowStub = env.WORKFLOWS.getByName(id);
    await inStorage(workflowStub, startCounting);
    await drain(queue);
    await workflowIn(id, 'completed');
    const left = () => object.rows('SELECT 1 FROM outbox LIMIT 1');
    await until(async () => (await left()).length === 0, 'an empty outbox');
    const [inQueue, inWorkflow] = [await object.counted(), await inStorage(workflowStub, countRows)];
    // The share of each job in blocks, leases and the archive is 0.04; the rest is outbox and starts.
    expect((inQueue.written - inQueue.alarms) / 1000).toBeLessThanOrEqual(0.04 + 0.02);
    expect((inWorkflow.written - inWorkflow.alarms) / 1000).toBeLessThan(0.015);
  });
});

describe('a step of a chain, one by one', () => {
  it('costs four rows in its queue and two in its workflow, besides those of any job and alarms', async () => {
    const queue = freshQueue();
    const object = new TestQueue(queue);
    const id = await begin({ type: 'chain', steps: thousand(queue).slice(0, 6) });
    const workflowStub = env.WORKFLOWS.getByName(id);
    await work(queue, 0);
    await until(async () => (await workflow(id)).steps[1]?.job_id, 'the second step');
    await object.startCounting();
    await inStorage(workflowStub, startCounting);
    for (let n = 1; n <= 4; n++) {
      await work(queue, n);
      await until(async () => (await workflow(id)).steps[n + 1]?.job_id, 'the next step');
    }
    const [inQueue, inWorkflow] = [await object.counted(), await inStorage(workflowStub, countRows)];
    // A job alone that has to wait: block, lease, archive. Its workflow: start, its end in the outbox, the removal of both.
    expect((inQueue.written - inQueue.alarms) / 4).toBeLessThanOrEqual(3 + 4);
    expect((inWorkflow.written - inWorkflow.alarms) / 4).toBeLessThanOrEqual(2);
  });
});

describe('endings that say much', () => {
  it('are kept in rows that the platform takes, and read again', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: Array.from({ length: 100 }, () => step(queue)) });
    const jobs = await fetchJobs(queue);
    const stub = env.WORKFLOWS.getByName(id);
    const message = '語'.repeat(8_000);
    const endings = jobs.map(({ id: job_id }, n) => ({
      ...{ step: n + 1, job_id: job_id as string, end: 'failed' as const, at: Date.now() },
      error: { code: 'too_long', type: 'TooLong', message },
    }));
    await stub.stepsEnded(queue, endings);
    const largest = await inStorage(stub, ({ sql }) =>
      sql.exec<{ n: number }>('SELECT max(length(CAST(data AS BLOB))) AS n FROM parts').one(),
    );
    expect(largest.n).toBeLessThan(1_000_000);
    await evictDurableObject(stub);
    expect(await workflow(id)).toMatchObject({ state: 'failed', jobs_failed: 100 });
  });
});
