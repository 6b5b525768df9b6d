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
type DayRule = (day: number, month: Month) => boolean;

/** An expression as it is searched. Numbers rise. */
interface Calendar {
  seconds: readonly number[];
  minutes: readonly number[];
  hours: readonly number[];
  /** From 0 on: January. */
  months: ReadonlySet<number>;
  isDay: DayRule;
}

const calendars = new Map<string, Calendar>();
const MAX_CALENDARS = 1000;

/** The first match strictly after a local time, if any. @param pattern six fields as `readFields` writes them */
export function nextLocal(pattern: string, after: number): number | undefined {
  let calendar = calendars.get(pattern);
  if (!calendar) {
    if (calendars.size >= MAX_CALENDARS) calendars.clear();
    calendar = read(pattern);
    calendars.set(pattern, calendar);
  }
  const from = Math.floor(after / SECOND) * SECOND + SECOND;
  const today = Math.floor(from / DAY) * DAY;
  const day = nextDay(calendar, today);
  if (day !== today) return day === undefined ? undefined : day + firstTime(calendar);
  const time = timeFrom(calendar, (from - today) / SECOND);
  if (time !== undefined) return today + time * SECOND;
  const later = nextDay(calendar, today + DAY);
  return later === undefined ? undefined : later + firstTime(calendar);
}

/** The first time of any day, ms. */
function firstTime({ hours, minutes, seconds }: Calendar): number {
  return (first(hours) * HOUR_SECONDS + first(minutes) * 60 + first(seconds)) * SECOND;
}

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
    if (!months.has(index % 12)) continue;
    const begin = Date.UTC(year, index, 1);
    const month = { length: (Date.UTC(year, index + 1, 1) - begin) / DAY, first: new Date(begin).getUTCDay() };
    for (; day <= month.length; day++) {
      if (isDay(day, month)) return begin + (day - 1) * DAY;
    }
  }
  return undefined;
}

function read(pattern: string): Calendar {
  const [seconds = '', minutes = '', hours = '', days = '', months = '', weekdays = ''] = pattern.split(' ');
  const inMonth = days.split(',').map(dayRule);
  const inWeek = weekdays.split(',').map(weekdayRule);
  const isInMonth: DayRule = (day, month) => inMonth.some((rule) => rule(day, month));
  const isInWeek: DayRule = (day, month) => inWeek.some((rule) => rule(day, month));
  // Two restricted day fields: either is enough.
  const isDay: DayRule =
    days === '*' || weekdays === '*'
      ? (day, month) => isInMonth(day, month) && isInWeek(day, month)
      : (day, month) => isInMonth(day, month) || isInWeek(day, month);
  return {
    seconds: numbersIn(seconds, 0, 59),
    minutes: numbersIn(minutes, 0, 59),
    hours: numbersIn(hours, 0, 23),
    months: new Set(numbersIn(months, 1, 12).map((month) => month - 1)),
    isDay,
  };
}

/** An entry of the day of the month. */
function dayRule(item: string): DayRule {
  if (item === 'L') return (day, { length }) => day === length;
  if (item === 'LW') return (day, month) => day === nearestWorkday(month.length, month);
  if (item.endsWith('W')) {
    const near = Number.parseInt(item, 10);
    return (day, month) => near <= month.length && day === nearestWorkday(near, month);
  }
  const days = new Set(numbersIn(item, 1, 31));
  return (day) => days.has(day);
}

/** An entry of the day of the week. */
function weekdayRule(item: string): DayRule {
  const [, weekday, nth] = /^(\d)(?:L|#(.))$/.exec(item) ?? [];
  if (weekday === undefined) {
    const weekdays = new Set(numbersIn(item, 0, 6).map((one) => one % 7));
    return (day, month) => weekdays.has(weekdayOf(day, month));
  }
  const isLast = nth === undefined || nth === 'L';
  const fits: DayRule = isLast ? (day, { length }) => day + 7 > length : (day) => Math.ceil(day / 7) === Number(nth);
  return (day, month) => weekdayOf(day, month) === Number(weekday) && fits(day, month);
}

function weekdayOf(day: number, { first }: Month): number {
  return (first + day - 1) % 7;
}

/** Monday to Friday: the day itself, or the nearest in the same month. */
function nearestWorkday(day: number, month: Month): number {
  const weekday = weekdayOf(day, month);
  if (weekday === 0) return day === month.length ? day - 2 : day + 1;
  if (weekday === 6) return day === 1 ? day + 2 : day - 1;
  return day;
}

/** The numbers that `*`, `3`, `1-5`, `0-59/7`, or several of these stand for. */
function numbersIn(text: string, min: number, max: number): number[] {
  const numbers = new Set<number>();
  for (const item of text.split(',')) {
    const [span = '', step = '1'] = item.split('/');
    const [from = min, to = from] = span === '*' ? [min, max] : span.split('-').map(Number);
    for (let number = from; number <= to; number += Number(step)) numbers.add(number);
  }
  return [...numbers].sort((a, b) => a - b);
}

function atLeast(numbers: readonly number[], least: number): number | undefined {
  return numbers.find((number) => number >= least);
}

function first(numbers: readonly number[]): number {
  return numbers[0] as number;
}
