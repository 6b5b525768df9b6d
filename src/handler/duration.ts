/** Recognises the durations that the queue accepts, so that a wrong one fails where it was written. */
import type { Duration } from '../producer/envelope';

/** 36500 days in ms, the longest duration there is. */
const MAX_DURATION_MS = 3_153_600_000_000;

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };
const HUMAN = /^(\d+(?:\.\d+)?)(ms|[smhdw])$/;
const NUMBER = String.raw`\d+(?:\.\d+)?`;
const ISO = new RegExp(
  `^P(?=\\d|T\\d)(?:(${NUMBER})W)?(?:(${NUMBER})D)?(?:T(?=\\d)(?:(${NUMBER})H)?(?:(${NUMBER})M)?(?:(${NUMBER})S)?)?$`,
);
/** Milliseconds of each group of {@link ISO}. */
const ISO_UNITS = [UNITS.w, UNITS.d, UNITS.h, UNITS.m, UNITS.s];

/** How long a handler waits for a signal or for jobs, unless it says otherwise. */
export const DEFAULT_WAIT = '7d';

/** The duration in whole milliseconds, or undefined when `value` is not one (or negative, or out of range). */
export function durationMs(value: unknown): number | undefined {
  const exact = typeof value === 'number' ? value : typeof value === 'string' ? parse(value) : undefined;
  if (exact === undefined || !(exact >= 0 && exact <= MAX_DURATION_MS)) return undefined;
  return Math.round(exact);
}

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

function parse(text: string): number | undefined {
  if (/^\d+$/.test(text)) return Number(text);
  const [, amount, unit] = HUMAN.exec(text) ?? [];
  if (unit !== undefined) return Number(amount) * UNITS[unit as keyof typeof UNITS];
  const iso = ISO.exec(text);
  return iso ? ISO_UNITS.reduce((sum, ms, index) => sum + Number(iso[index + 1] ?? 0) * ms, 0) : undefined;
}
