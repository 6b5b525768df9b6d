/**
 * Limits under any load: workers that come and go, jobs that end at any time, an object that forgets. Seen from outside
 * only: what runs at once, when attempts started, and that every job runs in the end.
 */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Starts } from '../../../../src/job/limits/starts';
import { Usage } from '../../../../src/job/limits/usage';
import { clock } from '../../../support/clock';
import { histories } from '../../../support/long';
import { TestQueue } from '../../../support/queue';
import { ack, addManyTo, fetchFrom } from './limited';

clock.startAtT0();

interface Load {
  concurrency: number;
  limit: number;
  period: number;
  throttled: boolean;
  jobs: number;
  /** What happens, in turns: how much time passes, how many are fetched, which of the running ones end. */
  turns: { ms: number; fetch: number; ends: number; evict: boolean }[];
}

const load: fc.Arbitrary<Load> = fc.record({
  concurrency: fc.integer({ min: 1, max: 5 }),
  limit: fc.integer({ min: 1, max: 6 }),
  period: fc.integer({ min: 1, max: 3_000 }),
  throttled: fc.boolean(),
  jobs: fc.integer({ min: 1, max: 25 }),
  turns: fc.array(
    fc.record({
      ms: fc.integer({ min: 0, max: 1_500 }),
      fetch: fc.integer({ min: 0, max: 8 }),
      ends: fc.integer({ min: 0, max: 4 }),
      evict: fc.boolean(),
    }),
    { maxLength: 20 },
  ),
});

/** No more than `limit` of these moments in any period that is open at one end. */
function neverMore(starts: readonly number[], limit: number, period: number): boolean {
  return starts.every((start, index) => index < limit || start - (starts[index - limit] as number) >= period);
}

describe('a limited key', () => {
  it('never has more running than it may, never more starts in any period, and starves no job', async () => {
    await fc.assert(
      fc.asyncProperty(load, async ({ concurrency, limit, period, throttled, jobs, turns }) => {
        const queue = new TestQueue();
        let now = 0;
        clock.at(now);
        const quota = { limit, period };
        const ids = await addManyTo(queue, jobs, {
          key: 'k',
          concurrency,
          ...(throttled ? { throttle: quota } : { rate: quota }),
        });
        const running: string[] = [];
        const starts: number[] = [];
        const done: string[] = [];
        const fetch = async (count: number) => {
          for (const id of count > 0 ? await fetchFrom(queue, count) : []) {
            running.push(id);
            starts.push(now);
          }
          expect(running.length).toBeLessThanOrEqual(concurrency);
        };
        for (const { ms, fetch: count, ends, evict } of turns) {
          now += ms;
          clock.at(now);
          await fetch(count);
          const ended = running.splice(0, ends);
          await ack(...ended);
          done.push(...ended);
          if (evict) await queue.evict();
        }
        // From here on somebody always asks: everything runs, in the order in which it came.
        for (let n = 0; done.length < jobs && n < 4 * jobs + 10; n++) {
          const ended = running.splice(0);
          await ack(...ended);
          done.push(...ended);
          now += period;
          clock.at(now);
          await fetch(100);
        }
        expect(done).toEqual(ids);
        expect(neverMore(starts, limit, period), `starts ${starts}`).toBe(true);
        if (throttled) expect(neverMore(starts, 1, period / limit), `starts ${starts}`).toBe(true);
      }),
      { numRuns: histories(25) },
    );
  });
});

describe('the window of starts', () => {
  it('agrees with a plain list, however starts come', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 20 }),
        fc.array(fc.record({ ms: fc.nat(300), count: fc.integer({ min: 1, max: 5 }) }), { maxLength: 200 }),
        (period, limit, steps) => {
          const starts = new Starts();
          const list: number[] = [];
          let now = 1_000_000;
          for (const { ms, count } of steps) {
            now += ms;
            const inside = list.filter((start) => start > now - period);
            expect(starts.count(now, period)).toBe(inside.length);
            const opens = inside.length < limit ? undefined : (inside.at(-limit) as number) + period;
            if (opens === undefined) expect(starts.opensAt(limit, period)).toBeLessThanOrEqual(now);
            else expect(starts.opensAt(limit, period)).toBe(opens);
            starts.add(now, count, period);
            for (let n = 0; n < count; n++) list.push(now);
          }
        },
      ),
    );
  });

  it('stays small, and errs on the safe side and by little, when very many starts are apart', () => {
    const period = 1_000_000;
    const starts = new Starts();
    for (let n = 0; n < 50_000; n++) starts.add(n * 20, 1, period);
    expect(starts.entries.length).toBeLessThanOrEqual(1024);
    const now = 50_000 * 20;
    expect(starts.count(now, period)).toBeGreaterThanOrEqual(49_999);
    expect(starts.count(now, period)).toBeLessThanOrEqual(49_999 * 1.005);
    const later = now + period / 2;
    const exact = 25_000;
    expect(starts.count(later, period)).toBeGreaterThanOrEqual(exact - 1);
    expect(starts.count(later, period)).toBeLessThanOrEqual(exact * 1.005);
  });

  it('lets nothing out early when the clock was set back', () => {
    const starts = new Starts();
    starts.add(1_000, 1, 100);
    starts.add(900, 1, 100);
    expect(starts.count(1_050, 100)).toBe(2);
    expect(starts.opensAt(1, 100)).toBe(1_100);
  });
});

describe('a clock that was set back by much', () => {
  it('shuts a key for no longer than its period', () => {
    const hour = 3_600_000;
    for (const limits of [{ rate: { limit: 2, period_ms: 1_000 } }, { throttle: { limit: 2, period_ms: 1_000 } }]) {
      const usage = new Usage();
      usage.started(limits, 2, hour);
      expect(usage.opensAt(limits, 0)).toBe('rate' in limits ? 1_000 : 500);
      expect(usage.room(limits, 0, 499)).toBe(0);
      expect(usage.room(limits, 0, 1_000)).toBeGreaterThan(0);
    }
  });
});

describe('moments promised to jobs that are rescheduled', () => {
  it('are such that all may start when they were promised to', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 1, max: 1_000 }),
        fc.boolean(),
        fc.nat(8),
        fc.integer({ min: 1, max: 40 }),
        (limit, period_ms, throttled, started, waiting) => {
          const limits = throttled ? { throttle: { limit, period_ms } } : { rate: { limit, period_ms } };
          const usage = new Usage();
          let now = 1_000_000;
          const starts: number[] = [];
          for (let n = 0; n < started; n++) {
            now += 7;
            if (usage.room(limits, 0, now) === 0) continue;
            usage.started(limits, 1, now);
            starts.push(now);
          }
          const promised = Array.from({ length: waiting }, () => usage.book(limits, now) as number);
          expect(promised.every((moment) => moment > now)).toBe(true);
          for (const moment of promised) {
            expect(usage.room(limits, 0, moment)).toBeGreaterThan(0);
            usage.started(limits, 1, moment);
            starts.push(moment);
          }
          expect(neverMore(starts, limit, period_ms)).toBe(true);
        },
      ),
    );
  });
});
