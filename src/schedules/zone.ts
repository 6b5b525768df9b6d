/** Time zones: the instants of a local time (epoch ms, as if in UTC), which exists once, twice or not at all. */

import { firstIndex } from '../job/bisect';
import { getOrInsert } from '../job/get-or-insert';

const SECOND = 1000;
const DAY = 86_400_000;

const UTC_NAMES: ReadonlySet<string> = new Set(['UTC', 'GMT', 'Etc/UTC', 'Etc/GMT']);

const IANA_NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+){1,2}$/;

/** One-word names in the database that stand for the rules of a place, daylight saving included. */
const PLACE_NAMES: ReadonlySet<string> = new Set(
  `CET CST6CDT Cuba EET EST5EDT Egypt Eire GB GB-Eire Hongkong Iceland Iran Israel Jamaica Japan Kwajalein Libya MET MST7MDT NZ
   NZ-CHAT Navajo PRC PST8PDT Poland Portugal ROC ROK Singapore Turkey UCT Universal W-SU WET Zulu`.split(/\s+/),
);

/** Is this a zone of the IANA database? Abbreviations (`EST`) and offsets (`+05:00`) carry no daylight saving rules. */
export function isZone(name: string): boolean {
  if (UTC_NAMES.has(name)) return true;
  if (!IANA_NAME.test(name) && !PLACE_NAMES.has(name)) return false;
  try {
    formatter(name);
    return true;
  } catch {
    return false;
  }
}

const formatters = new Map<string, Intl.DateTimeFormat>();

function formatter(zone: string): Intl.DateTimeFormat {
  const make = () =>
    new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  return getOrInsert(formatters, zone, make);
}

/** How far a zone is ahead of UTC at an instant, ms. */
export function offsetAt(zone: string, instant: number): number {
  if (UTC_NAMES.has(zone)) return 0;
  const whole = Math.floor(instant / SECOND) * SECOND;
  const part: Partial<Record<Intl.DateTimeFormatPartTypes, number>> = {};
  for (const { type, value } of formatter(zone).formatToParts(whole)) part[type] = Number(value);
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
}

/** The instants of a local time, epoch ms. */
export type Resolved =
  | { kind: 'once'; at: number }
  /** The clock goes back over it. `change`: the instant at which it does; `first < change <= second`. */
  | { kind: 'twice'; first: number; second: number; change: number }
  /** The clock goes forward over it, at `change`. */
  | { kind: 'skipped'; change: number };

/** Finds the instant of a local time. Whole seconds. */
export function resolveLocal(zone: string, local: number): Resolved {
  // No offset is larger than a day, so these two lie before and after every instant the local time may stand for.
  const before = offsetAt(zone, local - DAY);
  const after = offsetAt(zone, local + DAY);
  if (before === after) return { kind: 'once', at: local - before };
  const early = local - Math.max(before, after);
  const late = local - Math.min(before, after);
  const isEarly = early + offsetAt(zone, early) === local;
  const isLate = late + offsetAt(zone, late) === local;
  if (isEarly && isLate) return { kind: 'twice', first: early, second: late, change: changeBetween(zone, early, late) };
  if (isEarly || isLate) return { kind: 'once', at: isEarly ? early : late };
  return { kind: 'skipped', change: changeBetween(zone, early, late) };
}

/** The first whole second after `from` whose offset differs from that of `from`; at most `to`, where it does. */
function changeBetween(zone: string, from: number, to: number): number {
  const offset = offsetAt(zone, from);
  const same = from / SECOND + 1;
  return (same + firstIndex(to / SECOND - same, (at) => offsetAt(zone, (same + at) * SECOND) !== offset)) * SECOND;
}
