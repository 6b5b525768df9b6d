/** How long a job is kept after its end, if the job sets it. Pure: stored values in, milliseconds out. */
import { parseDuration } from './duration';
import { isObject, type Reader, readDuration } from './envelope/fields';
import { notMember, nullable, readMembers } from './envelope/members';
import type { Duration } from './wire';

/** The ends of a job. A dead letter is discarded, but has a retention of its own. */
export const ENDS = ['completed', 'discarded', 'cancelled', 'dead_letter'] as const;
export type End = (typeof ENDS)[number];

/** How long to keep a job after each end, as its producer wrote it. Absent members: as its queue says. */
export type JobRetention = Partial<Record<End, Duration>>;

/** A change of it: `null` returns to the queue's. */
export type RetentionChange = Partial<Record<End, Duration | null>>;

/** A duration, as it was written. */
const readKept: Reader<Duration> = (value, field) => {
  readDuration(value, field);
  return value as Duration;
};
const readEnd = nullable(readKept);

/** Reads a change. @throws {ApiError} 400 naming the member that is unknown, or not a duration */
export const readRetentionChange: Reader<RetentionChange> = readMembers(
  { completed: readEnd, discarded: readEnd, cancelled: readEnd, dead_letter: readEnd },
  notMember,
);

/** Reads the retention of a new job; undefined when it names nothing. @throws {ApiError} 400 */
export const readRetention: Reader<JobRetention | undefined> = (value, field) =>
  mergeRetention(undefined, readRetentionChange(value, field));

/** The retention after a change; undefined when no member is left. */
export function mergeRetention(own: JobRetention | undefined, change: RetentionChange): JobRetention | undefined {
  const merged: RetentionChange = { ...own, ...change };
  const given = Object.entries(merged).filter(([, duration]) => duration !== null);
  return given.length === 0 ? undefined : Object.fromEntries(given);
}

/** How long a stored job must be kept after `end`, ms; undefined when it does not set it. */
export function ownRetentionMs(retention: unknown, end: End): number | undefined {
  return isObject(retention) ? parseDuration(retention[end]) : undefined;
}

/** Removals are grouped in steps of this part of the retention, at most an hour. */
const STEPS = 10;
const MAX_STEP_MS = 3_600_000;

/**
 * When a job is removed: at the first full step (a tenth of the retention, at most an hour) after its retention, so
 * that removals are grouped. Epoch ms, ms.
 */
export function removalMoment(endedAt: number, retention: number): number {
  const step = Math.max(1, Math.min(retention / STEPS, MAX_STEP_MS));
  return Math.ceil(Math.ceil((endedAt + retention) / step) * step);
}
