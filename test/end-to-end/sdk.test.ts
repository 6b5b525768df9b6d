import { describe, expect, it } from 'vitest';
import { until } from '../support/clock';
import { Gate, runsOf } from '../support/handlers';
import { TestQueue } from '../support/queue';
import { server, V1 } from '../support/server';
import { followersOf } from '../support/streams';

import {
  client,
  Durable,
  type Json,
  reportProgress,
  type SdkError,
  type SdkEvent,
  SdkWorker,
  subscribeJob,
  subscribeQueue,
} from './sdk';

server.emptyBeforeEach();

/** Retries at once, so that the next poll sees the job again. */
const retry = { max_attempts: 3, initial_interval: 'PT0S', jitter: false };

describe('a client written for the OJS SDK', () => {
  it('enqueues, and its worker runs what was enqueued', async () => {
    const job = await client.enqueue('email.send', [{ to: 'a@example.com' }], {
      queue: 'mail',
      priority: 5,
      retry: { max_attempts: 5 },
      tags: ['welcome'],
      meta: { user: 1 },
      visibility_timeout_ms: 10_000,
    });
    expect(job).toMatchObject({ specversion: '1.0', queue: 'mail', state: 'available', priority: 5, max_attempts: 5 });
    const batch = await client.enqueueBatch([
      { type: 'email.send', args: [{ to: 'b@example.com' }], options: { queue: 'mail' } },
      { type: 'email.send', args: [{ to: 'c@example.com' }], options: { queue: 'mail', delay_until: '+PT1H' } },
    ]);
    expect(batch.map(({ state }) => state)).toEqual(['available', 'scheduled']);

    const worker = new SdkWorker(['mail'], { 'email.send': async ({ args }) => ({ sent: args }) });
    await worker.drain();
    expect(await client.getJob(job.id as string)).toMatchObject({
      state: 'completed',
      attempt: 1,
      result: { sent: [{ to: 'a@example.com' }] },
    });
    expect(await client.queueStats('mail')).toMatchObject({ completed: 2, scheduled: 1, paused: false });
    expect(await client.queues()).toMatchObject([{ name: 'mail', paused: false }]);
  });

  it('learns by code what it may not do', async () => {
    const job = await client.enqueue('a.b', [], { queue: 'q' });
    const id = job.id as string;
    expect(await client.cancelJob(id)).toMatchObject({ id, state: 'cancelled' });
    const codeOf = async (call: Promise<unknown>) =>
      call.then(
        () => 'no error',
        (error: SdkError) => [error.status, error.code],
      );
    expect(await codeOf(client.cancelJob(id))).toEqual([409, 'conflict']);
    expect(await codeOf(client.getJob('019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e61'))).toEqual([404, 'not_found']);
    expect(await codeOf(client.enqueue('Not A Type', []))).toEqual([400, 'invalid_request']);
    expect(await codeOf(client.enqueue('a.b', [], { retry: { max_attempts: -1 } }))).toEqual([422, 'invalid_request']);
  });

  it('pauses and resumes a queue without sending a body', async () => {
    await client.enqueue('a.b', [], { queue: 'q' });
    const worker = new SdkWorker(['q'], { 'a.b': async () => 1 });
    await client.pause('q');
    expect(await worker.poll()).toBe(0);
    await client.resume('q');
    expect(await worker.poll()).toBe(1);
  });

  it('sees a failing job through its attempts into the dead letters, and out again', async () => {
    const { id } = await client.enqueue('a.b', [], { queue: 'q', retry: { ...retry, on_exhaustion: 'dead_letter' } });
    let broken = true;
    const worker = new SdkWorker(['q'], {
      'a.b': async () => {
        if (broken) throw new TypeError('out of order');
        return 'repaired';
      },
    });
    await worker.drain();
    const [dead] = await client.listDeadLetter();
    expect(dead).toMatchObject({
      id,
      state: 'discarded',
      attempt: 3,
      error: { code: 'handler_error', message: 'out of order' },
    });
    broken = false;
    await client.retryDeadLetter(id as string);
    await worker.drain();
    expect(await client.getJob(id as string)).toMatchObject({ state: 'completed', attempt: 1, result: 'repaired' });
    expect(await client.listDeadLetter()).toEqual([]);

    const other = await client.enqueue('nobody.knows', [], { queue: 'q', retry: { on_exhaustion: 'dead_letter' } });
    await worker.drain();
    expect(await client.listDeadLetter()).toMatchObject([{ id: other.id, error: { code: 'handler_not_found' } }]);
    await client.discardDeadLetter(other.id as string);
    await expect(client.getJob(other.id as string)).rejects.toMatchObject({ status: 404 });
  });

  it('keeps its leases with heartbeats, reports progress and obeys directives', async () => {
    const { id } = await client.enqueue('a.b', [], { queue: 'q' });
    const seen: Json[] = [];
    const worker: SdkWorker = new SdkWorker(['q'], {
      'a.b': async (job) => {
        await reportProgress(job.id as string, 40, 'under way', { rows: 4 });
        seen.push(await client.getJob(job.id as string), await worker.heartbeat());
        await server.ok(200, 'POST', `${V1}/admin/workers/directive`, { directive: 'quiet' });
        seen.push(await worker.heartbeat());
      },
    });
    await worker.heartbeat();
    await worker.poll();
    expect(seen).toMatchObject([
      { progress: 0.4, progress_data: { rows: 4 } },
      { state: 'running', jobs_extended: [id] },
      { state: 'quiet', jobs_extended: [id] },
    ]);
    expect(worker.state).toBe('quiet');
    expect(await client.getJob(id as string)).toMatchObject({ state: 'completed' });
    expect(await server.ok(200, 'GET', `${V1}/admin/workers`)).toMatchObject({
      items: [{ id: worker.id, state: 'quiet', queues: ['q'], concurrency: 10, pid: null }],
    });
    expect(await client.health()).toMatchObject({ status: 'ok', workers: { total: 1, active: 1, stale: 0 } });
  });

  it('finds the checkpoint of the attempt before, under the prefix it sets twice', async () => {
    const { id } = await client.enqueue('etl.run', [], { queue: 'q', retry });
    const effects: string[] = [];
    const worker = new SdkWorker(['q'], {
      'etl.run': async (job) => {
        const durable = await Durable.create(job.id as string, job.attempt as number);
        const effect = (name: string) =>
          durable.sideEffect(name, async () => {
            effects.push(name);
            return name.toUpperCase();
          });
        const first = await effect('extract');
        await durable.checkpoint(1, { rows: 10 });
        if (job.attempt === 1) throw new Error('crashed between the steps');
        expect(job.checkpoint).toEqual({ state: { rows: 10 }, sequence: 1 });
        const second = await effect('load');
        await durable.complete();
        return [first, second];
      },
    });
    await worker.drain();
    expect(effects).toEqual(['extract', 'load']);
    expect(await client.getJob(id as string)).toMatchObject({
      state: 'completed',
      attempt: 2,
      result: ['EXTRACT', 'LOAD'],
    });
    const resume = await server.ok(200, 'GET', `/ojs/v1${V1}/checkpoints/${id}/resume`);
    expect(resume).toEqual({ has_checkpoint: false });
  });
});

