/** Changes of a job that waits, as a producer writes them. */
import type { Duration, RetentionOptions, RetryPolicy } from '../producer/envelope';
import { type Moment, momentText, relativeText } from '../producer/job';
import { namesOf, refuseUnknown } from '../producer/known';
import { invalid } from './queries';

/** Members replace those of the job's own policy, `null` removes them (`maxInterval: null`: no cap). */
export type RetryChange = { [K in keyof RetryPolicy]?: RetryPolicy[K] | null };

type Start =
  | {
      /** Start at the earliest after this time. */
      delay?: Duration;
      delayUntil?: never;
    }
  | {
      /** Start at the earliest at this moment; `null`: as soon as possible. */
      delayUntil?: Moment | null;
      delay?: never;
    };

type Runs =
  | { retry?: RetryChange | null; maxAttempts?: never }
  | { retry?: (RetryChange & { maxAttempts?: never }) | null; maxAttempts?: number | null };

/** What to change about a waiting job. Members left out stay; `null` returns one to its default. */
export type JobPatch = Start &
  Runs & {
    priority?: number | null;
    expiresAt?: Moment | null;
    timeoutMs?: number | null;
    tags?: readonly string[] | null;
    /** Members replace those of the job's own retention; `null` goes back to its queue's. */
    retention?: { [K in keyof RetentionOptions]?: RetentionOptions[K] | null } | null;
  };

const PATCH = namesOf<JobPatch>({
  ...{ delay: true, delayUntil: true, retry: true, maxAttempts: true, priority: true, expiresAt: true },
  ...{ timeoutMs: true, tags: true, retention: true },
});

/** The change as the server reads it. @throws {InvalidJobError} @throws {TypeError} for a member that does not exist */
export function wirePatch(change: JobPatch): Record<string, unknown> {
  refuseUnknown(change, PATCH, 'A change of a job has no');
  const moment = (value: Moment | null | undefined, name: string) => (value === null ? null : momentText(value, name));
  const { delay, delayUntil }: { delay?: Duration; delayUntil?: Moment | null } = change;
  // Only untyped code sets both.
  if (delay !== undefined && delayUntil !== undefined) throw invalid('Say delay or delayUntil, not both.', 'delay');
  return {
    priority: change.priority,
    scheduledAt: delay === undefined ? moment(delayUntil, 'delayUntil') : relativeText(delay),
    expiresAt: moment(change.expiresAt, 'expiresAt'),
    retry: change.retry,
    maxAttempts: change.maxAttempts,
    timeoutMs: change.timeoutMs,
    tags: change.tags,
    retention: change.retention,
  };
}
