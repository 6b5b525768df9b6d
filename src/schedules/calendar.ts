/** Matches cron expressions on a calendar without time zones. Times are local, written as epoch ms in UTC. */

const SECOND = 1000;
const HOUR_SECONDS = 3600;
const DAY = 86_400_000;

/** The calendar repeats after 400 years: what has not matched by then never will. */
const MAX_MONTHS = 400 * 12;

interface Month {
  length: number;
  /** The day of the week of its first day; 0: Sunday. */
  first: number;
}

/** Does this day of the month, from 1 on, match? */
export type DayRule = (day: number, month: Month) => boolean;

/** An expression as it is searched. Numbers rise. */
export interface Calendar {
  seconds: readonly number[];
  minutes: readonly number[];
  hours: readonly number[];
  /** From 1 on: January. */
  months: readonly number[];
  isDay: DayRule;
}

/** The first match strictly after a local time, if any. */
export function nextLocal(calendar: Calendar, after: number): number | undefined {
  const from = Math.floor(after / SECOND) * SECOND + SECOND;
  const today = Math.floor(from / DAY) * DAY;
  const day = nextDay(calendar, today);
  if (day !== today) return day === undefined ? undefined : day + firstTime(calendar);
  const time = timeFrom(calendar, (from - today) / SECOND);
  if (time !== undefined) return today + time * SECOND;
  const later = nextDay(calendar, today + DAY);
  return later === undefined ? undefined : later + firstTime(calendar);
}

const firstTime = ({ hours, minutes, seconds }: Calendar): number =>
  (first(hours) * HOUR_SECONDS + first(minutes) * 60 + first(seconds)) * SECOND;

/** The first time of a day that is not before this one, in seconds; undefined when the day has no more. */
function timeFrom({ hours, minutes, seconds }: Calendar, time: number): number | undefined {
  const hour = Math.floor(time / HOUR_SECONDS);
  const minute = Math.floor(time / 60) % 60;
  if (hours.includes(hour)) {
    const second = minutes.includes(minute) ? atLeast(seconds, time % 60) : undefined;
    if (second !== undefined) return hour * HOUR_SECONDS + minute * 60 + second;
    const later = atLeast(minutes, minute + 1);
    if (later !== undefined) return hour * HOUR_SECONDS + later * 60 + first(seconds);
  }
  const later = atLeast(hours, hour + 1);
  return later === undefined ? undefined : later * HOUR_SECONDS + first(minutes) * 60 + first(seconds);
}

function nextDay({ months, isDay }: Calendar, midnight: number): number | undefined {
  const start = new Date(midnight);
  const [year, startMonth] = [start.getUTCFullYear(), start.getUTCMonth()];
  let day = start.getUTCDate();
  for (let index = startMonth; index <= startMonth + MAX_MONTHS; index++, day = 1) {
    if (!months.includes((index % 12) + 1)) continue;
    const begin = Date.UTC(year, index, 1);
    const month = { length: (Date.UTC(year, index + 1, 1) - begin) / DAY, first: new Date(begin).getUTCDay() };
    for (; day <= month.length; day++) {
      if (isDay(day, month)) return begin + (day - 1) * DAY;
    }
  }
  return undefined;
}

export function weekdayOf(day: number, { first }: Month): number {
  return (first + day - 1) % 7;
}

/** Monday to Friday: the day itself, or the nearest in the same month. */
export function nearestWorkday(day: number, month: Month): number {
  const weekday = weekdayOf(day, month);
  if (weekday === 0) return day === month.length ? day - 2 : day + 1;
  if (weekday === 6) return day === 1 ? day + 2 : day - 1;
  return day;
}

const atLeast = (numbers: readonly number[], least: number): number | undefined =>
  numbers.find((number) => number >= least);

const first = (numbers: readonly number[]): number => numbers[0] as number;
