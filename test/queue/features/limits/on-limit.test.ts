import { describe, expect, it } from 'vitest';
import { events } from '../../../support/http';
import { at, LimitedQueue, virtualClock } from './limited-queue';

virtualClock();

describe('on_limit drop', () => {
  it('discards a job whose turn comes while the limit is reached, with a reason and an event', async () => {
    const queue = new LimitedQueue();
    const limit = { key: 'k', concurrency: 1, on_limit: 'drop' };
    const [first, second] = await queue.addMany(2, limit);
    const free = await queue.add();
    expect(await queue.fetch()).toEqual([first, free]);
    expect(await queue.job(second as string)).toMatchObject({ state: 'discarded', discard_reason: 'rate_limited' });
    expect(await events(queue.name, 'job.discarded')).toMatchObject([
      { subject: second, data: { reason: 'rate_limited' } },
    ]);
  });

  it('runs a job for which there is room by the time its turn comes', async () => {
    const queue = new LimitedQueue();
    const [first, second] = await queue.addMany(2, { key: 'k', concurrency: 1, on_limit: 'drop' });
    expect(await queue.fetch(1)).toEqual([first]);
    await queue.ack(first as string);
    expect(await queue.fetch(1)).toEqual([second]);
  });

  it('is per job: others of the same key may wait', async () => {
    const queue = new LimitedQueue();
    const first = await queue.add({ key: 'k', concurrency: 1 });
    const waits = await queue.add({ key: 'k', concurrency: 1 });
    const dropped = await queue.add({ key: 'k', concurrency: 1, on_limit: 'drop' });
    expect(await queue.fetch()).toEqual([first]);
    expect(await queue.state(waits)).toBe('available');
    expect(await queue.state(dropped)).toBe('discarded');
  });
});

describe('on_limit reschedule', () => {
  const limit = { key: 'k', rate: 2, period: 'PT10S', on_limit: 'reschedule' };

  it('gives every job a moment of its own at which it fits', async () => {
    const queue = new LimitedQueue();
    const ids = await queue.addMany(7, limit);
    expect(await queue.fetch()).toEqual(ids.slice(0, 2));
    const starts = [];
    for (const id of ids.slice(2)) {
      const job = await queue.job(id);
      expect(job.state).toBe('scheduled');
      starts.push((Date.parse(job.scheduled_at as string) - Date.now()) / 1000);
    }
    expect(starts).toEqual([10, 10, 20, 20, 30]);
    at(10_000);
    expect(await queue.fetch()).toEqual(ids.slice(2, 4));
    at(20_000);
    expect(await queue.fetch()).toEqual(ids.slice(4, 6));
    at(30_000);
    expect(await queue.fetch()).toEqual(ids.slice(6));
  });

  it('spreads a throttle, and wakes for the jobs', async () => {
    const queue = new LimitedQueue();
    const ids = await queue.addMany(4, { key: 't', throttle: { limit: 4, period: 'second' }, on_limit: 'reschedule' });
    expect(await queue.fetch()).toEqual([ids[0]]);
    expect(await queue.armedAt()).toBe(250);
    for (let n = 1; n < 4; n++) {
      at(n * 250);
      expect(await queue.fetch()).toEqual([ids[n]]);
    }
  });

  it('waits for a place among the jobs that run, whose end nobody can foresee', async () => {
    const queue = new LimitedQueue();
    const [first, second] = await queue.addMany(2, { key: 'k', concurrency: 1, on_limit: 'reschedule' });
    expect(await queue.fetch()).toEqual([first]);
    expect(await queue.state(second as string)).toBe('available');
    await queue.ack(first as string);
    expect(await queue.fetch()).toEqual([second]);
  });
});
