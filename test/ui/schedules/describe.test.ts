/** What expressions of schedules are in English. */
import { expect, it } from 'vitest';
import { describe as say } from '../../../src/ui/pages/schedules/describe';

it.each([
  ['0 2 * * MON-FRI', 'Monday to Friday at 02:00'],
  ['0 2 * * 1-5', 'Monday to Friday at 02:00'],
  ['30 6,18 * * *', 'every day at 06:30 and 18:30'],
  ['*/15 * * * *', 'every 15 minutes'],
  ['* * * * *', 'every minute'],
  ['*/10 9-17 * * 1-5', 'every 10 minutes from 09:00 to 17:59, Monday to Friday'],
  ['5 * * * *', 'every hour, 5 minutes past'],
  ['0 */6 * * *', 'every 6 hours'],
  ['0 6 1 * *', 'the 1st of every month at 06:00'],
  ['0 6 1,15,22 JAN,7 *', 'the 1st, 15th and 22nd of January and July at 06:00'],
  ['0 6 L * *', 'the last day of every month at 06:00'],
  ['0 0 * * 0', 'Sunday at 00:00'],
  ['0 0 * * 7', 'Sunday at 00:00'],
  ['0 0 * 12 *', 'every day in December at 00:00'],
  ['15 30 2 * * *', 'every day at 02:30:15'],
  ['*/20 * * * * *', 'every 20 seconds'],
  ['@Hourly', 'every hour'],
  ['@every 1h30m', 'every 1h30m'],
  ['@every PT5M', 'every 5m'],
])('%s', (expression, text) => expect(say(expression)).toBe(text));

it.each(['0 6 15W * *', '0 6 * * 5#2', '0 6 1 * MON', '1-5/2 * * * *', '5/15 * * * *', 'soon', ''])(
  'the expression %s is shown as it is',
  (expression) => expect(say(expression)).toBeUndefined(),
);
