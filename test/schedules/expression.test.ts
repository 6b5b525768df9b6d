/** Cron expressions: what they may look like, and when they fire. */
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/job/errors';
import { parseExpression } from '../../src/schedules/expression';
import { firesBetween } from '../../src/schedules/schedule';

/** The first fires after New Year 2026 (a Thursday), in UTC. */
function first(expression: string, count: number): string[] {
  const schedule = { expression: parseExpression(expression, 'expression'), zone: 'UTC', anchor: Date.UTC(2026, 0, 1) };
  const fires = firesBetween(schedule, Date.UTC(2026, 0, 1), Number.POSITIVE_INFINITY, count);
  return fires.map((at) => new Date(at).toISOString().slice(0, 19));
}

const FIRES: [string, string[]][] = [
  ['* * * * *', ['2026-01-01T00:01:00', '2026-01-01T00:02:00']],
  ['*/15 * * * *', ['2026-01-01T00:15:00', '2026-01-01T00:30:00']],
  ['5/20 * * * *', ['2026-01-01T00:05:00', '2026-01-01T00:25:00', '2026-01-01T00:45:00', '2026-01-01T01:05:00']],
  ['10-30/10 1 * * *', ['2026-01-01T01:10:00', '2026-01-01T01:20:00', '2026-01-01T01:30:00', '2026-01-02T01:10:00']],
  [
    '0 9,17 * * MON-FRI',
    ['2026-01-01T09:00:00', '2026-01-01T17:00:00', '2026-01-02T09:00:00', '2026-01-02T17:00:00', '2026-01-05T09:00:00'],
  ],
  ['30 15 10 5 3 *', ['2026-03-05T10:15:30', '2027-03-05T10:15:30']],
  ['*/20 * * * * *', ['2026-01-01T00:00:20', '2026-01-01T00:00:40']],
  ['0 0 * jan,jul *', ['2026-01-02T00:00:00']],
  ['0 0 1 Jul *', ['2026-07-01T00:00:00', '2027-07-01T00:00:00']],
  ['0 0 * * 7', ['2026-01-04T00:00:00', '2026-01-11T00:00:00']],
  ['0 0 * * 0', ['2026-01-04T00:00:00', '2026-01-11T00:00:00']],
  ['0 0 * * 0/2', ['2026-01-03T00:00:00', '2026-01-04T00:00:00', '2026-01-06T00:00:00', '2026-01-08T00:00:00']],
  ['0 0 * * 7/2', ['2026-01-03T00:00:00', '2026-01-04T00:00:00', '2026-01-06T00:00:00', '2026-01-08T00:00:00']],
  ['0 0 * * sun/3', ['2026-01-03T00:00:00', '2026-01-04T00:00:00', '2026-01-07T00:00:00']],
  ['0 0 * * fri-sun', ['2026-01-02T00:00:00', '2026-01-03T00:00:00', '2026-01-04T00:00:00', '2026-01-09T00:00:00']],
  ['0 0 * * 5-7', ['2026-01-02T00:00:00', '2026-01-03T00:00:00', '2026-01-04T00:00:00', '2026-01-09T00:00:00']],
  // Both day fields restricted: either is enough.
  ['0 0 13 * FRI', ['2026-01-02T00:00:00', '2026-01-09T00:00:00', '2026-01-13T00:00:00', '2026-01-16T00:00:00']],
  ['0 0 */1 * MON', ['2026-01-05T00:00:00', '2026-01-12T00:00:00']],
  ['0 0 ? * MON', ['2026-01-05T00:00:00', '2026-01-12T00:00:00']],
  ['0 0 31 * *', ['2026-01-31T00:00:00', '2026-03-31T00:00:00']],
  ['0 0 29 2 *', ['2028-02-29T00:00:00', '2032-02-29T00:00:00']],
  ['0 0 L * *', ['2026-01-31T00:00:00', '2026-02-28T00:00:00']],
  ['0 0 LW * *', ['2026-01-30T00:00:00', '2026-02-27T00:00:00']],
  ['0 0 15W * *', ['2026-01-15T00:00:00', '2026-02-16T00:00:00', '2026-03-16T00:00:00']],
  ['0 0 LW,15 * *', ['2026-01-15T00:00:00', '2026-01-30T00:00:00']],
  ['0 0 31W,1W * *', ['2026-01-30T00:00:00', '2026-02-02T00:00:00', '2026-03-02T00:00:00', '2026-03-31T00:00:00']],
  // In a month without its last day as well, the first day of the next month follows.
  ['0 0 1,31 2-4 *', ['2026-02-01T00:00:00', '2026-03-01T00:00:00', '2026-03-31T00:00:00', '2026-04-01T00:00:00']],
  ['0 0 1,L * *', ['2026-01-31T00:00:00', '2026-02-01T00:00:00', '2026-02-28T00:00:00']],
  ['0 0 * * 5L', ['2026-01-30T00:00:00', '2026-02-27T00:00:00']],
  ['0 0 * * FRI#2', ['2026-01-09T00:00:00', '2026-02-13T00:00:00']],
  ['0 0 * * 7#1', ['2026-01-04T00:00:00', '2026-02-01T00:00:00']],
  ['0 0 * * sun#L', ['2026-01-25T00:00:00', '2026-02-22T00:00:00']],
  ['@yearly', ['2027-01-01T00:00:00']],
  ['@annually', ['2027-01-01T00:00:00']],
  ['@monthly', ['2026-02-01T00:00:00']],
  ['@weekly', ['2026-01-04T00:00:00']],
  ['@daily', ['2026-01-02T00:00:00']],
  ['@midnight', ['2026-01-02T00:00:00']],
  ['@hourly', ['2026-01-01T01:00:00']],
  ['@every 90s', ['2026-01-01T00:01:30', '2026-01-01T00:03:00']],
  ['@every 1h30m', ['2026-01-01T01:30:00', '2026-01-01T03:00:00']],
  ['@every PT5M', ['2026-01-01T00:05:00']],
  ['@every 1000', ['2026-01-01T00:00:01']],
  ['  0   2 *  * * ', ['2026-01-01T02:00:00']],
];

