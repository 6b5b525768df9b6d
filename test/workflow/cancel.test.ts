/** Cancelling workflows. */

import { describe, expect, it } from 'vitest';
import { until } from '../support/clock';
import { type Json, server } from '../support/server';

import { ack, begin, fetchJobs, fetchOne, freshQueue, step, WORKFLOWS, work, workflow, workflowIn } from './workflows';

const cancel = (id: string) => server.ok(200, 'DELETE', `${WORKFLOWS}/${id}`);

describe('cancelling a workflow', () => {
  it('cancels its jobs, in every queue, and starts no others', async () => {
    const [one, two] = [freshQueue(), freshQueue()];
    const id = await begin({
      type: 'chain',
      steps: [
        step(one),
        { type: 'group', jobs: [step(one), step(two), step(two, { options: { delay_until: '1h' } })] },
        step(one),
      ],
    });
    await work(one);
    const running = await fetchOne(two);
    const answer = await cancel(id);
    expect(answer).toMatchObject({
      state: 'cancelled',
      steps_cancelled: 4,
      cancelled_at: expect.any(String),
      workflow: { state: 'cancelled', steps_cancelled: 4, metadata: { completed_count: 1 } },
    });
    const shown = await workflow(id);
    expect(shown.steps.map(({ state }) => state)).toEqual(['completed', 'cancelled', 'cancelled']);
    for (const jobId of shown.steps[1]?.job_ids ?? [])
      expect(await server.job(jobId)).toMatchObject({ state: 'cancelled' });
    expect(shown.steps[1]?.job_ids).toHaveLength(3);
    expect((await server.call('POST', '/ojs/v1/workers/ack', { job_id: running.id })).status).toBe(409);
    expect([...(await fetchJobs(one)), ...(await fetchJobs(two))]).toEqual([]);
    expect((await workflow(id)).state).toBe('cancelled');
  });

  it('cancels jobs that have moved to another queue', async () => {
    const [from, to] = [freshQueue(), freshQueue()];
    const id = await begin({ type: 'group', jobs: [step(from), step(from)] });
    await server.call('DELETE', `/ojs/v1/queues/${from}`, { strategy: 'move', target_queue: to });
    await until(async () => !(await server.queues()).includes(from), 'the jobs to move');
    await cancel(id);
    await until(async () => (await server.counts(to)).cancelled === 2, 'the cancellation');
    expect(await fetchJobs(to)).toEqual([]);
  });

  it('calls no callback', async () => {
    const queue = freshQueue();
    const callbacks = { on_complete: step(`${queue}-cb`), on_failure: step(`${queue}-cb`) };
    const id = await begin({ type: 'batch', jobs: [step(queue), step(queue)], callbacks });
    await work(queue);
    await cancel(id);
    expect(await fetchJobs(`${queue}-cb`)).toEqual([]);
    expect((await workflow(id)).callbacks.on_complete).toMatchObject({ state: 'skipped' });
  });

  it('works by POST …/cancel too', async () => {
    const id = await begin({ type: 'chain', steps: [step(freshQueue())] });
    expect(await server.ok(200, 'POST', `${WORKFLOWS}/${id}/cancel`)).toMatchObject({ state: 'cancelled' });
  });

  it('is refused once it has ended, however it ended', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue)] });
    await work(queue);
    await workflowIn(id, 'completed');
    const before = await workflow(id);
    const refused = await server.call('DELETE', `${WORKFLOWS}/${id}`);
    expect(refused).toMatchObject({
      status: 409,
      body: { error: { code: 'conflict', details: { workflow_id: id, current_state: 'completed' } } },
    });
    expect(await workflow(id)).toEqual(before);
    const other = await begin({ type: 'chain', steps: [step(queue)] });
    await cancel(other);
    expect((await server.call('DELETE', `${WORKFLOWS}/${other}`)).status).toBe(409);
  });

  it('while its last job completes gives the workflow and its job the same outcome', async () => {
    const ends = new Set<string>();
    for (let round = 0; round < 20; round++) {
      const queue = freshQueue();
      const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
      await work(queue);
      const last = await fetchOne(queue);
      const acked = () =>
        ack(last)
          .then(() => undefined)
          .catch(() => undefined);
      const cancelled = () => server.call('DELETE', `${WORKFLOWS}/${id}`);
      const [one, two] = round % 2 === 0 ? [acked(), cancelled()] : [cancelled(), acked()];
      await Promise.all([one, two] as Promise<unknown>[]);
      const { state } = await workflow(id);
      const jobState = (await server.job(last.id as string)).state;
      ends.add(`${state} ${jobState}`);
      expect(await fetchJobs(queue)).toEqual([]);
    }
    for (const end of ends)
      expect(['completed completed', 'cancelled cancelled', 'cancelled completed']).toContain(end);
  });

  it('keeps what had completed before', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'group', jobs: [step(queue), step(queue)] });
    const [one] = (await fetchJobs(queue)) as [Json];
    await ack(one, 'kept');
    await cancel(id);
    expect(await server.job(one.id as string)).toMatchObject({ state: 'completed', result: 'kept' });
  });
});

describe('a job that is redriven', () => {
  it('does not revive the workflow that failed with it', async () => {
    const queue = freshQueue();
    const id = await begin({ type: 'chain', steps: [step(queue), step(queue)] });
    const first = await fetchOne(queue);
    await server.nack(first.id, { error: { code: 'broken' } });
    await workflowIn(id, 'failed');
    await server.ok(200, 'POST', `/ojs/v1/admin/jobs/${first.id}/retry`);
    expect(await work(queue)).toMatchObject({ id: first.id, workflow_id: id });
    expect((await workflow(id)).state).toBe('failed');
    expect(await fetchJobs(queue)).toEqual([]);
  });
});
