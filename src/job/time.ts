/** Reads RFC 3339 times and durations from now; writes UTC with milliseconds and `Z`. Epoch ms inside. */
import { parseDuration } from './duration';

const DAY_MS = 86_400_000;
/** The Gregorian calendar repeats after 400 years, which are this many days. */
const CYCLE_MS = 146_097 * DAY_MS;

const RFC_3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const DIGITS = /^\d+$/;

/** Reads an RFC 3339 time with a zone, to epoch ms. Digits beyond ms are cut off; second 60 only at 23:59:60 UTC. */
export function parseTimestamp(value: unknown): number | undefined {
  const match = typeof value === 'string' ? RFC_3339.exec(value) : null;
  if (!match) return undefined;
  const part = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [part(1), part(2), part(3), part(4), part(5), part(6)];
  const [zoneHour, zoneMinute] = [part(9), part(10)];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 60 || zoneHour > 23 || zoneMinute > 59) return undefined;

  // A cycle later, because Date.UTC takes the years 0 … 99 for 1900 … 1999.
  const local = Date.UTC(year + 400, month - 1, day, hour, minute, second) - CYCLE_MS;
  const zone = (zoneHour * 60 + zoneMinute) * 60_000 * (match[8] === '-' ? -1 : 1);
  const whole = local - zone;
  if (second === 60 && whole % DAY_MS !== 0) return undefined;
  return whole + Number((match[7] ?? '').slice(0, 3).padEnd(3, '0'));
}

function daysIn(year: number, month: number): number {
  if (month === 2) return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0 ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Reads RFC 3339, or a duration from now with or without `+`, to epoch ms. Bare numbers are refused as ambiguous. */
export function parseInstant(value: unknown, now: number): number | undefined {
  if (typeof value !== 'string' || DIGITS.test(value)) return undefined;
  const timestamp = parseTimestamp(value);
  if (timestamp !== undefined) return timestamp;
  const distance = parseDuration(value.startsWith('+') ? value.slice(1) : value);
  return distance === undefined ? undefined : now + distance;
}

/** {@link parseInstant} for the past: a duration without `+` is one before now (`24h`: a day ago). Epoch ms. */
export function parsePast(value: unknown, now: number): number | undefined {
  const age = typeof value === 'string' && !DIGITS.test(value) ? parseDuration(value) : undefined;
  return age === undefined ? parseInstant(value, now) : now - age;
}

/** Cache of formatted moments: jobs of a batch share theirs. */
const written: { ms: number; text: string }[] = [];
const SLOTS = 16;

/** Writes RFC 3339 in UTC with ms; years after 9999 in the expanded form. @throws {RangeError} beyond ±8.64·10¹⁵ ms */
export function formatInstant(ms: number): string {
  const slot = ms % SLOTS;
  let last = written[slot];
  if (last?.ms !== ms) {
    last = { ms, text: new Date(ms).toISOString() };
    // One before 1970 or between two milliseconds has no slot.
    if (slot >= 0 && Number.isInteger(slot)) written[slot] = last;
  }
  return last.text;
}

type WrittenTimes<T> = {
  [Name in keyof T]: Name extends `${string}_at`
    ? Exclude<T[Name], number> | (number extends T[Name] ? string : never)
    : T[Name];
};

/** Members named `…_at` are epoch milliseconds inside and RFC 3339 on the wire. */
export const withWrittenTimes = <T extends object>(members: T): WrittenTimes<T> =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]) =>
      name.endsWith('_at') && typeof value === 'number' ? [name, formatInstant(value)] : [name, value],
    ),
  ) as WrittenTimes<T>;
