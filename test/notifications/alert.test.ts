import { describe, expect, it } from 'vitest';
import { type AlertRule, type AlertState, judge, type Reading } from '../../src/notifications/alert/rule';

const MINUTE = 60_000;

const rule = (more: Partial<AlertRule> = {}): AlertRule => ({
  id: 'al_1',
  name: 'deep',
  metric: 'depth',
  above: 100,
  for_ms: 0,
  ...more,
});

/** A number over time: what is told, and when. */
function told(of: AlertRule, numbers: readonly [at: number, value: number][]): [number, string][] {
  let state: AlertState | undefined;
  return numbers.flatMap(([at, value]) => {
    const { after, event } = judge(of, state, { value }, at);
    state = after;
    return event ? [[at, event] as [number, string]] : [];
  });
}

describe('an alert rule', () => {
  it('fires above its bound, not at it, and once', () => {
    expect(
      told(rule(), [
        [0, 0],
        [1, 100],
        [2, 101],
        [3, 500],
      ]),
    ).toEqual([[2, 'alert.firing']]);
  });

  it('waits until the number has been too high for that long without a break', () => {
    const patient = rule({ for_ms: 5 * MINUTE });
    const numbers: [number, number][] = [
      [0, 101],
      [4 * MINUTE, 101],
      [4.5 * MINUTE, 90],
      [5 * MINUTE, 101],
      [9 * MINUTE, 101],
    ];
    expect(told(patient, numbers)).toEqual([]);
    expect(told(patient, [...numbers, [10 * MINUTE, 101]])).toEqual([[10 * MINUTE, 'alert.firing']]);
  });

  it('resolves well below its bound, and not at once: a number that goes up and down makes few events', () => {
    const numbers = Array.from({ length: 600 }, (_, second): [number, number] => [
      second * 1000,
      second % 2 ? 50 : 150,
    ]);
    const events = told(rule(), numbers);
    expect(events.length).toBeLessThanOrEqual(20);
    const around = numbers.map(([at], second): [number, number] => [at, second % 2 ? 95 : 105]);
    expect(told(rule(), around)).toEqual([[0, 'alert.firing']]);
  });

  it('with the bound 0 resolves at 0', () => {
    expect(
      told(rule({ above: 0 }), [
        [0, 1],
        [2 * MINUTE, 1],
        [3 * MINUTE, 0],
      ]),
    ).toEqual([
      [0, 'alert.firing'],
      [3 * MINUTE, 'alert.resolved'],
    ]);
  });

  const at = (reading: Reading, before?: AlertState, more: Partial<AlertRule> = {}, now = 1_000) =>
    judge(rule(more), before, reading, now).lookAt;
  const firing = { state: 'firing', since: 0, value: 200 } as const;

  it('is looked at when something would come of it, and never while all is well', () => {
    expect(at({ value: 0 })).toBe(Number.POSITIVE_INFINITY);
    expect(at({ value: 0, risesAbove: (bound) => bound * 7 })).toBe(700);
    expect(at({ value: 150 }, undefined, { for_ms: MINUTE })).toBe(1_000 + MINUTE);
    expect(at({ value: 0, changesAt: 900 })).toBe(900);
    expect(at({ value: 150 }, firing)).toBe(Number.POSITIVE_INFINITY);
    expect(at({ value: 150, changesAt: 5 * MINUTE }, firing)).toBe(5 * MINUTE);
    expect(at({ value: 0 }, firing)).toBe(MINUTE);
    expect(at({ value: 0, risesAbove: () => 9 }, firing, {}, MINUTE)).toBe(9);
  });

  it('changes nothing while nothing changes', () => {
    const ok: AlertState = { state: 'ok', since: 0, value: 7 };
    expect(judge(rule(), ok, { value: 50 }, 1_000).after).toBe(ok);
    expect(judge(rule(), firing, { value: 300 }, 1_000).after).toBe(firing);
  });
});
