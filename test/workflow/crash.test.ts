/** A workflow loses nothing and starts nothing twice, whatever dies between any two steps. */

import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { beforeEach, describe, expect, it } from 'vitest';
import type { QueueParts } from '../../src/queue/store/parts';
import { clock, until } from '../support/clock';
import { failOnce } from '../support/faults';
import { TestQueue } from '../support/queue';
import { type Json, server } from '../support/server';

import {
  ack,
  begin,
  fail,
  fetchJobs,
  fetchOne,
  freshQueue,
  step,
  WORKFLOWS,
  work,
  workflow,
  workflowIn,
} from './workflows';

/** What is inside the objects, as far as these tests tamper with it. */
type Calls = Record<string, (...args: unknown[]) => Promise<unknown>>;
interface WorkflowInside {
  engine: { host: { queue(name: string): Calls; directory(): Calls }; work(): Promise<void> };
}
interface QueueInside {
  engine: { q: QueueParts; host: { others: { workflow(id: string): Calls } }; relay: { start(): void } };
}

const workflowStub = (id: string) => env.WORKFLOWS.getByName(id);

function inWorkflow<T>(id: string, look: (inside: WorkflowInside, sql: SqlStorage) => T): Promise<T> {
  return runInDurableObject(workflowStub(id), (instance, state) =>
    look(instance as unknown as WorkflowInside, state.storage.sql),
  );
}

function inQueue<T>(name: string, look: (inside: QueueInside, sql: SqlStorage) => T): Promise<T> {
  return new TestQueue(name).inside((inside) => look(inside as unknown as QueueInside, inside.sql));
}

const rows = (name: string, table: string) =>
  inQueue(name, (_, sql) => sql.exec<{ n: number }>(`SELECT count(*) AS n FROM ${table}`).one().n);

// The clock stands far in the future: a real alarm then fires only when a test runs it.
beforeEach(() => {
  clock.set(Date.UTC(2040, 0, 1));
});
clock.restoreAfterEach();

/** One that does not run at the moment has nothing to lose. */
const evict = (stub: DurableObjectStub) => evictDurableObject(stub).catch(() => undefined);

const deaths: [string, (id: string, queue: string) => Promise<void>][] = [
  ['the workflow is evicted', (id) => evict(workflowStub(id))],
  ['the queue is evicted', (_, queue) => evict(new TestQueue(queue).stub)],
  ['all objects are aborted', () => abortAllDurableObjects()],
];

/** The alarms that stand by. */
async function alarms(id: string, queue: string): Promise<void> {
  await new TestQueue(queue).alarm();
  await clock.ring(workflowStub(id));
}

describe.each(deaths)('when %s between every two steps', (_, die) => {
  it('a chain with a group and a batch runs to its end, each job once', async () => {
    const queue = freshQueue();
    const id = await begin({
      type: 'chain',
      steps: [
        step(queue),
        { type: 'group', jobs: [step(queue), step(queue)] },
        { type: 'batch', jobs: [step(queue)], callbacks: { on_complete: step(queue) } },
        step(queue),
      ],
    });
    const seen: unknown[] = [];
    for (let n = 0; n < 6; n++) {
      await die(id, queue);
      await alarms(id, queue);
      const next = await fetchOne(queue);
      seen.push(next.id);
      await die(id, queue);
      await ack(next, n);
      await die(id, queue);
    }
    await alarms(id, queue);
    const ended = await workflowIn(id, 'completed');
    expect(new Set(seen).size).toBe(6);
    expect(await fetchJobs(queue)).toEqual([]);
    expect(ended.metadata).toMatchObject({ job_count: 5, completed_count: 5 });
    expect(await server.counts(queue)).toMatchObject({ completed: 6, depth: 0 });
    const last = await server.job(ended.steps[3]?.job_id as string);
    expect(last.parent_results).toHaveLength(3);
  });

  it('a failure is not forgotten', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    await die(id, queue);
    await fail(queue);
    await die(id, queue);
    await alarms(id, queue);
    expect((await workflowIn(id, 'failed')).steps[0]).toMatchObject({ state: 'failed', error: { code: 'broken' } });
  });
});

