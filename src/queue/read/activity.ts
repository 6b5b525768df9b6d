/** The activity of a queue: what has happened in it, how long jobs wait, and what delays them. */
import { defined } from '../../job/envelope/fields';
import { gathered, MINUTE_MS, type Point, RECENT_MS } from '../../job/metrics/series';
import type { WaitingFor } from '../../job/waiting';
import type { PointsRequest, QueueActivity } from '../../rpc/metrics';
import type { TargetView } from '../../rpc/targets';
import type { JobRow } from '../store/job-row';
import type { Configured, Observed, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { oldestAvailable } from './stats';

/** For a queue that does not exist. */
export const noActivity = (): QueueActivity => ({
  oldest_available_at: null,
  concurrency: { limit: null, active: 0 },
  suspended_targets: [],
  events_dropped: 0,
  totals: [],
  recent: [],
  counted_since: 0,
});

/** @param why says why a job does not run; absent: that is not asked of the one that waits longest. Writes nothing. */
export function activity(
  q: Stored & Configured & Observed,
  { targets, events_dropped }: { targets: readonly TargetView[]; events_dropped: number },
  now: number,
  why?: (row: JobRow, now: number) => WaitingFor | undefined,
): QueueActivity {
  const { totals, points: all, since } = q.observed.meters.read();
  const lately = all.filter(({ at }) => at > now - RECENT_MS);
  const oldest = oldestAvailable(q, now);
  const row = why && oldest && rowByKey(q.store, oldest.key);
  return {
    oldest_available_at: oldest?.at ?? null,
    ...defined({ waiting_for: row && why?.(row, now) }),
    concurrency: { limit: q.config.settings.concurrency ?? null, active: q.store.leases.active.size },
    suspended_targets: targets.filter(({ state }) => state !== 'up').map(({ name }) => name),
    events_dropped,
    totals: [...totals],
    recent: gathered(lately, MINUTE_MS, 'all'),
    counted_since: since ?? q.config.createdAt,
  };
}

export function points(q: Observed, { from, to, period_ms, type }: PointsRequest): Point[] {
  const isWanted = (point: Point) => point.at >= from && point.at <= to && (type === undefined || point.type === type);
  return gathered(q.observed.meters.read().points.filter(isWanted), period_ms, 'all');
}
