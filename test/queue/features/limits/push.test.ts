/** Limits of jobs that are pushed: the selection is another, the limits are the same. In real time. */

import { describe, expect, it } from 'vitest';
import { clock, until } from '../../../support/clock';
import { Gate, runsOf } from '../../../support/handlers';
import { TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

clock.restoreAfterEach();

const many = (count: number, type: string, args: unknown[], options: Json) =>
  server.addAll(Array.from({ length: count }, () => ({ type, args, options })));
const startedAt = async (id: string) => Date.parse((await server.job(id)).started_at as string);
const armedAt = (queue: string) => new TestQueue(queue).armedAt();

describe('a key that bounds concurrency', () => {
  it('holds for pushed jobs, and others pass by', async () => {
    const gate = new Gate('PLAIN');
    const queue = 'push-narrow';
    const rate_limit = { key: 'narrow', concurrency: 2 };
    const ids = await many(8, 'wide.gate', gate.args, { queue, rate_limit });
    await gate.waiting(2);
    await server.jobIn(await server.add('wide.echo', [], { queue }), 'completed');
    expect(await server.counts(queue)).toMatchObject({ active: 2, available: 6 });
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
    expect((await gate.load()).most).toBe(2);
  });

  it('lets the object sleep while all places are taken', async () => {
    const gate = new Gate('PLAIN');
    const queue = 'push-asleep';
    const ids = await many(4, 'wide.gate', gate.args, { queue, rate_limit: { key: 'one', concurrency: 1 } });
    await gate.waiting(1);
    await until(async () => ((await armedAt(queue)) ?? 0) > Date.now() + 5_000, 'the alarm to wait for a lease');
    await gate.open();
    for (const id of ids) await server.jobIn(id, 'completed');
  });

  it('raised or stopped at run time holds from that moment on', async () => {
    const gate = new Gate('PLAIN');
    const queue = 'push-raised';
    const key = 'push-raised-key';
    const ids = await many(6, 'wide.gate', gate.args, { queue, rate_limit: { key, concurrency: 1 } });
    await gate.waiting(1);
    await server.ok(200, 'PUT', `/ojs/v1/rate-limits/${key}`, { concurrency: 4 });
    await gate.waiting(4);
    await server.ok(200, 'PUT', `/ojs/v1/rate-limits/${key}`, { concurrency: 0 });
    await gate.open();
    await until(async () => (await server.counts(queue)).completed === 4, 'the running jobs to complete');
    expect(await server.counts(queue)).toMatchObject({ active: 0, available: 2 });
    expect((await server.call('DELETE', `/ojs/v1/rate-limits/${key}/override`)).status).toBe(204);
    for (const id of ids) await server.jobIn(id, 'completed');
  });
});

describe('a key that bounds starts', () => {
  it('lets pushed jobs start as its window slides, by itself', async () => {
    const queue = 'push-rated';
    const rate_limit = { key: 'rated', rate: { limit: 3, period: '400ms' } };
    const ids = await many(9, 'wide.echo', [], { queue, rate_limit });
    for (const id of ids) await server.jobIn(id, 'completed');
    const starts = (await Promise.all(ids.map(startedAt))).sort((a, b) => a - b);
    for (const [index, start] of starts.entries()) {
      if (index >= 3) expect(start - (starts[index - 3] as number)).toBeGreaterThanOrEqual(400);
    }
    // Nor does anything wait longer than it must, but for the alarm being late.
    expect((starts.at(-1) as number) - (starts[0] as number)).toBeLessThan(3_000);
  });

  it('spreads them when it is a throttle', async () => {
    const queue = 'push-throttled';
    const ids = await many(5, 'wide.echo', [], {
      queue,
      rate_limit: { key: 't', throttle: { limit: 10, period: 'second' } },
    });
    for (const id of ids) await server.jobIn(id, 'completed');
    const starts = (await Promise.all(ids.map(startedAt))).sort((a, b) => a - b);
    for (let n = 1; n < starts.length; n++) {
      expect((starts[n] as number) - (starts[n - 1] as number)).toBeGreaterThanOrEqual(100);
    }
  });

  it('drops or reschedules where a job says so', async () => {
    const gate = new Gate('PLAIN');
    const queue = 'push-others';
    const rate_limit = { key: 'other', concurrency: 1, rate: { limit: 2, period: 'hour' } };
    const running = await server.add('wide.gate', gate.args, { queue, rate_limit });
    await gate.waiting(1);
    const dropped = await server.add('wide.echo', [], { queue, rate_limit: { ...rate_limit, on_limit: 'drop' } });
    expect(await server.jobIn(dropped, 'discarded')).toMatchObject({ discard_reason: 'rate_limited' });
    await gate.open();
    await server.jobIn(running, 'completed');
    const second = await server.add('wide.echo', [], { queue, rate_limit });
    await server.jobIn(second, 'completed');
    const later = await server.add('wide.echo', [], { queue, rate_limit: { ...rate_limit, on_limit: 'reschedule' } });
    const { scheduled_at } = await server.jobIn(later, 'scheduled');
    expect(Date.parse(scheduled_at as string)).toBeGreaterThan(Date.now() + 3_000_000);
    expect(await runsOf('PLAIN', later)).toEqual([]);
  });
});

describe('groups with a rate', () => {
  it('have their starts spread, and delay no job of another group', async () => {
    const queue = 'push-groups-rated';
    await server.configure(queue, { groups: { rate: { limit: 2, period: '300ms' } } });
    const ids = await many(6, 'wide.echo', [], { queue, group: 'a' });
    const [other] = await many(1, 'wide.echo', [], { queue, group: 'b' });
    for (const id of [...ids, other as string]) await server.jobIn(id, 'completed');
    const starts = (await Promise.all(ids.map(startedAt))).sort((a, b) => a - b);
    for (const [index, start] of starts.entries()) {
      if (index >= 2) expect(start - (starts[index - 2] as number)).toBeGreaterThanOrEqual(300);
    }
    expect(await startedAt(other as string)).toBeLessThan(starts[2] as number);
  });

  it('wake the object when a window opens, also after an eviction', async () => {
    const queue = 'push-groups-wake';
    await server.configure(queue, { groups: { rate: { limit: 1, period: 'hour' } } });
    const [first] = await many(2, 'wide.echo', [], { queue, group: 'a' });
    await server.jobIn(first as string, 'completed');
    const opens = (await startedAt(first as string)) + 3_600_000;
    await new TestQueue(queue).evict();
    clock.advance(60_000);
    await new TestQueue(queue).alarm();
    expect(await armedAt(queue)).toBe(opens);
  });
});

describe('the limits of a queue', () => {
  it('spread the starts of everything that is pushed', async () => {
    const queue = 'push-queue-rated';
    await server.configure(queue, { rate_limit: { limit: 2, period: '300ms' } });
    const ids = await many(6, 'wide.echo', [], { queue });
    for (const id of ids) await server.jobIn(id, 'completed');
    const starts = (await Promise.all(ids.map(startedAt))).sort((a, b) => a - b);
    for (const [index, start] of starts.entries()) {
      if (index >= 2) expect(start - (starts[index - 2] as number)).toBeGreaterThanOrEqual(300);
    }
  });

  it('wake the object when the window opens for jobs that are pushed', async () => {
    const queue = 'push-queue-wake';
    await server.configure(queue, { rate_limit: { limit: 1, period: 'hour' } });
    const [first] = await many(2, 'wide.echo', [], { queue });
    await server.jobIn(first as string, 'completed');
    const opens = (await startedAt(first as string)) + 3_600_000;
    // Past the end of the lease, which the alarm was set for before.
    clock.advance(60_000);
    await new TestQueue(queue).alarm();
    expect(await armedAt(queue)).toBe(opens);
  });

  it('bound what runs at once, pushed and fetched together', async () => {
    const gate = new Gate('PLAIN');
    const queue = 'push-queue-bound';
    await server.configure(queue, { rate_limit: { concurrency: 2 } });
    const pulled = await server.add('pulled.by-worker', [], { queue });
    await server.take(queue);
    await many(3, 'wide.gate', gate.args, { queue });
    await gate.waiting(1);
    expect(await server.counts(queue)).toMatchObject({ active: 2, available: 2 });
    await server.ack(pulled);
    await gate.waiting(2);
    await gate.open();
    await until(async () => (await server.counts(queue)).completed === 4, 'all jobs to complete');
  });
});