describe('a handler Worker written for the OJS SDK', () => {
  const deliver = async (answer: Json) => {
    const gate = new Gate('PLAIN');
    const [order] = gate.args as [Json];
    const options = { queue: 'pushed', timeout_ms: 20_000, retry };
    const job = await client.enqueue('bare.job', [{ ...order, ...answer }], options);
    await gate.waiting(1);
    return { id: job.id as string, gate };
  };

  it('is given the bare job, acknowledges it by itself, and its answer changes nothing more', async () => {
    const { id, gate } = await deliver({ status: 200 });
    const [run] = await runsOf('PLAIN', id);
    expect(run?.body).toMatchObject({ specversion: '1.0', id, type: 'bare.job', state: 'active', attempt: 1 });
    expect(run?.headers['x-ojs-job-id']).toBe(id);
    await server.ok(200, 'POST', `${V1}/jobs/${id}/ack`);
    await gate.open();
    const job = await server.jobIn(id, 'completed');
    expect(job).not.toHaveProperty('result');
    expect(await client.queueStats('pushed')).toMatchObject({ completed: 1, available: 0 });
  });

  it('reports its failure by itself, before it answers 500', async () => {
    const { id, gate } = await deliver({ status: 500 });
    const answer = await server.ok(200, 'POST', `${V1}/jobs/${id}/nack`, { error: 'no such template' });
    expect(answer).toMatchObject({ job_id: id, attempt: 1, max_attempts: 3 });
    await gate.open();
    const job = await server.jobIn(id, 'discarded');
    expect((job.errors as Json[])[0]).toMatchObject({ attempt: 1, message: 'no such template' });
    expect(job.errors).toHaveLength(3);
  });

  it('hears of its jobs and of its queue while they run', async () => {
    const { id } = await client.enqueue('email.send', [{ to: 'a@example.com' }], { queue: 'heard' });
    const [ofJob, ofQueue]: [SdkEvent[], SdkEvent[]] = [[], []];
    const leave = [
      subscribeJob(id as string, (event) => ofJob.push(event)),
      subscribeQueue('heard', (event) => ofQueue.push(event)),
    ];
    const queue = new TestQueue('heard');
    await until(() => queue.inside(({ instance }) => followersOf(instance).followers.size === 2), 'both to listen');
    await new SdkWorker(['heard'], { 'email.send': async () => 'sent' }).drain();
    const next = await client.enqueue('email.send', [{ to: 'b@example.com' }], { queue: 'heard' });
    await until(() => ofJob.length === 4 && ofQueue.length === 5, 'the events');
    expect(ofJob.map(({ type, data }) => [type, data.to])).toEqual([
      ['job.state_changed', 'active'],
      ['job.started', undefined],
      ['job.state_changed', 'completed'],
      ['job.completed', undefined],
    ]);
    expect(ofQueue.at(-1)).toMatchObject({ type: 'job.enqueued', data: { job_id: next.id, queue: 'heard' } });
    expect(ofQueue.every(({ id: place }) => place.startsWith('evt_'))).toBe(true);
    for (const stop of leave) stop();
  });
});
