/** Portions of a pool: whatever the fetches, queues that have jobs give in the ratio of their weights, and none starves. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { inTurn, moveOn, type Passes, portions } from '../../src/pools/turns';

const NAMES = ['a', 'b', 'c', 'd', 'e'];
const weightsOf = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: NAMES.length });
const poolOf = (weights: number[]) => {
  const queues = NAMES.slice(0, weights.length);
  return {
    strategy: 'weighted' as const,
    queues,
    weights: Object.fromEntries(queues.map((name, at) => [name, weights[at]])),
  } as {
    strategy: 'weighted';
    queues: string[];
    weights: Record<string, number>;
  };
};

/** One fetch from queues with so many jobs: portions first, then what is left from whoever has more. */
function fetchFrom(pool: ReturnType<typeof poolOf>, passes: Passes, count: number, jobs: Record<string, number>) {
  const taken: Record<string, number> = {};
  const short: string[] = [];
  let left = count;
  const take = (queue: string, wanted: number) => {
    if (wanted <= 0 || short.includes(queue)) return;
    const got = Math.min(wanted, jobs[queue] ?? 0);
    jobs[queue] = (jobs[queue] ?? 0) - got;
    taken[queue] = (taken[queue] ?? 0) + got;
    left -= got;
    if (got < wanted) short.push(queue);
  };
  for (const { queue, count: portion } of portions(pool, passes, count)) take(queue, portion);
  for (const queue of inTurn(pool, passes)) take(queue, left);
  return { taken, passes: moveOn(pool, passes, taken, short) };
}

describe('queues that always have jobs', () => {
  it('give in the ratio of their weights, to within one job of each, after any fetches', () => {
    fc.assert(
      fc.property(
        weightsOf,
        fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 60 }),
        (weights, counts) => {
          const pool = poolOf(weights);
          const jobs = Object.fromEntries(pool.queues.map((name) => [name, 1e6]));
          const given: Record<string, number> = {};
          let passes: Passes = {};
          let total = 0;
          for (const count of counts) {
            const fetched = fetchFrom(pool, passes, count, jobs);
            passes = fetched.passes;
            for (const [queue, n] of Object.entries(fetched.taken)) given[queue] = (given[queue] ?? 0) + n;
            total += count;
          }
          const sum = weights.reduce((a, b) => a + b, 0);
          for (const queue of pool.queues) {
            const due = (total * (pool.weights[queue] as number)) / sum;
            expect(Math.abs((given[queue] ?? 0) - due)).toBeLessThanOrEqual(pool.queues.length);
          }
          expect(Object.values(given).reduce((a, b) => a + b, 0)).toBe(total);
        },
      ),
    );
  });
});

describe('any queues', () => {
  it('lose no fetch: what there is, is taken; and a queue with jobs waits for one round of weights at most', () => {
    const arrivals = fc.array(fc.tuple(fc.nat({ max: 4 }), fc.integer({ min: 0, max: 5 })), { maxLength: 80 });
    fc.assert(
      fc.property(weightsOf, arrivals, (weights, events) => {
        const pool = poolOf(weights);
        const sum = weights.reduce((a, b) => a + b, 0);
        const jobs: Record<string, number> = {};
        const waited: Record<string, number> = {};
        let passes: Passes = {};
        for (const [at, arrived] of events) {
          const queue = pool.queues[at % pool.queues.length] as string;
          jobs[queue] = (jobs[queue] ?? 0) + arrived;
          const before = pool.queues.reduce((all, name) => all + (jobs[name] ?? 0), 0);
          const fetched = fetchFrom(pool, passes, 1, jobs);
          passes = fetched.passes;
          const got = Object.values(fetched.taken).reduce((a, b) => a + b, 0);
          expect(got).toBe(Math.min(1, before));
          for (const name of pool.queues) {
            waited[name] = (fetched.taken[name] ?? 0) > 0 || !jobs[name] ? 0 : (waited[name] ?? 0) + 1;
            expect(waited[name]).toBeLessThanOrEqual(2 * sum + pool.queues.length);
          }
        }
      }),
    );
  });

  it('save nothing up while they are empty', () => {
    const pool = poolOf([1, 1]);
    let passes: Passes = {};
    const jobs: Record<string, number> = { a: 1000, b: 0 };
    for (let n = 0; n < 100; n++) passes = fetchFrom(pool, passes, 1, jobs).passes;
    jobs.b = 1000;
    const given = { a: 0, b: 0 } as Record<string, number>;
    for (let n = 0; n < 20; n++) {
      const fetched = fetchFrom(pool, passes, 1, jobs);
      passes = fetched.passes;
      for (const [queue, count] of Object.entries(fetched.taken)) given[queue] = (given[queue] ?? 0) + count;
    }
    expect(Math.abs((given.a as number) - (given.b as number))).toBeLessThanOrEqual(2);
  });
});

describe('a strict pool', () => {
  it('is drained in the order of its queues', () => {
    const pool = { strategy: 'strict' as const, queues: ['b', 'a'], weights: {} };
    expect(portions(pool, { b: 9, a: 0 }, 5)).toEqual([{ queue: 'b', count: 5 }]);
    expect(inTurn(pool, { b: 9, a: 0 })).toEqual(['b', 'a']);
  });
});
