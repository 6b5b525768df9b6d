/** Limits and jobs that go on: a start counts once for each attempt, and what runs counts whenever it runs. */
import { describe, expect, it } from 'vitest';
import { clock, iso, SECOND, T0 } from '../../../support/clock';
import { steady, TestQueue } from '../../../support/queue';
import { type Json, server, V1 } from '../../../support/server';
import { ack, addManyTo, addTo, fetchFrom } from './limited';

clock.startAtT0();

const rated: Json = { key: 'api', rate: 2, period: '30s' };

const startsOf = async (key: string) => (await server.ok(200, 'GET', `${V1}/rate-limits/${key}`)).current_count;
const why = async (id: string) => (await server.job(id)).waiting_for as Json;

/** Ends the run of the job that the queue hands out next. */
async function suspend(queue: TestQueue, how: Json): Promise<void> {
  const { id, attempt } = await server.takeOne(queue.name);
  const snooze = { job_id: id, attempt, requeue: true, attempt_used: false, snooze: how };
  await server.ok(200, 'POST', `${V1}/workers/nack`, snooze);
}

const sleep = (name: string, ms: number): Json => {
  const until = Date.now() + ms;
  return { until: iso(until), steps: { [name]: { until } } };
};

const signal = (id: string, name: string) => server.ok(200, 'POST', `${V1}/jobs/${id}/signals/${name}`, {});

describe('the start of a job with steps', () => {
  it('counts once, however often a sleep or a signal wakes it', async () => {
    const queue = new TestQueue();
    const id = await addTo(queue, rated);
    await suspend(queue, sleep('first', SECOND));
    clock.advance(SECOND);
    await suspend(queue, { signal: 'go' });
    await queue.evict();
    await signal(id, 'go');
    await suspend(queue, { in: 0, steps: { done: { result: 1 } } });
    await suspend(queue, sleep('last', SECOND));
    clock.advance(SECOND);
    expect(await fetchFrom(queue)).toEqual([id]);
    expect(await startsOf('api')).toBe(1);
    await ack(id);
  });

  it('counts again for a retry, and each time for a handler that only asks to run again later', async () => {
    const queue = new TestQueue();
    const retried = await addTo(queue, { ...rated, key: 'retried' }, { retry: steady(3, 1) });
    await suspend(queue, sleep('nap', 1));
    clock.advance(1);
    expect(await fetchFrom(queue)).toEqual([retried]);
    await server.nack(retried);
    clock.advance(1);
    expect(await fetchFrom(queue)).toEqual([retried]);
    expect(await startsOf('retried')).toBe(2);

    await addTo(queue, { ...rated, key: 'polling' });
    await suspend(queue, { in: 1000 });
    clock.advance(SECOND);
    await suspend(queue, { in: 1000 });
    clock.advance(SECOND);
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await startsOf('polling')).toBe(2);
  });

  it('is left to the next job while one stands ready that continues', async () => {
    const queue = new TestQueue();
    const limit = { key: 'spaced', rate: 1, period: '30s' };
    const first = await addTo(queue, limit);
    const second = await addTo(queue, limit);
    await suspend(queue, { in: 0, steps: { done: { result: 1 } } });
    clock.advance(31 * SECOND);
    expect(await fetchFrom(queue)).toEqual([first, second]);
  });

  it('counts again when the job is given a second life in the middle of an attempt', async () => {
    const queue = new TestQueue();
    const id = await addTo(queue, { ...rated, key: 'lives' });
    await suspend(queue, sleep('nap', 60 * SECOND));
    await server.ok(200, 'DELETE', `${V1}/jobs/${id}`);
    await server.ok(200, 'POST', `${V1}/admin/jobs/${id}/retry`, {});
    expect(await fetchFrom(queue)).toEqual([id]);
    expect(await startsOf('lives')).toBe(2);
  });

  it('counts once for the queue itself, too', async () => {
    const queue = new TestQueue();
    await server.configure(queue.name, { rate_limit: { limit: 2, period: '30s' } });
    await addTo(queue);
    await suspend(queue, sleep('nap', 1));
    clock.advance(1);
    await suspend(queue, { signal: 'later' });
    const second = await addTo(queue);
    expect(await fetchFrom(queue)).toEqual([second]);
    const third = await addTo(queue);
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await why(third)).toMatchObject({
      reason: 'queue_limit',
      detail: expect.stringContaining('Each attempt counts once'),
    });
  });
});

