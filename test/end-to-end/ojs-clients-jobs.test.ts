/** What unchanged clients read about jobs: the admin UI (U) and the command line tool (C). */
import { describe, expect, it } from 'vitest';
import { freshName } from '../support/queue';
import { type Json, server, V1 } from '../support/server';
import { cli, integer, itemsOf, number, text, time, ui } from './ojs-clients';

server.emptyBeforeEach();

const DEAD = { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } };

/** A job that has failed for good. */
async function failed(queue: string): Promise<string> {
  const id = await server.enqueue(queue, { options: DEAD, args: [1], meta: { user: 'u' } });
  const error = { code: 'E', type: 'TypeError', message: 'no', stack: 'TypeError: no\n  at f (x.js:1)' };
  await server.nack((await server.takeOne(queue)).id, { error });
  return id;
}

const summary = (state: string) => ({
  id: text,
  type: 'test.echo',
  queue: text,
  state,
  priority: integer,
  attempt: integer,
  created_at: time,
});

describe('jobs', () => {
  it('U lists them, filtered and sorted', async () => {
    const queue = freshName();
    await server.enqueue(queue, { options: { priority: 5, delay_until: '+PT1H' } });
    const query = `queue=${queue}&state=scheduled&type=test.echo&page=1&per_page=20&sort=priority&order=asc`;
    const [job] = itemsOf(await ui.get(`${V1}/admin/jobs?${query}`));
    expect(job).toMatchObject({ ...summary('scheduled'), priority: 5, scheduled_at: time });
    expect(await ui.get(`${V1}/admin/jobs?queue=${queue}&since=24h`)).toMatchObject({ pagination: { total: 1 } });
    expect(await ui.get(`${V1}/admin/jobs?queue=${queue}&until=24h`)).toMatchObject({ items: [] });
  });

  it('U and C show one, bare, with its errors, its policy and its times', async () => {
    const queue = freshName();
    const id = await failed(queue);
    for (const client of [ui, cli]) {
      const job = await client.get(`${V1}/admin/jobs/${id}`);
      expect(job).toMatchObject({
        ...summary('discarded'),
        args: [1],
        meta: { user: 'u' },
        max_attempts: 1,
        retry_policy: expect.objectContaining({ max_attempts: 1 }),
        errors: [
          {
            code: 'E',
            type: 'TypeError',
            message: 'no',
            attempt: 1,
            occurred_at: time,
            backtrace: ['TypeError: no', '  at f (x.js:1)'],
          },
        ],
        metadata: { created_at: time, enqueued_at: time, started_at: time, discarded_at: time },
      });
    }
    const done = await server.enqueue(queue);
    await server.ack((await server.takeOne(queue)).id, { result: { a: 1 } });
    expect(await ui.get(`${V1}/admin/jobs/${done}`)).toMatchObject({
      meta: {},
      errors: [],
      result: { a: 1 },
      metadata: { completed_at: time },
    });
  });

  it('C gets the state after a retry; U cancels and changes the priority', async () => {
    const queue = freshName();
    const id = await failed(queue);
    expect(await cli.call('POST', `${V1}/admin/jobs/${id}/retry`)).toMatchObject({
      state: 'available',
      id,
      job: { id },
    });
    const changed = await ui.call('PATCH', `${V1}/admin/jobs/${id}`, { priority: 7 });
    expect(changed).toMatchObject({ priority: 7, job: { priority: 7 } });
    expect(await ui.call('POST', `${V1}/admin/jobs/${id}/cancel`)).toMatchObject({ state: 'cancelled' });
  });

  it('U acts on many by filter', async () => {
    const queue = freshName();
    await server.enqueue(queue);
    for (const [action, matched] of [
      ['cancel', 1],
      ['retry', 1],
    ] as const) {
      const body = { filter: { queue, type: 'test.echo', since: '24h' }, confirm: true };
      expect(await ui.call('POST', `${V1}/admin/jobs/bulk/${action}`, body)).toMatchObject({
        action,
        matched,
        succeeded: integer,
        failed: integer,
        errors: [],
      });
    }
  });

  it('U follows progress and reads the result', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    expect(await ui.get(`${V1}/jobs/${id}/progress`)).toMatchObject({ job_id: id, progress: null, data: null });
    await server.take(queue);
    await server.ok(200, 'POST', `${V1}/workers/progress`, { job_id: id, percentage: 50, data: { step: 1 } });
    expect(await ui.get(`${V1}/jobs/${id}/progress`)).toMatchObject({
      job_id: id,
      progress: 0.5,
      data: { step: 1 },
      updated_at: time,
    });
    await server.ack(id, { result: 7 });
    expect(await ui.get(`${V1}/jobs/${id}/result`)).toEqual({
      job_id: id,
      state: 'completed',
      result: 7,
      completed_at: time,
    });
  });

  it('U reads unnamed messages of the stream of its progress', async () => {
    const queue = freshName();
    const id = await server.enqueue(queue);
    await server.take(queue);
    await server.ok(200, 'POST', `${V1}/workers/progress`, { job_id: id, percentage: 50, data: { step: 1 } });
    await server.ack(id);
    const answer = await server.send(new Request(`http://localhost${V1}/jobs/${id}/progress/stream`));
    const blocks = (await answer.text()).split('\n\n').filter((block) => block.includes('data: '));
    const unnamed = blocks.filter((block) => !block.includes('event: '));
    const told = unnamed.map((block) => JSON.parse(block.slice(block.indexOf('data: ') + 6)) as Json);
    for (const message of told) expect(message).toMatchObject({ job_id: id, progress: number });
    expect(blocks.some((block) => block.includes('event: completed'))).toBe(true);
  });

  it('C reads the history and the retries', async () => {
    const queue = freshName();
    const id = await failed(queue);
    const { events } = await cli.get(`${V1}/events/${id}/history`);
    for (const event of events as Json[]) expect(event).toMatchObject({ type: text, state: text, timestamp: time });
    expect((events as Json[]).map(({ type, state }) => `${type} ${state}`)).toEqual([
      'job.created available',
      'job.state_changed active',
      'job.attempt_started active',
      'job.attempt_failed active',
      'job.state_changed discarded',
      'job.discarded discarded',
    ]);
    expect(await cli.get(`${V1}/jobs/${id}/retries`)).toMatchObject({
      job_id: id,
      retries: [
        { attempt: 1, state: 'discarded', error: 'no', started_at: time, failed_at: time, next_retry_at: null },
      ],
      policy: { max_attempts: 1, initial_interval: text, backoff_strategy: text },
    });
  });
});

