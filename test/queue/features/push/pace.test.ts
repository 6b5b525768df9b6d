import { describe, expect, it } from 'vitest';
import { Pace } from '../../../../src/queue/features/push/target';

const USUAL = 30_000;

function paceAfter(...calls: [entries: string[], tookMs: number][]): Pace {
  const pace = new Pace();
  for (const [entries, tookMs] of calls) pace.note(new Set(entries), tookMs);
  return pace;
}

const quick = (entry: string, times = 8) => Array.from({ length: times }, (): [string[], number] => [[entry], 5]);

describe('a call stays open', () => {
  it('until its types have been quick some times in a row', () => {
    expect(paceAfter(...quick('a', 7)).staysOpen(new Set('a'), USUAL)).toBe(true);
    expect(paceAfter(...quick('a')).staysOpen(new Set('a'), USUAL)).toBe(false);
  });

  it('when one of its jobs has a type that is not known as quick', () => {
    expect(paceAfter(...quick('a')).staysOpen(new Set('ab'), USUAL)).toBe(true);
  });

  it('again after a slow one', () => {
    expect(paceAfter(...quick('a'), [['a', 'b'], 501]).staysOpen(new Set('a'), USUAL)).toBe(true);
  });

  it('when its jobs may run longer than usual', () => {
    expect(paceAfter(...quick('a')).staysOpen(new Set('a'), USUAL + 1)).toBe(true);
  });
});
