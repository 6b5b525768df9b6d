/** What unchanged clients read about schedules, workflows and events: the admin UI (U) and the command line tool (C). */
import { describe, expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { StreamReader } from '../support/streams';
import { cli, integer, itemsOf, number, text, time, ui } from './ojs-clients';

server.emptyBeforeEach();

describe('schedules', () => {
  const entry = (queue: string) => ({
    id: 'nightly',
    name: 'nightly',
    type: 'report.build',
    queue,
    schedule: '0 3 * * *',
    timezone: text,
    enabled: true,
    last_run_at: null,
    next_run_at: time,
    created_at: time,
  });

  it('C makes, lists, shows, changes, pauses, fires and deletes them', async () => {
    const queue = freshName();
    const body = {
      name: 'nightly',
      expression: '0 3 * * *',
      job_template: { type: 'report.build', options: { queue } },
    };
    await cli.call('POST', `${V1}/cron`, body, 201);
    const shown = { name: 'nightly', expression: '0 3 * * *', enabled: true, next_run_at: time };
    expect((await cli.get(`${V1}/cron?enabled=true`)).cron_jobs).toMatchObject([shown]);
    expect(await cli.get(`${V1}/cron/nightly`)).toMatchObject({
      ...shown,
      created_at: time,
      run_count: 0,
      job_template: { type: 'report.build', options: { queue } },
    });
    await cli.call('PATCH', `${V1}/cron/nightly`, { expression: '0 4 * * *' });
    await cli.call('POST', `${V1}/cron/nightly/pause`);
    await cli.call('POST', `${V1}/cron/nightly/resume`);
    expect(await cli.call('POST', `${V1}/cron/nightly/trigger`, undefined, 201)).toMatchObject({ job_id: text });
    expect((await cli.get(`${V1}/cron/nightly/history?limit=10`)).executions).toMatchObject([
      { job_id: text, state: text, scheduled_at: time, started_at: null, completed_at: null },
    ]);
    await cli.call('DELETE', `${V1}/cron/nightly`);
  });

  it('U lists, shows, switches and deletes them', async () => {
    const queue = freshName();
    const template = { type: 'report.build', args: [1], meta: { a: 1 }, options: { queue } };
    await server.ok(201, 'POST', `${V1}/cron`, { name: 'nightly', cron: '0 3 * * *', job_template: template });
    expect(itemsOf(await ui.get(`${V1}/crons?page=1&per_page=50`))).toMatchObject([entry(queue)]);
    expect(await ui.get(`${V1}/crons/nightly`)).toMatchObject({ ...entry(queue), args: [1], meta: { a: 1 } });
    expect(await ui.call('PATCH', `${V1}/crons/nightly`, { enabled: false })).toMatchObject({ enabled: false });
    await ui.call('DELETE', `${V1}/crons/nightly`, undefined, 204);
  });
});

/** Runs the next job of a queue to its end; waits for it to come. */
async function runNext(queue: string): Promise<void> {
  await server.ack((await server.takeOne(queue, { wait_ms: 5_000 })).id);
}

describe('workflows', () => {
  const step = (queue: string) => ({ type: 'a', args: [], options: { queue } });

  it('U builds a group and a batch in its own words', async () => {
    const queue = freshName();
    const group = await ui.call('POST', `${V1}/workflows`, { type: 'group', tasks: [step(queue), step(queue)] }, 201);
    expect(group).toMatchObject({ id: text, type: 'group', state: 'running', steps_total: 2, steps_completed: 0 });
    const on_complete = { type: 'callback', args: [], options: { queue } };
    const batch = await ui.call('POST', `${V1}/workflows`, { type: 'batch', tasks: [step(queue)], on_complete }, 201);
    expect(batch).toMatchObject({ type: 'batch', callbacks: { on_complete: { type: 'callback' } } });
    for (const _ of [1, 2, 3]) await runNext(queue);
    expect(await server.takeOne(queue, { wait_ms: 5_000 })).toMatchObject({ type: 'callback' });
  });

  it.each([
    [{ type: 'group', tasks: [] }, 'tasks'],
    [{ type: 'group', tasks: [{ type: 'a' }] }, 'tasks[0].args'],
    [{ type: 'batch', tasks: [{ type: 'a', args: [] }] }, 'callbacks'],
    [
      {
        type: 'batch',
        jobs: [{ type: 'a', args: [] }],
        on_complete: { type: 'b', args: [] },
        callbacks: { on_complete: { type: 'b', args: [] } },
      },
      'on_complete',
    ],
  ])('that are wrong are refused with the words that were used: %j', async (body, field) => {
    expect(await server.refusal('POST', `${V1}/workflows`, body)).toMatchObject({ status: 400, field });
  });

  it('U lists those that run under the name that it has for them, and shows and cancels one', async () => {
    const queue = freshName();
    const steps = [step(queue), step(queue)];
    const { id } = await ui.call('POST', `${V1}/workflows`, { type: 'chain', name: 'order', steps }, 201);
    await runNext(queue);
    await server.takeOne(queue, { wait_ms: 5_000 });
    const listed = { id, name: 'order', state: 'running', steps_total: 2, steps_completed: 1, created_at: time };
    expect(itemsOf(await ui.get(`${V1}/workflows?state=active&page=1&per_page=20`))).toMatchObject([listed]);
    expect(await ui.get(`${V1}/workflows?state=completed`)).toMatchObject({ items: [] });
    expect(await ui.get(`${V1}/workflows/${id}`)).toMatchObject({
      ...listed,
      steps: [
        { id: '0', type: 'a', state: 'completed', job_ids: [text], depends_on: [], completed_at: time },
        { id: '1', type: 'a', state: 'active', job_ids: [text], depends_on: ['0'] },
      ],
    });
    expect(await ui.get(`${V1}/workflows/${id}/progress`)).toMatchObject({
      workflow_id: id,
      progress: 0.5,
      steps: [
        { id: text, progress: 1, state: 'completed' },
        { id: text, progress: number, state: text },
      ],
      updated_at: time,
    });
    expect(await ui.call('POST', `${V1}/workflows/${id}/cancel`)).toMatchObject({ id, state: 'cancelled' });
    expect(await ui.get(`${V1}/workflows?state=cancelled`)).toMatchObject({ items: [{ steps_completed: 1 }] });
  });

  it('C makes a graph, lists workflows and cancels one', async () => {
    const queue = freshName();
    const steps = [
      { id: 'validate', ...step(queue) },
      { id: 'charge', ...step(queue), depends_on: ['validate'] },
    ];
    const { id, state } = await cli.call('POST', `${V1}/workflows`, { name: 'order', steps }, 201);
    expect(state).toBe('running');
    expect(await cli.get(`${V1}/workflows?limit=25`)).toMatchObject({
      total: 1,
      workflows: [{ id, name: 'order', state: 'running', step_count: 2, created_at: time }],
    });
    expect(await cli.get(`${V1}/workflows/${id}`)).toMatchObject({
      name: 'order',
      created_at: time,
      steps: [
        { id: 'validate', type: 'a', job_id: text },
        { id: 'charge', type: 'a', job_id: null },
      ],
    });
    expect(await cli.call('DELETE', `${V1}/workflows/${id}`)).toMatchObject({ cancelled_steps: 2, steps_cancelled: 2 });
  });
});

describe('events', () => {
  it('U lists them, also under names that other servers have', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    const events = itemsOf(await ui.get(`${V1}/events?page=1&per_page=50`));
    for (const event of events) expect(event).toMatchObject({ id: text, type: text, timestamp: time, data: {} });
    expect(events.at(-1)?.data).toMatchObject({ queue });
    for (const type of ['job.retried', 'worker.registered', 'worker.deregistered', 'worker.stale', 'job.enqueued']) {
      expect(await ui.get(`${V1}/events?type=${type}&page=1&per_page=50`)).toMatchObject({
        items: expect.any(Array),
        pagination: { total: integer },
      });
    }
    expect(itemsOf(await ui.get(`${V1}/events?since=1h&page=1`)).length).toBeGreaterThan(0);
  });

  it('C follows them: each is one line with flat members, short enough to be read as one', async () => {
    const queue = freshName();
    // What is kept of progress is at most 64 KiB.
    const large = 'ü'.repeat(32_000);
    const id = await server.enqueue(queue, { args: [large] });
    const stream = await StreamReader.open(
      `/events/stream?queue=${queue}&types=job.progress,job.completed,job.started`,
    );
    await server.take(queue);
    await server.ok(200, 'POST', `${V1}/workers/progress`, { job_id: id, percentage: 5, data: { large } });
    await server.ack(id, { result: large });
    await stream.get('job.completed');
    const told = stream.messages.map(({ data }) => data as Json);
    expect(told.map(({ event }) => event)).toEqual(['job.started', 'job.progress', 'job.completed']);
    for (const data of told) {
      expect(data).toMatchObject({ event: text, type: 'test.echo', job_id: id, queue });
      expect(new TextEncoder().encode(`data: ${JSON.stringify(data)}`).byteLength).toBeLessThan(64 * 1024);
    }
    expect(told[1]).toMatchObject({ progress: 5, truncated: true });
    await stream.close();
  });
});
