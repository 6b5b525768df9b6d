/**
 * When a schedule fires; pure. `calendar.ts` matches local times; this file maps them to instants:
 *
 * - local times that the clock skips fire once, together, when the clock has jumped;
 * - a local time that comes twice fires the first time, but expressions that match every hour continue firing.
 *
 * Fires lie on whole seconds, those of `@every` at whole intervals from their anchor.
 */
import { type Calendar, nextLocal } from './calendar';
import type { Expression } from './expression';
import { offsetAt, resolveLocal } from './zone';

const SECOND = 1000;

/** The search ends here (the year 9000), epoch ms. */
const END_OF_TIME = 221_845_392_000_000;

export interface Schedule {
  expression: Expression;
  zone: string;
  /** Intervals count from here, epoch ms. */
  anchor: number;
  /** No fire before this, epoch ms. */
  start?: number | undefined;
  /** No fire after this, epoch ms. */
  end?: number | undefined;
}

/** The first fire strictly after an instant; undefined when none follows. Epoch ms. */
export function nextFire(schedule: Schedule, after: number): number | undefined {
  const { expression, start, end } = schedule;
  const from = start === undefined ? after : Math.max(after, start - 1);
  const next =
    expression.kind === 'every'
      ? nextInterval(expression.ms, schedule.anchor, from)
      : nextMatch(expression.calendar, schedule.zone, from);
  return next === undefined || next > (end ?? END_OF_TIME) ? undefined : next;
}

/** Up to `limit` fires strictly after `after`, at most `until`, in order. */
export function firesBetween(schedule: Schedule, after: number, until: number, limit: number): number[] {
  const fires: number[] = [];
  for (let at = nextFire(schedule, after); at !== undefined && at <= until; at = nextFire(schedule, at)) {
    if (fires.length === limit) break;
    fires.push(at);
  }
  return fires;
}

/** The last of the fires from `from` (a fire, not after `until`) to `until`. */
export function lastFire(schedule: Schedule, from: number, until: number): number {
  const second = nextFire(schedule, from);
  if (second === undefined || second > until) return from;
  // There is a fire in (low, until] and none in (high, until]: halving finds the last one however many there are.
  let low = Math.floor((second - 1) / SECOND);
  let high = Math.floor(until / SECOND);
  let last = second;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const next = nextFire(schedule, middle * SECOND);
    if (next !== undefined && next <= until) {
      low = middle;
      last = next;
    } else high = middle;
  }
  const beyond = nextFire(schedule, last);
  return beyond !== undefined && beyond <= until ? beyond : last;
}

function nextInterval(ms: number, anchor: number, after: number): number {
  if (after < anchor) return anchor;
  return anchor + (Math.floor((after - anchor) / ms) + 1) * ms;
}

function nextMatch(calendar: Calendar, zone: string, after: number): number | undefined {
  const from = Math.floor(after / SECOND) * SECOND;
  const local = from + offsetAt(zone, from);
  const here = resolveLocal(zone, local);
  // With every hour of the day it states an interval rather than a local time.
  const isInterval = calendar.hours.length === 24;
  const again = isInterval && here.kind === 'twice' ? secondPass(calendar, zone, local, here, from) : undefined;
  const next = firstPass(calendar, zone, local, from);
  return again !== undefined && (next === undefined || again < next) ? again : next;
}

/** The next match, local times that come twice counted the first time only. */
function firstPass(calendar: Calendar, zone: string, local: number, from: number): number | undefined {
  for (let match = nextLocal(calendar, local); match !== undefined; ) {
    const found = resolveLocal(zone, match);
    const at = found.kind === 'once' ? found.at : found.kind === 'skipped' ? found.change : found.first;
    if (at > from) return at;
    // A local time that comes twice is over until the clock has passed it again; skipped ones lie behind.
    const resume = found.kind === 'twice' ? found.change + (match - found.first) - SECOND : match;
    match = nextLocal(calendar, Math.max(resume, match));
  }
  return undefined;
}

/** The next match while the clock passes its local times a second time. */
function secondPass(
  calendar: Calendar,
  zone: string,
  local: number,
  here: { first: number; second: number; change: number },
  from: number,
): number | undefined {
  // During the first pass: from the local time on to which the clock is set back.
  const setBackTo = here.change + (local - here.second);
  const match = nextLocal(calendar, from < here.change ? setBackTo - SECOND : local);
  const found = match === undefined ? undefined : resolveLocal(zone, match);
  return found?.kind === 'twice' && found.second > from ? found.second : undefined;
}
