import { describe, expect, it } from 'vitest';
import { server } from '../../support/server';
import { enqueued, JOBS, post, refusedFor, SCOPES } from './jobs';

server.emptyBeforeEach();

// The second queue is the first one again where only the queue itself judges.
describe.each(SCOPES)('a job that is unique %s', (_, keys, other) => {
  const first = 'a';

  it('is refused while the first one waits, runs or waits for a retry', async () => {
    const id = await enqueued(first, { keys });
    expect(await post(other, { keys })).toMatchObject(refusedFor(id));
    await server.takeOne(first);
    expect(await post(other, { keys })).toMatchObject(refusedFor(id, 'active'));
    await server.nack(id, { error: { code: 'x', message: 'y' } });
    expect(await post(other, { keys })).toMatchObject(refusedFor(id, 'retryable'));
    expect(await server.counts(first)).toMatchObject({ available: 0, retryable: 1 });
  });

  it('is accepted once the first one has completed, been cancelled or been discarded', async () => {
    await enqueued(first, { keys });
    await server.complete(first);
    const second = await enqueued(other, { keys });
    await server.ok(200, 'DELETE', `${JOBS}/${second}`);
    const third = await enqueued(first, { keys });
    await server.takeOne(first);
    await server.nack(third, { error: { code: 'x', message: 'y', retryable: false } });
    await enqueued(other, { keys });
  });

  it('ignored gives the existing job, and says so', async () => {
    const id = await enqueued(first, { keys }, { args: [1] });
    const answer = await post(other, { keys, on_conflict: 'ignore' }, { args: [2] });
    expect(answer).toMatchObject({
      status: 200,
      body: { deduplicated: true, id, job: { id, queue: first, args: [1] } },
    });
    expect(answer.headers.get('Location')).toBeNull();
    expect(await post(other, { keys: ['type', 'args', ...(other === first ? ['queue'] : [])] })).toMatchObject({
      status: 201,
      body: { job: { state: 'available' } },
    });
  });

  it('replacing cancels the existing one, even while it runs', async () => {
    const id = await enqueued(first, { keys });
    const second = await enqueued(other, { keys, on_conflict: 'replace' });
    expect(await server.job(id)).toMatchObject({ state: 'cancelled' });
    await server.takeOne(other);
    const third = await enqueued(first, { keys, on_conflict: 'replace' });
    expect(await server.job(second)).toMatchObject({ state: 'cancelled' });
    expect(await server.call('POST', '/ojs/v1/workers/ack', { job_id: second })).toMatchObject({ status: 409 });
    expect(await server.job(third)).toMatchObject({ state: 'available' });
    expect(await post(other, { keys })).toMatchObject(refusedFor(third));
  });

  it('replacing all but the schedule takes over the time of the existing one', async () => {
    const unique = { keys, on_conflict: 'replace_except_schedule' };
    const id = await enqueued(first, unique, { args: [1], options: { delay_until: '+PT1H' } });
    const { scheduled_at } = await server.job(id);
    const answer = await post(other, unique, { args: [2], options: { delay_until: '+PT2H' } });
    expect(answer).toMatchObject({ status: 201, body: { job: { state: 'scheduled', scheduled_at, args: [2] } } });
    expect(await server.job(id)).toMatchObject({ state: 'cancelled' });
    expect(await server.job(answer.body.id)).toMatchObject(answer.body.job as object);
  });

  it('replacing one that was to start at once starts at once', async () => {
    await enqueued(first, { keys });
    const unique = { keys, on_conflict: 'replace_except_schedule' };
    const { body } = await post(other, unique, { options: { delay_until: '+PT1H' } });
    expect(body.job).toMatchObject({ state: 'available' });
    expect(body.job).not.toHaveProperty('scheduled_at');
    expect(await server.takeOne(other)).toMatchObject({ id: body.id });
  });

  it('does not cancel what has ended already', async () => {
    const unique = { keys, unique_while: 'exists', on_conflict: 'replace' };
    const id = await enqueued(first, unique);
    await server.complete(first);
    await enqueued(other, unique);
    expect(await server.job(id)).toMatchObject({ state: 'completed' });
  });

  it('is kept away only for the period, counted from the creation of the existing one', async () => {
    const id = await enqueued(first, { keys });
    expect(await post(other, { keys, period: 'PT1H' })).toMatchObject(refusedFor(id));
    // The shortest period is over when the clock has moved on, which the next answers show.
    await expect.poll(async () => (await post(other, { keys, within: 1 })).status).toBe(201);
  });

  it('counts ended jobs when its policy says so', async () => {
    const id = await enqueued(first, { keys });
    await server.complete(first);
    expect(await post(other, { keys, states: ['completed'] })).toMatchObject(refusedFor(id, 'completed'));
    expect(await post(other, { keys, unique_while: 'exists', on_conflict: 'ignore' })).toMatchObject({
      status: 200,
      body: { deduplicated: true, job: { id, state: 'completed' } },
    });
    await enqueued(other, { keys, states: ['cancelled', 'discarded'] });
  });

  it('leaves the existing one alone when the new one is refused for another reason', async () => {
    const id = await enqueued(first, { keys });
    const taken = await server.enqueue('elsewhere', { id: '019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f' });
    const answer = await post(other, { keys, on_conflict: 'replace' }, { id: taken });
    expect(answer).toMatchObject({ status: 409 });
    const impossible = { backoff_strategy: 'table' };
    expect(await post(other, { keys, on_conflict: 'replace' }, { options: { retry: impossible } })).toMatchObject({
      status: 422,
    });
    expect(await server.job(id)).toMatchObject({ state: 'available' });
  });
});

it('jobs that no policy names do not stand in the way, and are not kept away', async () => {
  await server.enqueue('a', { type: 'sync.user' });
  await enqueued('a', { keys: ['type', 'queue'] });
  await server.enqueue('a', { type: 'sync.user' });
});

it('the policy is echoed as it was written, and nothing of its fingerprint', async () => {
  const unique = { key: 'order-1', within: '1h', on_conflict: 'ignore_new' };
  const id = await enqueued('a', unique);
  const job = await server.job(id);
  expect(job.unique).toEqual(unique);
  expect(JSON.stringify(job)).not.toMatch(/fingerprint/);
});

it('a redriven job stands in the way again', async () => {
  const keys = ['type', 'queue'];
  const id = await enqueued('a', { keys });
  await server.ok(200, 'DELETE', `${JOBS}/${id}`);
  await server.ok(200, 'POST', `/ojs/v1/admin/jobs/${id}/retry`);
  expect(await post('a', { keys })).toMatchObject(refusedFor(id));
});

it('every blocking job is replaced, not only the newest', async () => {
  const keys = ['type', 'queue'];
  const first = await enqueued('a', { keys });
  await server.takeOne('a');
  const second = await enqueued('a', { keys, unique_while: 'queued' });
  await enqueued('a', { keys, on_conflict: 'cancel_existing' });
  expect(await server.job(first)).toMatchObject({ state: 'cancelled' });
  expect(await server.job(second)).toMatchObject({ state: 'cancelled' });
});