describe('a job that continues', () => {
  const both: Json = { ...rated, key: 'both', concurrency: 1 };

  it('continues although its window is used up, where others see what counts', async () => {
    const queue = new TestQueue();
    const [id, , last] = await addManyTo(queue, 3, { ...rated, key: 'closed' });
    await suspend(queue, sleep('nap', SECOND));
    expect(await fetchFrom(queue)).toHaveLength(1);
    clock.advance(SECOND);
    expect(await why(last as string)).toMatchObject({
      reason: 'key_limit',
      until: iso(T0 + 30 * SECOND),
      detail: expect.stringContaining('2 jobs have started within PT30S. Each attempt counts once'),
    });
    expect(await fetchFrom(queue)).toEqual([id]);
    expect(await fetchFrom(queue)).toEqual([]);
  });

  it('waits for its place among what runs, before those that have not started, and survives an eviction', async () => {
    const queue = new TestQueue();
    const [id, other] = await addManyTo(queue, 2, both);
    await suspend(queue, sleep('nap', SECOND));
    expect(await fetchFrom(queue)).toEqual([other]);
    await addManyTo(queue, 5, both, { priority: 5 });
    clock.advance(SECOND);
    expect(await fetchFrom(queue)).toEqual([]);
    expect(await why(id as string)).toMatchObject({
      reason: 'key_limit',
      detail: expect.stringMatching(/1 of 1 jobs run\. Its start was counted before/),
    });
    expect(await why(id as string)).not.toHaveProperty('until');
    await queue.evict();
    await ack(other as string);
    expect(await fetchFrom(queue)).toEqual([id]);
    expect(await startsOf('both')).toBe(2);
  });

  it('is neither dropped nor scheduled again for want of a place', async () => {
    for (const on_limit of ['drop', 'reschedule']) {
      const queue = new TestQueue();
      const limit = { key: on_limit, concurrency: 1, on_limit };
      const id = await addTo(queue, limit);
      await suspend(queue, sleep('nap', SECOND));
      const other = await addTo(queue, limit);
      expect(await fetchFrom(queue)).toEqual([other]);
      clock.advance(SECOND);
      expect(await fetchFrom(queue)).toEqual([]);
      expect(await server.state(id)).toBe('available');
      await ack(other);
      expect(await fetchFrom(queue)).toEqual([id]);
    }
  });

  it('waits while an operator has stopped its key', async () => {
    const queue = new TestQueue();
    const id = await addTo(queue, { ...rated, key: 'halt' });
    await suspend(queue, { signal: 'go' });
    await server.ok(200, 'PUT', `${V1}/rate-limits/halt`, { limit: 0 });
    await signal(id, 'go');
    expect(await fetchFrom(queue)).toEqual([]);
    await server.ok(204, 'DELETE', `${V1}/rate-limits/halt/override`);
    expect(await fetchFrom(queue)).toEqual([id]);
  });

  it('gives a job once that one worker has seen wait for its key, and another began', async () => {
    const queue = new TestQueue();
    const limit = { key: 'twice', concurrency: 2 };
    const first = await addManyTo(queue, 2, limit);
    const id = await addTo(queue, limit, { delay_until: iso(Date.now() + 1) });
    clock.advance(1);
    expect(await fetchFrom(queue)).toEqual(first);
    await ack(...first);
    const { attempt } = await server.takeOne(queue.name, { types: ['test.limited'] });
    const snooze = { in: 0, steps: { done: { result: 1 } } };
    const report = { job_id: id, attempt, requeue: true, attempt_used: false, snooze };
    await server.ok(200, 'POST', `${V1}/workers/nack`, report);
    expect(await fetchFrom(queue)).toEqual([id]);
  });
});
