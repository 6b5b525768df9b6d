import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Timers } from '../../src/durable/timers';
import { histories } from '../support/long';

/** The longest timer of the runtime, ms. */
const LONGEST_MS = 5_000;

const timers = () => new Timers(() => Date.now());

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const step = fc.oneof(
  fc.record({ kind: fc.constant('after' as const), ms: fc.oneof(fc.nat(20), fc.nat(20_000)) }),
  fc.record({ kind: fc.constant('end' as const), ms: fc.nat(50) }),
  fc.record({ kind: fc.constant('pass' as const), ms: fc.oneof(fc.nat(20), fc.nat(10_000)) }),
);

describe('timers of an object', () => {
  it('each runs at its moment unless it was ended, and none of the runtime is cleared', () => {
    const cleared = vi.spyOn(globalThis, 'clearTimeout');
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { after: begin } = timers();
        const expected: [number, number][] = [];
        const ran: [number, number][] = [];
        const open: { id: number; at: number; end(): void }[] = [];
        steps.forEach(({ kind, ms }, id) => {
          if (kind === 'after') {
            const at = Date.now() + ms;
            open.push({ id, at, end: begin(ms, () => ran.push([id, Date.now()])) });
          } else if (kind === 'end') {
            const [one] = open.splice(ms % Math.max(1, open.length), 1);
            if (one && one.at <= Date.now()) expected.push([one.id, one.at]);
            one?.end();
          } else vi.advanceTimersByTime(ms);
        });
        vi.advanceTimersByTime(30_000);
        for (const { id, at } of open) expected.push([id, at]);
        // One of no time rings with the next millisecond, or is ended before.
        const late = ran.filter(([id, at]) => !expected.some(([other, due]) => other === id && at - due <= 1));
        expect(late).toEqual([]);
        for (const { id } of open) expect(ran.filter(([other]) => other === id)).toHaveLength(1);
        expect(vi.getTimerCount()).toBe(0);
      }),
      { numRuns: histories(500) },
    );
    expect(cleared).not.toHaveBeenCalled();
  });

  it('need few of the runtime, which keep the object in memory for seconds at most', () => {
    const { after: begin } = timers();
    const run = vi.fn();
    const ends = Array.from({ length: 1_000 }, (_, n) => begin(30_000 + n, run));
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(20_000);
    expect(vi.getTimerCount()).toBe(1);
    for (const end of ends) end();
    vi.advanceTimersByTime(LONGEST_MS);
    expect(vi.getTimerCount()).toBe(0);
    expect(run).not.toHaveBeenCalled();
  });

  it('wait as long as ever when the clock is set back', () => {
    const { after: begin } = timers();
    const run = vi.fn();
    begin(8_000, run);
    vi.advanceTimersByTime(3_000);
    vi.setSystemTime(Date.now() - 3_600_000);
    vi.advanceTimersByTime(2_000);
    begin(10_000, vi.fn());
    vi.advanceTimersByTime(2_999);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(LONGEST_MS);
    expect(run).toHaveBeenCalledOnce();
  });

  it('come although the clock stands', () => {
    const { after: begin } = new Timers(() => 1_000);
    const run = vi.fn();
    begin(12_000, run);
    vi.advanceTimersByTime(11_999);
    expect(run).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(run).toHaveBeenCalledOnce();
  });

  it('one that another ends at its moment does not run', () => {
    const { after: begin } = timers();
    const run = vi.fn();
    const ends: (() => void)[] = [];
    begin(5, () => ends[0]?.());
    ends.push(begin(5, run));
    vi.advanceTimersByTime(LONGEST_MS);
    expect(run).not.toHaveBeenCalled();
  });

  it('one that fails takes none along', () => {
    const { after: begin } = timers();
    const run = vi.fn();
    begin(5, () => {
      throw new Error('failed');
    });
    begin(5, run);
    const logged = vi.spyOn(console, 'error').mockReturnValue();
    vi.advanceTimersByTime(5);
    expect(logged).toHaveBeenCalledOnce();
    expect(run).toHaveBeenCalledOnce();
  });
});
