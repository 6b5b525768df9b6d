/** Recognises the durations that the queue accepts, so that a wrong one fails where it was written. */
import { MAX_DURATION_MS, parseDuration } from '../job/duration';
import type { Duration } from '../producer/envelope';

/** How long a handler waits for a signal or for jobs, unless it says otherwise. */
export const DEFAULT_WAIT = '7d';

/** The duration in whole milliseconds, or undefined when `value` is not one (or negative, or out of range). */
export const durationMs = (value: unknown): number | undefined =>
  parseDuration(typeof value === 'number' && value >= 0 ? Math.round(value) : value);

/** @throws {TypeError} when `value` is not a duration. */
export function requireDuration(value: Duration, what: string): number {
  const ms = durationMs(value);
  if (ms !== undefined) return ms;
  throw new TypeError(`${what}: ${JSON.stringify(value)} is not a duration; use milliseconds, "90s", "5m" or "PT5M"`);
}

/** @throws {TypeError} when `value` is not a time that the queue can store */
export function requireTime(value: Date | number | string, what: string): Date {
  const date = new Date(value);
  if (Number.isFinite(date.getTime())) return date;
  throw new TypeError(`${what}: ${String(value)} is not a time; use a Date, epoch milliseconds or RFC 3339`);
}

/** How long until a time, in ms; less than 0: it is past. @throws {TypeError} also beyond 36500 days from now */
export function msUntil(time: Date | number | string, what: string, now: number): number {
  const ms = requireTime(time, what).getTime() - now;
  if (ms <= MAX_DURATION_MS) return ms;
  throw new TypeError(`${what}: ${String(time)} is more than 36500 days from now`);
}