describe('the way from a workflow to a queue', () => {
  it('takes a job once, also when the answer is lost', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    await inWorkflow(id, ({ engine }) => {
      const { queue: real } = engine.host;
      engine.host.queue = (name) => ({
        startSteps: async (...args) => {
          await real(name).startSteps?.(...args);
          throw new Error('the answer is lost');
        },
      });
    });
    await work(queue, 'first');
    const second = await fetchOne(queue);
    expect((await workflow(id)).steps[1]).toMatchObject({ state: 'pending', job_id: null });
    await evictDurableObject(workflowStub(id));
    await clock.ring(workflowStub(id));
    await until(async () => (await workflow(id)).steps[1]?.job_id === second.id, 'the id of the job');
    expect(await fetchJobs(queue)).toEqual([]);
    await ack(second);
    await workflowIn(id, 'completed');
    expect(await server.counts(queue)).toMatchObject({ completed: 2, depth: 0 });
  });

  it('takes a job once, also when it ends before the answer arrives', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: [step(queue)] });
    const [only] = (await fetchJobs(queue)) as [Json];
    // As if the first answer had been lost and the start were sent again after the end.
    const start = { workflow: id, steps: [{ step: 1, job: { type: 'test.step', priority: 0, body: '{}' } }] };
    const again = () => new TestQueue(queue).stub.startSteps({ ...start, cancelled: false, first: false });
    expect(await again()).toEqual({ ok: true, value: [only.id] });
    await inQueue(queue, ({ engine }) => {
      engine.relay.start = () => undefined;
    });
    await ack(only);
    expect(await again()).toEqual({ ok: true, value: [only.id] });
    expect(await server.counts(queue)).toMatchObject({ completed: 1, depth: 0 });
  });

  it('is gone again later, when the queue could not be reached', async () => {
    const queue = freshQueue();
    const other = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(other)] });
    await inWorkflow(id, ({ engine }) => {
      engine.host.queue = () => ({ startSteps: () => Promise.reject(new Error('overloaded')) });
    });
    await work(queue);
    await until(async () => (await workflow(id)).steps_completed === 1, 'the first step');
    expect(await fetchJobs(other)).toEqual([]);
    await evictDurableObject(workflowStub(id));
    expect(await clock.ring(workflowStub(id))).toBe(true);
    await work(other);
    await workflowIn(id, 'completed');
  });

  it('waits while the queue takes no jobs', async () => {
    const queue = freshQueue();
    const other = freshQueue();
    await begin({ type: 'chain', steps: [step(other)] });
    await work(other);
    const id = await begin({
      type: 'chain',
      steps: [step(queue), { type: 'group', jobs: [step(other), step(other)] }],
    });
    await inQueue(other, ({ engine }) => {
      engine.q.config.draining = true;
    });
    await work(queue);
    await until(async () => (await workflow(id)).steps_completed === 1, 'the first step');
    await inQueue(other, ({ engine }) => {
      engine.q.config.draining = false;
    });
    expect(await clock.ring(workflowStub(id))).toBe(true);
    await work(other);
    await work(other);
    await workflowIn(id, 'completed');
  });

  it('is not begun before the decision is on record', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    await inWorkflow(id, (_, sql) => failOnce(sql, /INSERT INTO parts/));
    await work(queue);
    // The report was refused, so it stays with the queue.
    expect(await rows(queue, 'outbox')).toBe(1);
    expect(await fetchJobs(queue)).toEqual([]);
    clock.set(Date.UTC(2040, 0, 2));
    await new TestQueue(queue).alarm();
    await work(queue);
    await workflowIn(id, 'completed');
    await until(async () => (await rows(queue, 'outbox')) === 0, 'an empty outbox');
  });
});

describe('the way from a queue to a workflow', () => {
  it('is gone again when the queue dies between the end of a job and its report', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    const first = await fetchOne(queue);
    await inQueue(queue, ({ engine }) => {
      engine.relay.start = () => undefined;
    });
    await ack(first, 'kept');
    expect(await workflow(id)).toMatchObject({ steps_completed: 0 });
    await new TestQueue(queue).evict();
    expect(await new TestQueue(queue).alarm()).toBe(true);
    expect(await work(queue)).toMatchObject({ parent_results: ['kept'] });
    await workflowIn(id, 'completed');
  });

  it('may be gone twice: an end has its consequence once', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue), step(queue)] });
    const first = await fetchOne(queue);
    await inQueue(queue, ({ engine }) => {
      const { others } = engine.host;
      const real = others.workflow;
      others.workflow = (name) => ({
        stepsEnded: async (...args) => {
          await real(name).stepsEnded?.(...args);
          throw new Error('the answer is lost');
        },
      });
    });
    await ack(first);
    await until(async () => (await workflow(id)).steps[1]?.job_id, 'the second step');
    expect(await rows(queue, 'outbox')).toBe(1);
    await new TestQueue(queue).evict();
    await new TestQueue(queue).alarm();
    await until(async () => (await rows(queue, 'outbox')) === 0, 'an empty outbox');
    expect(await fetchJobs(queue)).toHaveLength(1);
    expect(await server.counts(queue)).toMatchObject({ completed: 1, active: 1, depth: 1 });
  });

  it('may be gone in any order, by hand, with ends of jobs that never started', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    const told = (node: number) =>
      workflowStub(id).stepsEnded(queue, [{ step: node, end: 'completed', at: Date.now() }]);
    await told(2);
    expect(await workflow(id)).toMatchObject({ state: 'running', steps_completed: 0 });
    await told(1);
    await told(1);
    await told(99);
    await until(async () => (await workflow(id)).steps[1]?.job_id, 'the second step');
    await told(2);
    expect(await workflowIn(id, 'completed')).toMatchObject({ steps_completed: 2 });
  });

  it('leaves nothing behind in the queue', async () => {
    const queue = freshQueue();
    const id = await begin({
      type: 'chain',
      steps: [step(queue), { type: 'group', jobs: [step(queue), step(queue)] }],
    });
    for (let n = 0; n < 3; n++) await work(queue);
    await workflowIn(id, 'completed');
    await until(async () => (await rows(queue, 'outbox')) === 0, 'an empty outbox');
    expect(await rows(queue, 'workflow_starts')).toBe(0);
  });

  it('ends at a workflow that was deleted: its rows are dropped', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: [step(queue)] });
    const only = await fetchOne(queue);
    await workflowStub(id).reset();
    await ack(only);
    await until(async () => (await rows(queue, 'outbox')) === 0, 'an empty outbox');
    expect(await rows(queue, 'workflow_starts')).toBe(0);
  });
});

