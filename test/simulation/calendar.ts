/**
 * When schedules fire, said a second time: zones by the rules of their governments, schedules as lists of numbers, and a fire
 * as a property of an instant, looked for step by step.
 */

const SECOND = 1_000;
const MINUTE = 60_000;
const HALF_HOUR = 30 * MINUTE;
const HOUR = 60 * MINUTE;

interface Rules {
  /** Ahead of UTC, ms. */
  winter: number;
  summer: number;
  /** When clocks go forward and back in a year, epoch ms. */
  forward(year: number): number;
  back(year: number): number;
}

const RULES = {
  'Europe/Berlin': {
    winter: HOUR,
    summer: 2 * HOUR,
    forward: (year) => sunday(year, 2, 'last') + HOUR,
    back: (year) => sunday(year, 9, 'last') + HOUR,
  },
  'America/New_York': {
    winter: -5 * HOUR,
    summer: -4 * HOUR,
    forward: (year) => sunday(year, 2, 2) + 7 * HOUR,
    back: (year) => sunday(year, 10, 1) + 6 * HOUR,
  },
  // By half an hour, and in the north's winter.
  'Australia/Lord_Howe': {
    winter: 10.5 * HOUR,
    summer: 11 * HOUR,
    forward: (year) => sunday(year, 9, 1) - 8.5 * HOUR,
    back: (year) => sunday(year, 3, 1) - 9 * HOUR,
  },
} satisfies Record<string, Rules>;

export type Zone = 'UTC' | keyof typeof RULES;
export const ZONES: readonly Zone[] = ['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'];

/** Instants a while before the clocks change somewhere. */
export const EVES = [
  '2025-06-15T15:06:40Z',
  '2025-10-25T23:40:00Z',
  '2026-03-28T23:40:00Z',
  '2025-11-02T04:40:00Z',
  '2026-03-08T05:40:00Z',
  '2026-04-04T14:10:00Z',
  '2025-10-04T14:40:00Z',
].map((text) => Date.parse(text));

/** Numbers that match; absent: all of them. Seconds: 0 unless given. */
interface Fields {
  seconds?: readonly number[];
  minutes?: readonly number[];
  hours?: readonly number[];
  /** 0 is Sunday. */
  days?: readonly number[];
}

type Meaning = { every: number } | Fields;

/** Expressions, and what they mean. */
const MEANINGS = {
  '* * * * *': {},
  '*/5 * * * *': { minutes: [0, 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55] },
  '*/20 * * * * *': { seconds: [0, 20, 40] },
  '@hourly': { minutes: [0] },
  '50 * * * *': { minutes: [50] },
  '@daily': { minutes: [0], hours: [0] },
  '30 2 * * *': { minutes: [30], hours: [2] },
  '15,45 1-3 * * *': { minutes: [15, 45], hours: [1, 2, 3] },
  '*/10 0-22 * * *': { minutes: [0, 10, 20, 30, 40, 50], hours: Array.from({ length: 23 }, (_, hour) => hour) },
  '40 1 * * sun,mon': { minutes: [40], hours: [1], days: [0, 1] },
  '@every 90s': { every: 90 * SECOND },
  '@every PT7M': { every: 7 * MINUTE },
  '@every 1h30m': { every: 90 * MINUTE },
} satisfies Record<string, Meaning>;

export type Expression = keyof typeof MEANINGS;
export const EXPRESSIONS = Object.keys(MEANINGS) as Expression[];

export interface Timing {
  expression: Expression;
  zone: Zone;
  /** Intervals count from here. */
  anchor: number;
  start: number | null;
  end: number | null;
}

/** The first fire after an instant; infinite when there is none. */
export function fireAfter(timing: Timing, after: number): number {
  const from = timing.start === null ? after : Math.max(after, timing.start - 1);
  const found = search(timing, from, 1);
  return found <= (timing.end ?? Number.POSITIVE_INFINITY) ? found : Number.POSITIVE_INFINITY;
}

/** The last fire at or before an instant. */
export function fireUntil(timing: Timing, until: number): number {
  return search(timing, Math.min(until, timing.end ?? until), -1);
}

/** From an instant on: forward to the first fire after it, or back to the last one at or before it. */
function search({ expression, zone, anchor }: Timing, from: number, direction: 1 | -1): number {
  const meaning: Meaning = MEANINGS[expression];
  if ('every' in meaning) {
    const periods = Math.floor((from - anchor) / meaning.every) + (direction === 1 ? 1 : 0);
    return anchor + Math.max(0, periods) * meaning.every;
  }
  const step = meaning.seconds ? 20 * SECOND : MINUTE;
  let at = (Math.floor(from / step) + (direction === 1 ? 1 : 0)) * step;
  while (!fires(meaning, zone, at)) {
    const start = Math.floor(at / HALF_HOUR) * HALF_HOUR;
    // No zone changes its clock in the middle of half an hour.
    if (!meaning.hours || meaning.hours.includes(hourOf(zone, at))) at += direction * step;
    else if (direction === 1) at = start + HALF_HOUR;
    else at = at > start ? start : at - step;
  }
  return at;
}

/** Does it fire at this instant? */
function fires(fields: Fields, zone: Zone, at: number): boolean {
  const offset = offsetAt(zone, at);
  const before = offsetAt(zone, at - 1);
  // The clock has just jumped: all that it skipped comes now.
  for (let skipped = at + before; skipped < at + offset; skipped += SECOND) if (matches(fields, skipped)) return true;
  const local = at + offset;
  if (!matches(fields, local)) return false;
  // What says how often goes on when the clock is put back; a time of the day comes the first time it is shown.
  return !fields.hours || !shownBefore(zone, local, offset);
}

function shownBefore(zone: Zone, local: number, offset: number): boolean {
  if (zone === 'UTC') return false;
  const { summer } = RULES[zone];
  return summer > offset && offsetAt(zone, local - summer) === summer;
}

function matches({ seconds = [0], minutes, hours, days }: Fields, local: number): boolean {
  const date = new Date(local);
  return (
    seconds.includes(date.getUTCSeconds()) &&
    (minutes?.includes(date.getUTCMinutes()) ?? true) &&
    (hours?.includes(date.getUTCHours()) ?? true) &&
    (days?.includes(date.getUTCDay()) ?? true)
  );
}

function hourOf(zone: Zone, at: number): number {
  return new Date(at + offsetAt(zone, at)).getUTCHours();
}

function offsetAt(zone: Zone, at: number): number {
  if (zone === 'UTC') return 0;
  const { winter, summer, ...rules } = RULES[zone];
  const year = new Date(at).getUTCFullYear();
  const forward = rules.forward(year);
  const back = rules.back(year);
  const isSummer = forward < back ? at >= forward && at < back : at >= forward || at < back;
  return isSummer ? summer : winter;
}

/** Midnight UTC of a Sunday in a month (0: January). */
function sunday(year: number, month: number, which: 1 | 2 | 'last'): number {
  const last = which === 'last';
  // The day of the month is at least this one.
  const from = last ? new Date(Date.UTC(year, month + 1, 0)).getUTCDate() - 6 : 7 * which - 6;
  const weekday = new Date(Date.UTC(year, month, from)).getUTCDay();
  return Date.UTC(year, month, from + ((7 - weekday) % 7));
}