describe('dead letters', () => {
  it('U lists, counts, retries and deletes them', async () => {
    const queue = freshName();
    const [id, other, third] = [await failed(queue), await failed(queue), await failed(queue)];
    const items = itemsOf(await ui.get(`${V1}/admin/dead-letter?queue=${queue}&type=test.echo&page=1&per_page=20`));
    for (const item of items) expect(item).toMatchObject(summary('discarded'));
    expect(await ui.get(`${V1}/admin/dead-letter/stats`)).toMatchObject({
      total: 3,
      by_error_type: { TypeError: 3 },
      by_queue: { [queue]: 3 },
      oldest_at: time,
      newest_at: time,
    });
    await ui.call('POST', `${V1}/admin/dead-letter/${id}/retry`);
    await ui.call('DELETE', `${V1}/admin/dead-letter/${other}`, undefined, 204);
    const body = { filter: {}, confirm: true };
    expect(await ui.call('POST', `${V1}/admin/dead-letter/retry`, body)).toMatchObject({
      action: 'retry',
      matched: 1,
      succeeded: 1,
      failed: 0,
    });
    expect(await server.state(third)).toBe('available');
  });

  it('C lists, counts, retries, deletes and purges them', async () => {
    const queue = freshName();
    const [id, other] = [await failed(queue), await failed(queue), await failed(queue)];
    const { jobs, total } = await cli.get(`${V1}/dead-letter?limit=25`);
    expect(total).toBe(3);
    for (const job of jobs as Json[]) {
      expect(job).toMatchObject({ id: text, type: text, queue, attempt: integer, discarded_at: time });
    }
    expect(await cli.get(`${V1}/dead-letter/stats`)).toMatchObject({ total: 3, by_type: { 'test.echo': 3 } });
    await cli.call('POST', `${V1}/dead-letter/${id}/retry`);
    await cli.call('DELETE', `${V1}/dead-letter/${other}`);
    expect(await cli.call('POST', `${V1}/dead-letter/purge?older_than=24h`)).toMatchObject({ deleted: 0 });
    expect(await cli.call('POST', `${V1}/dead-letter/purge?older_than=0s`)).toMatchObject({ deleted: integer });
  });
});
