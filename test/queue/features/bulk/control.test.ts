/** What operators do before and during an operation on many jobs: look what it would act on, list it, stop it. */
import { v7 as uuidv7 } from 'uuid';
import { describe, expect, it } from 'vitest';
import type { JobFilter } from '../../../../src/job/filter';
import { createTask, stepTask } from '../../../../src/queue/features/bulk/feature';
import { clock } from '../../../support/clock';
import { freshName, type JobChange, TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';

clock.restoreAfterEach();
server.emptyBeforeEach();

const ADMIN = `${V1}/admin`;

async function filled(n: number, change: JobChange = {}): Promise<TestQueue> {
  const queue = new TestQueue(freshName('control'));
  // Known to the directory, as a queue is that jobs come to over HTTP.
  await server.enqueue(queue.name, { type: 'other.job' });
  for (let left = n; left > 0; left -= 1000) {
    await queue.enqueue(...Array<JobChange>(Math.min(left, 1000)).fill(change));
  }
  return queue;
}

/** An operation that has done its first step in each of these queues, and whose next one nobody has begun. */
async function begun(queues: TestQueue[], filter: JobFilter): Promise<string> {
  const id = uuidv7();
  for (const queue of queues) {
    await queue.inside(({ engine, q }) => {
      engine.writeNow((now) => createTask(q, { id, action: 'cancel', filter }, now));
      engine.writeNow((now) => stepTask(q, id, now));
    });
  }
  return id;
}

describe('a dry run', () => {
  it('counts what would be acted on, and changes nothing', async () => {
    const [a, b] = [await filled(30, { type: 'a.job' }), await filled(5, { type: 'a.job', scheduledAt: 4e12 })];
    const filter = { queue: [a.name, b.name], type: 'a.*' };
    for (const path of ['/admin/jobs/bulk/cancel', '/jobs/bulk/cancel']) {
      const preview = await server.ok(200, 'POST', V1 + path, { filter, dry_run: true });
      expect(preview).toMatchObject({
        ...{ dry_run: true, action: 'cancel', matched: 35, matched_is_exact: true },
        by_state: { available: 30, scheduled: 5 },
        by_queue: { [a.name]: 30, [b.name]: 5 },
      });
    }
    const retry = await server.ok(200, 'POST', `${ADMIN}/jobs/bulk/retry`, { filter, dry_run: true });
    expect(retry).toMatchObject({ matched: 0, by_state: {} });
    expect(await a.counts()).toEqual({ available: 31 });
    expect(await b.counts()).toEqual({ available: 1, scheduled: 5 });
    // The same request without it acts on as many.
    const done = await server.ok(200, 'POST', `${ADMIN}/jobs/bulk/cancel`, { filter, confirm: true, dry_run: false });
    expect(done).toMatchObject({ matched: 35, succeeded: 35 });
  });

  it('says so of dead letters and of groups of failures', async () => {
    const queue = freshName('control');
    const options = { retry: { max_attempts: 1, on_exhaustion: 'dead_letter' } };
    const id = await server.enqueue(queue, { options });
    await server.take(queue, { count: 1 });
    await server.nack(id, { error: { message: 'no' } });
    const matched = { dry_run: true, matched: 1, by_state: { discarded: 1 } };
    expect(await server.ok(200, 'POST', `${V1}/dead-letter/retry`, { dry_run: true })).toMatchObject(matched);
    const [group] = (await server.ok(200, 'GET', `${ADMIN}/failures`)).items as Json[];
    for (const verb of ['redrive', 'discard']) {
      const path = `${ADMIN}/failures/${group?.fingerprint}/${verb}`;
      expect(await server.ok(200, 'POST', path, { dry_run: true })).toMatchObject(matched);
    }
    expect((await server.ok(200, 'GET', `${V1}/jobs/${id}`)).job?.state).toBe('discarded');
  });

  it.each<[Json, string]>([
    [{ filter: { state: 'available' }, dry_run: 'yes' }, 'dry_run'],
    [{ filter: {}, dry_run: true }, 'filter'],
    [{ filter: { state: 'available' }, type: 'x', dry_run: true }, 'type'],
    [{ job_ids: ['x'], dry_run: true }, 'dry_run'],
  ])('%j is refused, naming %s', async (body, field) => {
    const answer = await server.call('POST', `${V1}/jobs/bulk/cancel`, body);
    expect(answer).toMatchObject({ status: 400, body: { error: { details: { field } } } });
  });
});

describe('an operation that is stopped', () => {
  it('does no further step in any queue, says how far it came, and stays stopped', async () => {
    const queues = [await filled(1100, { type: 'a.job' }), await filled(1100, { type: 'a.job' })];
    const id = await begun(queues, { types: ['a.job'] });
    const listed = await server.ok(200, 'GET', `${ADMIN}/operations`);
    expect(listed.items).toMatchObject([{ operation_id: id, action: 'cancel', completed: false }]);
    const stopped = await server.ok(200, 'POST', `${ADMIN}/operations/${id}/abort`);
    expect(stopped).toMatchObject({ operation_id: id, completed: true, aborted: true, failed: 0 });
    const cancelled = async () => {
      const counts = await Promise.all(queues.map((queue) => queue.counts()));
      return counts.reduce((sum, { cancelled: n = 0 }) => sum + n, 0);
    };
    expect(stopped.succeeded).toBe(1000);
    expect(await cancelled()).toBe(stopped.succeeded);
    for (const queue of queues) {
      await queue.evict();
      await queue.alarm();
    }
    expect(await cancelled()).toBe(stopped.succeeded);
    const after = await server.ok(200, 'GET', `${ADMIN}/jobs/bulk/${id}`);
    expect(after).toMatchObject({ aborted: true, completed: true, succeeded: stopped.succeeded });
    // Whoever waited for its end has it, and stopping it once more changes nothing.
    const again = await server.ok(200, 'DELETE', `${V1}/jobs/bulk/${id}`);
    expect(again).toMatchObject({ aborted: true, succeeded: stopped.succeeded });
  });

  it('does not begin in a queue that it had not reached', async () => {
    const queue = await filled(3, { type: 'a.job' });
    const id = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';
    expect(await queue.api.abortOperation(id, 'cancel')).toMatchObject({ value: { aborted: true, succeeded: 0 } });
    await queue.api.operate({ id, action: 'cancel', filter: { types: ['a.job'] } }, 1000);
    expect(await queue.counts()).toEqual({ available: 4 });
  });

  it('that has ended stays as it ended', async () => {
    const queue = await filled(3, { type: 'a.job' });
    const body = { filter: { queue: queue.name, type: 'a.job' }, confirm: true };
    const { operation_id: id } = await server.ok(200, 'POST', `${ADMIN}/jobs/bulk/cancel`, body);
    const ended = await server.ok(200, 'GET', `${V1}/jobs/bulk/${id}`);
    expect(ended).toMatchObject({ completed: true, succeeded: 3 });
    const stopped = await server.ok(200, 'DELETE', `${ADMIN}/jobs/bulk/${id}`);
    expect(stopped).toEqual(ended);
    expect(stopped).not.toHaveProperty('aborted');
  });

  it('must exist', async () => {
    const id = '01962222-bbbb-7ccc-8ddd-eeeeeeeeeeee';
    expect((await server.call('POST', `${ADMIN}/operations/${id}/abort`)).status).toBe(404);
    expect((await server.call('DELETE', `${V1}/jobs/bulk/${id}`)).status).toBe(404);
  });
});