describe('a cancel', () => {
  it('that is cut off after the decision is carried out by the alarm', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: [step(queue), step(queue)] });
    await inWorkflow(id, ({ engine }) => {
      engine.work = () => Promise.resolve();
    });
    expect(await server.ok(200, 'DELETE', `${WORKFLOWS}/${id}`)).toMatchObject({ state: 'cancelled' });
    expect(await server.counts(queue)).toMatchObject({ available: 2 });
    await evictDurableObject(workflowStub(id));
    expect(await clock.ring(workflowStub(id))).toBe(true);
    await until(async () => (await server.counts(queue)).cancelled === 2, 'the jobs to be cancelled');
    expect(await fetchJobs(queue)).toEqual([]);
  });

  it('reaches jobs of which the workflow does not know whether they exist', async () => {
    const queue = freshQueue();
    const id = await begin({
      type: 'chain',
      steps: [step(queue), { type: 'group', jobs: [step(queue), step(queue)] }],
    });
    const first = await fetchOne(queue);
    await inWorkflow(id, ({ engine }) => {
      const { queue: real } = engine.host;
      engine.host.queue = (name) => ({
        startSteps: async (...args) => {
          await real(name).startSteps?.(...args);
          throw new Error('the answer is lost');
        },
      });
    });
    await ack(first);
    await until(async () => (await server.counts(queue)).available === 2, 'the jobs of the group');
    await evictDurableObject(workflowStub(id));
    await server.ok(200, 'DELETE', `${WORKFLOWS}/${id}`);
    expect(await server.counts(queue)).toMatchObject({ completed: 1, cancelled: 2, depth: 0 });
  });

  it('leaves no job running that is decided on but not enqueued', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    const first = await fetchOne(queue);
    await inWorkflow(id, ({ engine }) => {
      engine.host.queue = () => ({ startSteps: () => Promise.reject(new Error('not reached')) });
    });
    await ack(first);
    await until(async () => (await workflow(id)).steps_completed === 1, 'the first step');
    await evictDurableObject(workflowStub(id));
    await server.ok(200, 'DELETE', `${WORKFLOWS}/${id}`);
    expect(await fetchJobs(queue)).toEqual([]);
    expect(await server.counts(queue)).toMatchObject({ completed: 1, cancelled: 1, depth: 0 });
  });
});

describe('a workflow that has ended', () => {
  it('is removed after its retention, from the list too', async () => {
    await server.ok(200, 'POST', '/ojs/v1/admin/reset');
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue)] });
    await work(queue);
    await workflowIn(id, 'completed');
    await until(
      async () => (await server.ok(200, 'GET', `${WORKFLOWS}?state=completed`)).total === 1,
      'the end on the list',
    );
    await clock.ring(workflowStub(id));
    expect((await workflow(id)).state).toBe('completed');
    clock.set(Date.UTC(2040, 1, 15));
    expect(await clock.ring(workflowStub(id))).toBe(true);
    expect(await server.ok(200, 'GET', WORKFLOWS)).toMatchObject({ total: 0 });
    const left = await inWorkflow(id, (_, sql) =>
      sql.exec("SELECT name FROM sqlite_master WHERE name = 'parts'").toArray(),
    );
    expect(left).toEqual([]);
    expect(await clock.ring(workflowStub(id))).toBe(false);
  });

  it('comes onto the list although the directory could not be reached', async () => {
    await server.ok(200, 'POST', '/ojs/v1/admin/reset');
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue)] });
    await inWorkflow(id, ({ engine }) => {
      engine.host.directory = () => ({ noteWorkflow: () => Promise.reject(new Error('overloaded')) });
    });
    await work(queue);
    await workflowIn(id, 'completed');
    expect(await server.ok(200, 'GET', `${WORKFLOWS}?state=running`)).toMatchObject({ total: 1 });
    await evictDurableObject(workflowStub(id));
    await clock.ring(workflowStub(id));
    await until(
      async () => (await server.ok(200, 'GET', `${WORKFLOWS}?state=completed`)).total === 1,
      'the end on the list',
    );
  });
});
