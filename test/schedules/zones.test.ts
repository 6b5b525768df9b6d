/** Daylight saving: what becomes of local times that do not exist, and of those that come twice. */
import { describe, expect, it } from 'vitest';
import { parseExpression } from '../../src/schedules/expression';
import { firesBetween, type Schedule } from '../../src/schedules/schedule';
import { isZone, offsetAt, resolveLocal } from '../../src/schedules/zone';

const schedule = (expression: string, zone: string): Schedule => ({
  expression: parseExpression(expression, 'expression'),
  zone,
  anchor: 0,
});

/** The fires of a stretch of time, in UTC to the minute. */
function fires(expression: string, zone: string, from: string, until: string): string[] {
  const start = Date.parse(`${from}:00Z`) - 1;
  const found = firesBetween(schedule(expression, zone), start, Date.parse(`${until}:00Z`), 1000);
  return found.map((at) => new Date(at).toISOString().slice(0, 16));
}

const NEW_YORK = 'America/New_York';
const PARIS = 'Europe/Paris';
const LORD_HOWE = 'Australia/Lord_Howe';

/** Zone, expression, stretch of time, and the fires in it. All in UTC. */
const FORWARD: [string, string, string, string, string[]][] = [
  // New York, 8 March 2026: at 07:00 UTC the clock goes from 02:00 to 03:00.
  [
    NEW_YORK,
    '30 2 * * *',
    '2026-03-07T00:00',
    '2026-03-10T00:00',
    ['2026-03-07T07:30', '2026-03-08T07:00', '2026-03-09T06:30'],
  ],
  [NEW_YORK, '0 2 * * *', '2026-03-08T00:00', '2026-03-09T12:00', ['2026-03-08T07:00', '2026-03-09T06:00']],
  [NEW_YORK, '59 1 * * *', '2026-03-08T00:00', '2026-03-08T12:00', ['2026-03-08T06:59']],
  [NEW_YORK, '0 3 * * *', '2026-03-08T00:00', '2026-03-08T12:00', ['2026-03-08T07:00']],
  [NEW_YORK, '*/20 2 * * *', '2026-03-08T00:00', '2026-03-09T06:10', ['2026-03-08T07:00', '2026-03-09T06:00']],
  [NEW_YORK, '30 2,3 * * *', '2026-03-08T00:00', '2026-03-08T12:00', ['2026-03-08T07:00', '2026-03-08T07:30']],
  [
    NEW_YORK,
    '0 * * * *',
    '2026-03-08T05:00',
    '2026-03-08T08:30',
    ['2026-03-08T05:00', '2026-03-08T06:00', '2026-03-08T07:00', '2026-03-08T08:00'],
  ],
  [NEW_YORK, '30 2 8 3 *', '2026-01-01T00:00', '2027-12-31T00:00', ['2026-03-08T07:00', '2027-03-08T07:30']],
  // Paris, 29 March 2026: at 01:00 UTC from 02:00 to 03:00.
  [
    PARIS,
    '30 2 * * *',
    '2026-03-28T00:00',
    '2026-03-30T12:00',
    ['2026-03-28T01:30', '2026-03-29T01:00', '2026-03-30T00:30'],
  ],
  [
    PARIS,
    '*/30 1-3 * * *',
    '2026-03-29T00:00',
    '2026-03-29T03:00',
    ['2026-03-29T00:00', '2026-03-29T00:30', '2026-03-29T01:00', '2026-03-29T01:30'],
  ],
  // Lord Howe, 4 October 2026: at 15:30 UTC the day before, from 02:00 to 02:30, by half an hour.
  [
    LORD_HOWE,
    '15 2 * * *',
    '2026-10-02T00:00',
    '2026-10-04T23:00',
    ['2026-10-02T15:45', '2026-10-03T15:30', '2026-10-04T15:15'],
  ],
  [LORD_HOWE, '30 2 * * *', '2026-10-03T00:00', '2026-10-04T00:00', ['2026-10-03T15:30']],
  [
    LORD_HOWE,
    '*/10 2 * * *',
    '2026-10-03T00:00',
    '2026-10-04T00:00',
    ['2026-10-03T15:30', '2026-10-03T15:40', '2026-10-03T15:50'],
  ],
  [
    LORD_HOWE,
    '0 * * * *',
    '2026-10-03T14:00',
    '2026-10-03T16:30',
    ['2026-10-03T14:30', '2026-10-03T15:30', '2026-10-03T16:00'],
  ],
  // Apia left out the whole of 30 December 2011.
  [
    'Pacific/Apia',
    '0 12 * * *',
    '2011-12-28T12:00',
    '2011-12-31T12:00',
    ['2011-12-28T22:00', '2011-12-29T22:00', '2011-12-30T10:00', '2011-12-30T22:00'],
  ],
];

