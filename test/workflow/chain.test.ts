/** Chains, over HTTP with a worker that pulls. */

import { describe, expect, it } from 'vitest';
import { until } from '../support/clock';
import { server } from '../support/server';

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

describe('a chain', () => {
  it('starts each step when the one before has completed, and hands on all results so far', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', name: 'order', steps: [step(queue), step(queue), step(queue)] });
    const first = await fetchOne(queue);
    expect(first).toMatchObject({ workflow_id: id, parent_results: [] });
    expect(await fetchJobs(queue)).toEqual([]);
    await ack(first, { total: 42 });
    const second = await work(queue, 'paid');
    expect(second).toMatchObject({ workflow_id: id, parent_results: [{ total: 42 }] });
    const third = await work(queue);
    expect(third.parent_results).toEqual([{ total: 42 }, 'paid']);
    const ended = await workflowIn(id, 'completed');
    expect(ended).toMatchObject({
      id,
      type: 'chain',
      name: 'order',
      steps_total: 3,
      steps_completed: 3,
      completed_at: expect.any(String),
      metadata: { job_count: 3, completed_count: 3, failed_count: 0, completed_at: expect.any(String) },
    });
    expect(ended.steps.map(({ job_id }) => job_id)).toEqual([first.id, second.id, third.id]);
    expect(ended.steps.map(({ depends_on }) => depends_on)).toEqual([[], ['0'], ['1']]);
    expect(await fetchJobs(queue)).toEqual([]);
  });

  it('is answered with its first job, which exists by then', async () => {
    const queue = freshQueue();
    const { status, body } = await server.call('POST', WORKFLOWS, { type: 'chain', steps: [step(queue), step(queue)] });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      state: 'running',
      steps_total: 2,
      steps_completed: 0,
      workflow: { state: 'running' },
    });
    const [first, second] = (await workflow(body.id as string)).steps;
    expect(first).toMatchObject({ id: '0', type: 'test.step', state: 'pending', job_ids: [first?.job_id] });
    expect(second).toMatchObject({ id: '1', state: 'waiting', job_id: null, job_ids: [] });
    expect(await server.job(first?.job_id as string)).toMatchObject({ state: 'available', workflow_id: body.id });
  });

  it('fails with the first step that does not complete; later steps never exist', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue), step(queue)] });
    await work(queue, 1);
    const failed = await fail(queue);
    const ended = await workflowIn(id, 'failed');
    expect(ended).toMatchObject({ steps_total: 3, steps_completed: 1, steps_failed: 1 });
    expect(ended.steps.map(({ state }) => state)).toEqual(['completed', 'failed', 'cancelled']);
    expect(ended.steps[1]).toMatchObject({ job_id: failed.id, error: { code: 'broken', message: 'as ordered' } });
    expect(await fetchJobs(queue)).toEqual([]);
  });

  it('continues while a step is tried again', async () => {
    const queue = freshQueue();
    const patient = { max_attempts: 2, initial_interval: 1, jitter: false };
    const id = await begin({ type: 'chain', steps: [step(queue, { options: { retry: patient } }), step(queue)] });
    await fail(queue);
    expect((await workflow(id)).state).toBe('running');
    expect(await work(queue, 'at last')).toMatchObject({ attempt: 2 });
    expect(await work(queue)).toMatchObject({ parent_results: ['at last'] });
    await workflowIn(id, 'completed');
  });

  it('may go through several queues', async () => {
    const [one, two] = [freshQueue(), freshQueue()];
    const id = await begin({ type: 'chain', steps: [step(one), step(two), step(one)] });
    await work(one, 'a');
    await work(two, 'b');
    expect(await work(one)).toMatchObject({ parent_results: ['a', 'b'] });
    await workflowIn(id, 'completed');
  });

  it.each([
    ['cancelled', (id: string) => server.ok(200, 'POST', `/ojs/v1/jobs/${id}/cancel`)],
    ['expired', undefined],
  ])('fails when a job of it is %s', async (_, cancel) => {
    const queue = freshQueue();
    const options = cancel ? {} : { expires_at: '2020-01-01T00:00:00Z' };
    const id = await begin({ type: 'chain', steps: [step(queue, { options }), step(queue)] });
    const [first] = (await workflow(id)).steps;
    await cancel?.(first?.job_id as string);
    await workflowIn(id, 'failed');
  });

  it('takes a completed step without a result as null', async () => {
    const queue = freshQueue();
    await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    await work(queue);
    expect(await fetchOne(queue)).toMatchObject({ parent_results: [null] });
  });

  it('counts relative times from the start of the step', async () => {
    const queue = freshQueue();
    await begin({ type: 'chain', steps: [step(queue), step(queue, { options: { delay_until: '+PT1H' } })] });
    const first = await fetchOne(queue);
    const before = Date.now();
    await ack(first);
    const { workflow_id } = first;
    const [, second] = await workflowSteps(workflow_id as string);
    const { scheduled_at } = await server.job(second?.job_id as string);
    expect(Date.parse(scheduled_at as string)).toBeGreaterThanOrEqual(before + 3_600_000);
  });
});

async function workflowSteps(id: string) {
  const { steps } = await until(async () => {
    const shown = await workflow(id);
    return shown.steps[1]?.job_id ? shown : undefined;
  }, 'the second step');
  return steps;
}
