import { describe, expect, it } from 'vitest';
import { Allowance } from '../../src/durable/allowance';

const T0 = Date.UTC(2040, 0, 1);

describe('what a follower may be sent', () => {
  it('is a number of events per second', () => {
    const allowance = new Allowance(10);
    expect([allowance.take(4, T0), allowance.take(6, T0 + 999)]).toEqual([4, 6]);
    expect(allowance.tellAt).toBeUndefined();
    expect(allowance.take(10, T0 + 1000)).toBe(10);
  });

  it('is nothing more once events were left out, until the follower was sent their number', () => {
    const allowance = new Allowance(10);
    expect(allowance.take(12, T0 + 300)).toBe(10);
    expect(allowance.tellAt).toBe(T0 + 1300);
    expect(allowance.take(3, T0 + 1400)).toBe(0);
    // However many come meanwhile, it is told no later.
    expect(allowance.tellAt).toBe(T0 + 1300);
    expect(allowance.takeDropped()).toBe(5);
    expect([allowance.tellAt, allowance.take(3, T0 + 1400)]).toEqual([undefined, 3]);
    expect(allowance.take(10, T0 + 1500)).toBe(7);
  });

  it('does not wait for a clock that went back', () => {
    const allowance = new Allowance(10);
    allowance.take(10, T0);
    expect(allowance.take(1, T0 - 60_000)).toBe(1);
  });
});
