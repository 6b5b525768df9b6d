/** Numbers of a queue that was asked a while ago and has changed nothing since: what became of them by time alone. */

export interface Timed {
  counts: { scheduled: number; retryable: number; available: number };
  /** Since when the job that became available first has waited, epoch ms; null when none waits. */
  oldest_available_at: number | null;
  /** The jobs that become available next, in that order. */
  upcoming: Upcoming[];
}

/** When a job becomes available, epoch ms, and whether that is a retry. */
export type Upcoming = [at: number, isRetry: boolean];

/** How many jobs a reading names that become available next. */
export const MAX_UPCOMING = 64;

/** Until when nothing but these jobs becomes available, epoch ms. Infinity: there are no others. */
export const goodUntil = (upcoming: readonly Upcoming[]): number =>
  upcoming.length < MAX_UPCOMING ? Number.POSITIVE_INFINITY : (upcoming.at(-1) as Upcoming)[0];

/** The numbers as they are at `now`, epoch ms, before {@link goodUntil}. */
export function asOf<T extends Timed>(reading: T, now: number): T {
  const came = reading.upcoming.filter(([at]) => at <= now);
  const [first] = came;
  if (first === undefined) return reading;
  const retries = came.filter(([, isRetry]) => isRetry).length;
  const { counts, oldest_available_at: oldest } = reading;
  return {
    ...reading,
    counts: {
      ...counts,
      scheduled: counts.scheduled - (came.length - retries),
      retryable: counts.retryable - retries,
      available: counts.available + came.length,
    },
    oldest_available_at: Math.min(oldest ?? first[0], first[0]),
    upcoming: reading.upcoming.slice(came.length),
  };
}
