import { describe, expect, it } from 'vitest';
import { clock } from '../../../support/clock';
import { TestQueue } from '../../../support/queue';
import { server } from '../../../support/server';
import { ack, addManyTo, addTo, armedAt, fetchFrom } from './limited';

clock.startAtT0();

describe('on_limit drop', () => {
  it('discards a job whose turn comes while the limit is reached, with a reason and an event', async () => {
    const queue = new TestQueue();
    const limit = { key: 'k', concurrency: 1, on_limit: 'drop' };
    const [first, second] = await addManyTo(queue, 2, limit);
    const free = await addTo(queue);
    expect(await fetchFrom(queue)).toEqual([first, free]);
    expect(await server.job(second as string)).toMatchObject({ state: 'discarded', discard_reason: 'rate_limited' });
    expect(await server.events({ queue: queue.name, types: 'job.discarded' })).toMatchObject([
      { subject: second, data: { reason: 'rate_limited' } },
    ]);
  });

  it('runs a job for which there is room by the time its turn comes', async () => {
    const queue = new TestQueue();
    const [first, second] = await addManyTo(queue, 2, { key: 'k', concurrency: 1, on_limit: 'drop' });
    expect(await fetchFrom(queue, 1)).toEqual([first]);
    await ack(first as string);
    expect(await fetchFrom(queue, 1)).toEqual([second]);
  });

  it('is per job: others of the same key may wait', async () => {
    const queue = new TestQueue();
    const first = await addTo(queue, { key: 'k', concurrency: 1 });
    const waits = await addTo(queue, { key: 'k', concurrency: 1 });
    const dropped = await addTo(queue, { key: 'k', concurrency: 1, on_limit: 'drop' });
    expect(await fetchFrom(queue)).toEqual([first]);
    expect(await server.state(waits)).toBe('available');
    expect(await server.state(dropped)).toBe('discarded');
  });
});

describe('on_limit reschedule', () => {
  const limit = { key: 'k', rate: 2, period: 'PT10S', on_limit: 'reschedule' };

  it('gives every job a moment of its own at which it fits', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 7, limit);
    expect(await fetchFrom(queue)).toEqual(ids.slice(0, 2));
    const starts = [];
    for (const id of ids.slice(2)) {
      const job = await server.job(id);
      expect(job.state).toBe('scheduled');
      starts.push((Date.parse(job.scheduled_at as string) - Date.now()) / 1000);
    }
    expect(starts).toEqual([10, 10, 20, 20, 30]);
    clock.at(10_000);
    expect(await fetchFrom(queue)).toEqual(ids.slice(2, 4));
    clock.at(20_000);
    expect(await fetchFrom(queue)).toEqual(ids.slice(4, 6));
    clock.at(30_000);
    expect(await fetchFrom(queue)).toEqual(ids.slice(6));
  });

  it('spreads a throttle, and wakes for the jobs', async () => {
    const queue = new TestQueue();
    const ids = await addManyTo(queue, 4, {
      key: 't',
      throttle: { limit: 4, period: 'second' },
      on_limit: 'reschedule',
    });
    expect(await fetchFrom(queue)).toEqual([ids[0]]);
    expect(await armedAt(queue)).toBe(250);
    for (let n = 1; n < 4; n++) {
      clock.at(n * 250);
      expect(await fetchFrom(queue)).toEqual([ids[n]]);
    }
  });

  it.each([
    [{}, {}],
    [{ rate: 100, period: 'minute' }, {}],
    [{ rate: 100, period: 'minute' }, { groups: { order: 'fair' } }],
    [{ rate: 100, period: 'minute' }, { groups: { order: 'strict' } }],
  ])('waits for a place among the jobs that run, whose end no one can foresee: %j %j', async (rate, config) => {
    const queue = new TestQueue();
    await server.configure(queue.name, config);
    const limit = { key: 'k', concurrency: 1, ...rate, on_limit: 'reschedule' };
    const first = await addTo(queue, limit, { group: 'a' });
    const second = await addTo(queue, limit, { group: 'b' });
    expect(await fetchFrom(queue)).toEqual([first]);
    expect(await server.state(second)).toBe('available');
    expect(await fetchFrom(queue)).toEqual([]);
    await ack(first);
    expect(await fetchFrom(queue)).toEqual([second]);
  });
});
