import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, MAX_DURATION_MS, parseDuration } from '../../src/job/duration';
import { formatInstant, parseInstant, parseTimestamp } from '../../src/job/time';

const NOW = Date.UTC(2026, 5, 15, 12);

describe('a duration', () => {
  it.each([
    [0, 0],
    [1500, 1500],
    [MAX_DURATION_MS, MAX_DURATION_MS],
    ['0', 0],
    ['1500', 1500],
    ['007', 7],
    ['500ms', 500],
    ['12.5s', 12_500],
    ['1.001s', 1001],
    ['1.4ms', 1],
    ['5m', 300_000],
    ['1.5h', 5_400_000],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
    ['PT1S', 1000],
    ['PT0.5S', 500],
    ['PT0,5S', 500],
    ['PT1H30M', 5_400_000],
    ['PT1.5H', 5_400_000],
    ['P1DT2H', 93_600_000],
    ['P0.5D', 43_200_000],
    ['P2W', 1_209_600_000],
    ['P1W1D', 691_200_000],
    ['PT0S', 0],
    ['P36500D', MAX_DURATION_MS],
  ])('%j is %i ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    [-1],
    [1.5],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [MAX_DURATION_MS + 1],
    [null],
    [undefined],
    [true],
    [[]],
    [{}],
    [''],
    ['P'],
    ['PT'],
    ['P1DT'],
    ['T5S'],
    ['PS'],
    [' 5s'],
    ['5s '],
    ['5s\n'],
    ['5 s'],
    ['5S'],
    ['5'.repeat(400)],
    ['.5s'],
    ['5.s'],
    ['1.5'],
    ['1e3'],
    ['1e3s'],
    ['-5s'],
    ['+5s'],
    ['-PT5S'],
    ['+PT5S'],
    ['pt5s'],
    ['1h30m'],
    ['5 minutes'],
    ['5y'],
    ['P1Y'],
    ['P1M'],
    ['PT1.5H30M'],
    ['P1.5DT1H'],
    ['PT5S5M'],
    ['PT5'],
    ['36501d'],
    ['P36500DT0.001S'],
    ['٣s'],
  ])('%j is none', (value) => {
    expect(parseDuration(value)).toBeUndefined();
  });

  it('never comes out as negative zero', () => {
    expect(Object.is(parseDuration(-0), 0)).toBe(true);
  });

  it.each([
    [0, 'PT0S'],
    [1, 'PT0.001S'],
    [100, 'PT0.1S'],
    [1000, 'PT1S'],
    [61_050, 'PT1M1.05S'],
    [300_000, 'PT5M'],
    [3_600_000, 'PT1H'],
    [604_800_000, 'P7D'],
    [93_600_000, 'P1DT2H'],
  ])('of %i ms is written %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it('reads back as it was written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_DURATION_MS }), (ms) => parseDuration(formatDuration(ms)) === ms),
    );
  });

  it('is a whole number in range or nothing, whatever the text', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[+-]?P?T?\d{0,14}[.,]?\d{0,3}(ms|[smhdwWDHMS])?$/));
    fc.assert(
      fc.property(text, (value) => {
        const ms = parseDuration(value);
        return ms === undefined || (Number.isInteger(ms) && ms >= 0 && ms <= MAX_DURATION_MS);
      }),
    );
  });
});

describe('a timestamp', () => {
  it.each([
    ['2026-01-02T03:04:05Z', Date.UTC(2026, 0, 2, 3, 4, 5)],
    ['2026-01-02t03:04:05.5z', Date.UTC(2026, 0, 2, 3, 4, 5, 500)],
    ['2026-01-02T03:04:05.123999Z', Date.UTC(2026, 0, 2, 3, 4, 5, 123)],
    ['2026-01-02T03:04:05+05:30', Date.UTC(2026, 0, 1, 21, 34, 5)],
    ['2026-01-02T03:04:05-08:00', Date.UTC(2026, 0, 2, 11, 4, 5)],
    ['2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['2000-02-29T00:00:00Z', Date.UTC(2000, 1, 29)],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000],
    ['2016-12-31T23:59:60Z', Date.UTC(2017, 0, 1)],
    ['2016-12-31T15:59:60-08:00', Date.UTC(2017, 0, 1)],
  ])('%s is read', (text, ms) => {
    expect(parseTimestamp(text)).toBe(ms);
  });

  it.each([
    ['2026-01-02'],
    ['2026-01-02T03:04:05'],
    ['2026-01-02T03:04Z'],
    ['2026-01-02 03:04:05Z'],
    ['2026-02-30T00:00:00Z'],
    ['2025-02-29T00:00:00Z'],
    ['1900-02-29T00:00:00Z'],
    ['2026-04-31T00:00:00Z'],
    ['2026-00-01T00:00:00Z'],
    ['2026-13-01T00:00:00Z'],
    ['2026-01-00T00:00:00Z'],
    ['2026-01-02T24:00:00Z'],
    ['2026-01-02T25:00:00Z'],
    ['2026-01-02T03:60:00Z'],
    ['2026-01-02T03:04:60Z'],
    ['2026-01-02T23:59:61Z'],
    ['2026-01-02T03:04:05.Z'],
    ['2026-01-02T03:04:05+24:00'],
    ['2026-01-02T03:04:05+05:60'],
    ['2026-01-02T03:04:05+0530'],
    ['26-01-02T03:04:05Z'],
    [' 2026-01-02T03:04:05Z'],
    [''],
    [1_767_322_245_000],
    [null],
  ])('%j is none', (value) => {
    expect(parseTimestamp(value)).toBeUndefined();
  });

  it('reads back as it was written', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -62_167_219_200_000, max: 253_402_300_799_999 }),
        (ms) => parseTimestamp(formatInstant(ms)) === ms,
      ),
    );
  });
});

describe('a point in time', () => {
  it.each([
    ['+PT2S', 2000],
    ['PT5M', 300_000],
    ['5m', 300_000],
    ['+5m', 300_000],
    ['+1500', 1500],
  ])('%s is counted from now', (text, distance) => {
    expect(parseInstant(text, NOW)).toBe(NOW + distance);
  });

  it('may be absolute', () => {
    expect(parseInstant('2026-06-15T14:00:00+02:00', NOW)).toBe(NOW);
  });

  it.each([[1500], ['1500'], ['++5m'], ['-5m'], ['+'], ['+2026-01-02T03:04:05Z'], ['tomorrow'], [null], [{}]])(
    '%j is none',
    (value) => {
      expect(parseInstant(value, NOW)).toBeUndefined();
    },
  );
});
