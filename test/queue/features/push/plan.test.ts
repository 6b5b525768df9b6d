import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CallPlan, type Passenger } from '../../../../src/queue/features/push/plan';
import { CALLS_PER_EVENT, CallBudget } from '../../../../src/queue/features/push/pump';

const job = (key: number, change: Partial<Passenger> = {}): Passenger => ({
  key,
  chars: 10,
  timeoutMs: 1_000,
  alone: false,
  ...change,
});

describe('the calls of an event', () => {
  it('are at most 30, below the 32 that the platform allows', () => {
    const budget = new CallBudget();
    let made = 0;
    while (budget.take()) made++;
    expect(made).toBe(30);
    expect(CALLS_PER_EVENT).toBe(30);
    expect(budget.remaining).toBe(0);
    expect(budget.take()).toBe(false);
  });
});

describe('the plan of calls', () => {
  const planned = (plan: CallPlan, jobs: Passenger[]) => {
    const taken = jobs.filter((each) => plan.add(each)).map(({ key }) => key);
    return { taken, calls: plan.calls };
  };

  it('fills calls in order', () => {
    const { calls } = planned(
      new CallPlan(3, 2),
      [1, 2, 3, 4, 5].map((key) => job(key)),
    );
    expect(calls).toEqual([[1, 2], [3, 4], [5]]);
  });

  it('gives a call of its own to a job that must travel alone', () => {
    const { calls } = planned(new CallPlan(9, 10), [job(1), job(2, { alone: true }), job(3)]);
    expect(calls).toEqual([[1, 3], [2]]);
  });

  it('joins only jobs with the same execution limit', () => {
    const { calls } = planned(new CallPlan(9, 10), [job(1), job(2, { timeoutMs: 60_000 }), job(3)]);
    expect(calls).toEqual([[1, 3], [2]]);
  });

  it('bounds the size of a call, but not that of a single job', () => {
    const large = 3 * 1024 * 1024;
    const { calls } = planned(new CallPlan(9, 10), [job(1, { chars: 2 * large }), job(2, { chars: large }), job(3)]);
    expect(calls).toEqual([[1], [2, 3]]);
  });

  it('refuses what would need one call too many, and everything after it', () => {
    const plan = new CallPlan(1, 10);
    expect(planned(plan, [job(1), job(2, { alone: true }), job(3)])).toEqual({ taken: [1], calls: [[1]] });
    expect(plan.isClosed).toBe(true);
  });

  it('whatever comes: seats every job it takes exactly once, within its bounds', () => {
    const passenger = fc.record({
      chars: fc.integer({ min: 1, max: 3_000_000 }),
      timeoutMs: fc.constantFrom(1_000, 30_000),
      alone: fc.boolean(),
    });
    const sizes = fc.record({ calls: fc.integer({ min: 0, max: 30 }), batch: fc.integer({ min: 1, max: 100 }) });
    fc.assert(
      fc.property(sizes, fc.array(passenger, { maxLength: 300 }), (size, passengers) => {
        const jobs = passengers.map((each, key) => ({ key, ...each }));
        const { taken, calls } = planned(new CallPlan(size.calls, size.batch), jobs);
        expect(calls.flat().sort((a, b) => a - b)).toEqual(taken);
        expect(taken).toEqual(jobs.slice(0, taken.length).map(({ key }) => key));
        expect(calls.length).toBeLessThanOrEqual(size.calls);
        for (const call of calls) {
          const members = call.map((key) => jobs[key] as Passenger);
          expect(members.length).toBeLessThanOrEqual(size.batch);
          expect(new Set(members.map(({ timeoutMs }) => timeoutMs)).size).toBe(1);
          if (members.some(({ alone }) => alone)) expect(members).toHaveLength(1);
        }
      }),
    );
  });
});
