/**
 * Limits of every kind beside each other, in queues that serve groups in any way: workers of few types, jobs that end at
 * any time, an object that forgets. Each job runs in the end, or is dropped as it says; and no key has more than it may.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Limits, OnLimit } from '../../../../src/job/limits/policy';
import { clock, T0 } from '../../../support/clock';
import { histories } from '../../../support/long';
import { type JobChange, TestQueue } from '../../../support/queue';
import { type Json, server } from '../../../support/server';

clock.startAtT0();

const SECOND = 1_000;

/** What each key allows. */
const KEYS: Record<string, Limits> = {
  narrow: { concurrency: 1 },
  wide: { concurrency: 3 },
  rated: { rate: { limit: 2, period_ms: 5 * SECOND } },
  both: { concurrency: 2, rate: { limit: 3, period_ms: 5 * SECOND } },
};

interface Order {
  key: string | undefined;
  onLimit: OnLimit;
  group: string | undefined;
  type: string;
  priority: number;
  delay: number;
}

const order: fc.Arbitrary<Order> = fc.record({
  key: fc.constantFrom(undefined, ...Object.keys(KEYS), ...Object.keys(KEYS)),
  onLimit: fc.constantFrom<OnLimit[]>('wait', 'wait', 'reschedule', 'drop'),
  group: fc.constantFrom(undefined, undefined, 'a', 'b', 'c'),
  type: fc.constantFrom('x', 'x', 'y'),
  priority: fc.constantFrom(0, 0, 0, 5),
  delay: fc.constantFrom(0, 0, 0, 700),
});

type Step =
  | { op: 'enqueue'; orders: Order[]; times: number }
  | { op: 'claim'; count: number; types: string[] | undefined }
  | { op: 'end'; count: number; how: 'ack' | 'retry' | 'undo' }
  | { op: 'pass'; ms: number }
  | { op: 'forget' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('enqueue' as const),
      orders: fc.array(order, { minLength: 1, maxLength: 4 }),
      times: fc.constantFrom(1, 1, 2, 20),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('claim' as const),
      count: fc.constantFrom(1, 2, 5, 50),
      types: fc.constantFrom<(string[] | undefined)[]>(undefined, undefined, ['x'], ['y']),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('end' as const),
      count: fc.constantFrom(1, 2, 10),
      how: fc.constantFrom<('ack' | 'retry' | 'undo')[]>('ack', 'ack', 'retry', 'undo'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('pass' as const), ms: fc.constantFrom(1, 400, 1_000, 5_000) }) },
  { weight: 1, arbitrary: fc.constant<Step>({ op: 'forget' }) },
);

const groups = fc.constantFrom<(Json | null)[]>(
  ...[null, { order: 'fair' }, { order: 'fair', concurrency: 1 }, { order: 'fair', concurrency: 2 }],
  ...[{ order: 'strict' }, { order: 'strict' }, { order: 'fair', rate: { limit: 2, period: 2_000 } }],
);

function jobOf({ key, onLimit, group, type, priority, delay }: Order, isStrict: boolean): JobChange {
  const limits = key === undefined ? undefined : (KEYS[key] as Limits);
  const { concurrency, rate } = limits ?? {};
  const owner = group ?? key;
  const rate_limit = limits && {
    ...{ key, on_limit: onLimit, ...(concurrency !== undefined && { concurrency }) },
    ...(rate && { rate: rate.limit, period: `PT${rate.period_ms / SECOND}S` }),
  };
  return {
    ...{ type, priority: isStrict && owner !== undefined ? 0 : priority },
    ...(delay > 0 && { scheduledAt: Date.now() + delay }),
    ...(key !== undefined && limits && { limit: { key, limits, on_limit: onLimit } }),
    ...(owner !== undefined && { group: owner }),
    body: {
      ...(rate_limit && { rate_limit: rate_limit as never }),
      ...(group !== undefined && { group }),
      retry: { max_attempts: 3, initial_interval: 500, backoff_coefficient: 1, jitter: false },
    },
  };
}

/** One queue, and what its workers hold. */
class Played {
  readonly queue = new TestQueue();
  private readonly running: { id: string; key: string | undefined }[] = [];
  private readonly keys = new Map<string, string | undefined>();

  async enqueue(orders: readonly Order[], times: number, isStrict: boolean): Promise<void> {
    const all = Array.from({ length: times }, () => orders).flat();
    const records = await this.queue.enqueue(...all.map((one) => jobOf(one, isStrict)));
    for (const [at, { id }] of records.entries()) this.keys.set(id, all[at]?.key);
  }

  async claim(count: number, types: string[] | undefined): Promise<number> {
    const jobs = await this.queue.claim({ count, ...(types && { types }) });
    for (const { id } of jobs) this.running.push({ id, key: this.keys.get(id) });
    for (const [key, { concurrency = Number.POSITIVE_INFINITY }] of Object.entries(KEYS)) {
      expect(this.running.filter((one) => one.key === key).length).toBeLessThanOrEqual(concurrency);
    }
    return jobs.length;
  }

  async end(count: number, how: 'ack' | 'retry' | 'undo'): Promise<void> {
    for (const { id } of this.running.splice(0, count)) {
      if (how === 'ack') await this.queue.ack(id);
      else await this.queue.nack(id, { message: 'failed' }, { requeue: how === 'undo' });
    }
  }

  /** How many jobs have not ended. */
  async open(): Promise<number> {
    const { completed: _, discarded: __, ...open } = await this.queue.counts();
    return Object.values(open).reduce((sum, count) => sum + count, 0);
  }
}

async function play(played: Played, one: Step, isStrict: boolean): Promise<void> {
  if (one.op === 'enqueue') await played.enqueue(one.orders, one.times, isStrict);
  else if (one.op === 'claim') await played.claim(one.count, one.types);
  else if (one.op === 'end') await played.end(one.count, one.how);
  else if (one.op === 'pass') clock.advance(one.ms);
  else await played.queue.inside(({ q }) => q.load());
}

describe('limits of every kind beside each other', () => {
  it('starve no job, however groups are served and whatever is forgotten', async () => {
    await fc.assert(
      fc.asyncProperty(groups, fc.array(step, { minLength: 5, maxLength: 30 }), async (terms, steps) => {
        clock.set(T0);
        const played = new Played();
        await server.configure(played.queue.name, { groups: terms });
        const isStrict = terms?.order === 'strict';
        for (const one of steps) await play(played, one, isStrict);
        // From here on somebody always asks.
        let left = await played.open();
        for (let idle = 0; left > 0; ) {
          const count = await played.claim(100, undefined);
          await played.end(1_000, 'ack');
          clock.advance(SECOND);
          idle = count > 0 ? 0 : idle + 1;
          if (idle > 60) break;
          if (count === 0 || idle > 0) left = await played.open();
        }
        expect(left).toBe(0);
      }),
      { numRuns: histories(60) },
    );
  });
});