const BACK: [string, string, string, string, string[]][] = [
  // New York, 1 November 2026: at 06:00 UTC from 02:00 back to 01:00.
  [
    NEW_YORK,
    '30 1 * * *',
    '2026-10-31T00:00',
    '2026-11-02T12:00',
    ['2026-10-31T05:30', '2026-11-01T05:30', '2026-11-02T06:30'],
  ],
  [NEW_YORK, '0 1 * * *', '2026-11-01T00:00', '2026-11-01T12:00', ['2026-11-01T05:00']],
  [NEW_YORK, '0 2 * * *', '2026-11-01T00:00', '2026-11-01T12:00', ['2026-11-01T07:00']],
  [
    NEW_YORK,
    '*/30 0-2 * * *',
    '2026-11-01T00:00',
    '2026-11-01T12:00',
    [
      '2026-11-01T04:00',
      '2026-11-01T04:30',
      '2026-11-01T05:00',
      '2026-11-01T05:30',
      '2026-11-01T07:00',
      '2026-11-01T07:30',
    ],
  ],
  // Paris, 25 October 2026: at 01:00 UTC from 03:00 back to 02:00.
  [
    PARIS,
    '30 2 * * *',
    '2026-10-24T00:00',
    '2026-10-26T12:00',
    ['2026-10-24T00:30', '2026-10-25T00:30', '2026-10-26T01:30'],
  ],
  [PARIS, '0 3 * * *', '2026-10-25T00:00', '2026-10-25T12:00', ['2026-10-25T02:00']],
  // Lord Howe, 5 April 2026: at 15:00 UTC the day before, from 02:00 back to 01:30.
  [
    LORD_HOWE,
    '45 1 * * *',
    '2026-04-03T00:00',
    '2026-04-05T23:00',
    ['2026-04-03T14:45', '2026-04-04T14:45', '2026-04-05T15:15'],
  ],
  [LORD_HOWE, '15 1 * * *', '2026-04-04T00:00', '2026-04-04T23:00', ['2026-04-04T14:15']],
  [LORD_HOWE, '0 2 * * *', '2026-04-04T00:00', '2026-04-04T23:00', ['2026-04-04T15:30']],
];

describe('when the clock goes forward', () => {
  it.each(FORWARD)(
    '%s: "%s" fires once for all that was skipped, right after the gap',
    (zone, expression, from, until, expected) => {
      expect(fires(expression, zone, from, until)).toEqual(expected);
    },
  );
});

describe('when the clock goes back', () => {
  it.each(BACK)('%s: "%s" fires once, the first time', (zone, expression, from, until, expected) => {
    expect(fires(expression, zone, from, until)).toEqual(expected);
  });

  it('an expression that matches every hour continues firing, so that nothing stops for an hour', () => {
    expect(fires('*/30 * * * *', NEW_YORK, '2026-11-01T04:30', '2026-11-01T07:30')).toEqual(
      ['04:30', '05:00', '05:30', '06:00', '06:30', '07:00', '07:30'].map((time) => `2026-11-01T${time}`),
    );
    expect(fires('0 * * * *', PARIS, '2026-10-25T00:00', '2026-10-25T03:00')).toEqual(
      ['00:00', '01:00', '02:00', '03:00'].map((time) => `2026-10-25T${time}`),
    );
    expect(fires('*/15 0-23 * * *', LORD_HOWE, '2026-04-04T14:30', '2026-04-04T15:45')).toEqual(
      ['14:30', '14:45', '15:00', '15:15', '15:30', '15:45'].map((time) => `2026-04-04T${time}`),
    );
  });

  it('no fire is passed over from within the hour that comes twice, wherever one starts', () => {
    const hourly = schedule('*/10 * * * *', NEW_YORK);
    const change = Date.UTC(2026, 10, 1, 6);
    for (let minute = -90; minute < 90; minute++) {
      const after = change + minute * 60_000;
      expect(firesBetween(hourly, after, change + 5 * 3_600_000, 1)).toEqual([
        (Math.floor(after / 600_000) + 1) * 600_000,
      ]);
    }
  });
});

describe('a local time', () => {
  it('is found to exist once, twice or not at all', () => {
    expect(resolveLocal(NEW_YORK, Date.UTC(2026, 2, 8, 1, 59))).toEqual({
      kind: 'once',
      at: Date.UTC(2026, 2, 8, 6, 59),
    });
    expect(resolveLocal(NEW_YORK, Date.UTC(2026, 2, 8, 2, 30))).toEqual({
      kind: 'skipped',
      change: Date.UTC(2026, 2, 8, 7),
    });
    expect(resolveLocal(NEW_YORK, Date.UTC(2026, 10, 1, 1, 30))).toEqual({
      kind: 'twice',
      first: Date.UTC(2026, 10, 1, 5, 30),
      second: Date.UTC(2026, 10, 1, 6, 30),
      change: Date.UTC(2026, 10, 1, 6),
    });
  });

  it('is as far from UTC as its zone says', () => {
    expect(offsetAt('UTC', 0)).toBe(0);
    expect(offsetAt('Asia/Kathmandu', Date.UTC(2026, 0, 1))).toBe((5 * 60 + 45) * 60_000);
    expect(offsetAt(LORD_HOWE, Date.UTC(2026, 0, 1))).toBe(11 * 3_600_000);
    expect(offsetAt(LORD_HOWE, Date.UTC(2026, 6, 1))).toBe(10.5 * 3_600_000);
  });
});

describe('the name of a zone', () => {
  it.each([
    'UTC',
    'GMT',
    'Etc/UTC',
    'America/New_York',
    'America/Argentina/Buenos_Aires',
    'Asia/Kolkata',
    'US/Eastern',
    'Etc/GMT+5',
    'Japan',
    'CET',
    'EST5EDT',
  ])('%s is one of the IANA database', (name) => {
    expect(isZone(name)).toBe(true);
  });

  it.each([
    '',
    'EST',
    'PST',
    '+05:00',
    '-03',
    'UTC+5',
    'GMT+1',
    'Z',
    'Mars/Olympus',
    'America/NewYork',
    'local',
    'America/New_York ',
  ])('%j is none', (name) => {
    expect(isZone(name)).toBe(false);
  });
});
