/** How long a job is kept after its end, if the job sets it. Pure: stored values in, milliseconds out. */
import { DURATION_SCHEMA, formatDuration, MAX_DURATION_MS, parseDuration } from './duration';
import { describe, described, isObject, type Reader, reader } from './envelope/fields';
import { notMember, nullable, readMembers } from './envelope/members';
import type { LowerLayers, RetryInput } from './record';
import type { Duration, Kept, RetentionOptions } from './wire';

/** The ends of a job. A dead letter is discarded, but has a retention of its own. */
export const ENDS = ['completed', 'discarded', 'cancelled', 'dead_letter'] as const;
export type End = (typeof ENDS)[number];

/** How long to keep a job after each end, as its producer wrote it. Absent members: as its queue says. */
export type JobRetention = Partial<Record<End, Duration>>;

/** A change of it: `null` returns to the queue's. */
export type RetentionChange = Partial<Record<End, Duration | null>>;

const FOREVER = 'forever';

/** Stored for ever is the longest duration, and any number of jobs the greatest one: earlier versions read both. */
const STORED_FOREVER = formatDuration(MAX_DURATION_MS);
export const ANY_NUMBER = Number.MAX_SAFE_INTEGER;

/** Reads how long something is kept: a duration, or for ever; ms. */
export const readKept: Reader<number> = reader(
  (value) => (value === FOREVER ? MAX_DURATION_MS : parseDuration(value)),
  'must be "forever", or a duration such as "P30D", "12h" or an integer of milliseconds',
  { anyOf: [DURATION_SCHEMA, { const: FOREVER }] },
);

export function renderKept(ms: number): Kept & string {
  return ms >= MAX_DURATION_MS ? FOREVER : formatDuration(ms);
}

/** The number of jobs that are kept at most; null: there is no bound. */
export function renderCount(count: number): number | null {
  return count >= ANY_NUMBER ? null : count;
}

/** A stored bound, ms; Infinity: there is none. */
export function boundOf(ms: number): number {
  return ms >= MAX_DURATION_MS ? Number.POSITIVE_INFINITY : ms;
}

/** As it was written, but for ever in its stored form. */
const readWritten: Reader<Duration> = described(describe(readKept), (value, field) => {
  readKept(value, field);
  return value === FOREVER ? STORED_FOREVER : (value as Duration);
});
const readEnd = nullable(readWritten);

/** Reads a change. @throws {ApiError} 400 naming the member that is unknown, or not a duration */
export const readRetentionChange: Reader<RetentionChange> = readMembers(
  { completed: readEnd, discarded: readEnd, cancelled: readEnd, dead_letter: readEnd },
  notMember,
);

/** Reads the retention of a new job; undefined when it names nothing. @throws {ApiError} 400 */
export const readRetention: Reader<JobRetention | undefined> = (value, field) =>
  mergeRetention(undefined, readRetentionChange(value, field));

/** The retention after a change; undefined when no member is left. */
export function mergeRetention(own: RetentionOptions | undefined, change: RetentionChange): JobRetention | undefined {
  const merged = { ...own, ...change };
  const given = Object.entries(merged).filter(([, duration]) => duration !== null);
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** A job's own retention for answers: as it was written. */
export function renderRetention<Own>(own: Own): Own {
  if (!isObject(own)) return own;
  const written = Object.entries(own).map(([end, kept]) => [end, kept === STORED_FOREVER ? FOREVER : kept]);
  return Object.fromEntries(written) as Own;
}

/** How long a stored job must be kept after `end`, ms, or Infinity; undefined when it does not set it. */
export function ownRetentionMs(retention: unknown, end: End): number | undefined {
  const own = isObject(retention) ? parseDuration(retention[end]) : undefined;
  return own === undefined ? undefined : boundOf(own);
}

/** Is what fails for good kept for ever, where nothing else says how long? As by `zzz_jobs`, if its preset holds. */
export function keepsDiscarded(layers: LowerLayers & { job?: RetryInput | undefined }): boolean {
  const { job, job_type, queue } = layers;
  return (job?.preset ?? job_type?.preset ?? queue?.preset) === 'zzz';
}

/** Removals are grouped in steps of this part of the retention, at most an hour. */
const STEPS = 10;
const MAX_STEP_MS = 3_600_000;

/** Jobs that are kept for ever are removed this long after their end: beyond any other, and still a moment. */
const BEYOND_ANY_MS = 2 * MAX_DURATION_MS;

/** From this moment on lie those of jobs that are kept for ever. Epoch ms. */
export function foreverFrom(now: number): number {
  return now + MAX_DURATION_MS + MAX_STEP_MS;
}

/** When a job is removed, epoch ms: after its retention, at a full step (a tenth of it, at most an hour). */
export function removalMoment(endedAt: number, retention: number): number {
  if (retention === Number.POSITIVE_INFINITY) return removalMoment(endedAt, BEYOND_ANY_MS);
  const step = Math.max(1, Math.min(retention / STEPS, MAX_STEP_MS));
  return Math.ceil(Math.ceil((endedAt + retention) / step) * step);
}