describe('an expression', () => {
  it.each(FIRES)('"%s" fires when it says', (expression, expected) => {
    expect(first(expression, expected.length)).toEqual(expected);
  });
});

const WRONG: [unknown, RegExp, string?][] = [
  ['', /must be a cron expression/],
  [5, /must be a cron expression/],
  ['not a valid cron', /has 4 fields; 5 or 6 are expected/],
  ['* * * *', /has 4 fields/],
  ['0 0 0 0 0 0 0', /has 7 fields/],
  ['60 * * * *', /the minute "60" is out of range; 0 to 59/, 'minute'],
  ['* 24 * * *', /the hour "24" is out of range/, 'hour'],
  ['* * 0 * *', /the day of month "0" is out of range; 1 to 31/, 'day of month'],
  ['* * 32 * *', /the day of month "32"/, 'day of month'],
  ['* * * 13 *', /the month "13"/, 'month'],
  ['* * * 0 *', /the month "0"/, 'month'],
  ['* * * * 8', /the day of week "8" is out of range; 0 to 7/, 'day of week'],
  ['60 * * * * *', /the second "60"/, 'second'],
  ['* * * foo *', /the month "foo" cannot be read; it takes 1 to 12, or JAN to DEC/, 'month'],
  ['mon * * * *', /the minute "mon" cannot be read/, 'minute'],
  ['5-1 * * * *', /the minute "5-1" has its ends in the wrong order/, 'minute'],
  ['* * * * sat-mon', /the day of week "sat-mon" has its ends in the wrong order/, 'day of week'],
  ['*/0 * * * *', /the step must be a whole number from 1 to 60/, 'minute'],
  ['*/61 * * * *', /the step must be a whole number from 1 to 60/, 'minute'],
  ['*/x * * * *', /the step must be/, 'minute'],
  ['1/2/3 * * * *', /more than one step/, 'minute'],
  ['1-2-3 * * * *', /cannot be read/, 'minute'],
  ['1,,2 * * * *', /has an empty entry/, 'minute'],
  ['-5 * * * *', /cannot be read/, 'minute'],
  ['+5 * * * *', /cannot be read/, 'minute'],
  ['1.5 * * * *', /cannot be read/, 'minute'],
  ['L * * * *', /cannot be read/, 'minute'],
  ['? * * * *', /cannot be read/, 'minute'],
  ['* * 32W * *', /the day of month "32W"/, 'day of month'],
  ['* * W * *', /the day of month "W"/, 'day of month'],
  ['* * * * L', /the day of week "L"/, 'day of week'],
  ['* * * * 5#6', /after # comes 1 to 5, or L/, 'day of week'],
  ['* * * * 5#0', /after # comes 1 to 5/, 'day of week'],
  ['* * * * 9L', /out of range/, 'day of week'],
  ['@reboot', /is not a shorthand/],
  ['@daily 5', /is not a shorthand/],
  ['@every', /needs a duration/],
  ['@every soon', /needs a duration/],
  ['@every 999ms', /at least one second/],
  ['@every -5s', /needs a duration/],
  ['@every 30m1h', /needs a duration/],
  [`${'1,'.repeat(600)}1 * * * *`, /more than 1000 characters/],
];

describe('a wrong expression', () => {
  it.each(WRONG)('%j is refused with what is wrong with it', (expression, message, part) => {
    let error: unknown;
    try {
      parseExpression(expression, 'cron');
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(ApiError);
    const { data } = error as ApiError;
    expect(data).toMatchObject({ status: 400, code: 'invalid_request', details: { field: 'cron' } });
    expect(data.message).toMatch(message);
    expect(data.message).toMatch(/^cron/);
    expect(data.details?.cron_field).toBe(part ?? (/field/.test(data.message) ? 'expression' : undefined));
  });
});
