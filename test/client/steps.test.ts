/** Signals, steps, logs and children through the client, against the queue itself. */
import { beforeEach, expect, it } from 'vitest';
import { ConflictError, NotFoundError } from '../../src/client';
import { freshName } from '../support/queue';
import { server, UNKNOWN_ID, V1 } from '../support/server';
import { fakeQueue } from './fake-queue';
import { all, liveClient, running } from './live-client';

server.emptyBeforeEach();
const client = liveClient();
let queue: string;
beforeEach(() => {
  queue = freshName('client-steps');
});

it('a signal wakes the job that waits for it, and stays on record', async () => {
  const job = await running(client, queue);
  const snooze = { in: '1h', signal: 'approved by/all' };
  await server.nack(job.id, { requeue: true, attempt_used: false, snooze });
  expect(await client.signal(job.id, 'approved by/all', { approvedBy: 'ann' })).toMatchObject({ state: 'available' });
  expect(await client.jobs.steps(job.id)).toMatchObject({
    'approved by/all': { signal: { payload: { approvedBy: 'ann' } } },
  });
  await client.signal(job.id, 'other');
  expect(await client.jobs.steps(job.id)).toMatchObject({ other: { signal: { payload: null } } });
  await client.cancel(job.id);
  await expect(client.signal(job.id, 'late')).rejects.toThrow(ConflictError);
  await expect(client.signal(UNKNOWN_ID, 'x')).rejects.toThrow(NotFoundError);
});

it('a signal whose answer was lost is sent again', async () => {
  const { client, requests } = fakeQueue((_, index) => {
    if (index === 0) throw new Error('connection lost');
    return Response.json({ job: { id: 'x', state: 'available' }, signal: { name: 'go' } });
  });
  expect(await client.jobs.signal('x', 'go', 1)).toMatchObject({ id: 'x' });
  expect(requests).toHaveLength(2);
});

it('the log of a job is read', async () => {
  const { id } = await running(client, queue);
  await server.ok(200, 'POST', `${V1}/jobs/${id}/log`, { lines: [{ at: 5, level: 'warn', message: 'careful' }] });
  expect(await client.jobs.log(id)).toEqual([{ at: 5, level: 'warn', message: 'careful' }]);
});

it('the jobs that a job has enqueued are listed and counted', async () => {
  const parent = await running(client, queue);
  const child = await client.enqueue('a.b', [], { queue, meta: { parent_id: parent.id } });
  expect((await all(client.list({ parent: parent.id }))).map(({ id }) => id)).toEqual([child.id]);
  expect(await client.count({ parent: parent.id })).toBe(1);
});
