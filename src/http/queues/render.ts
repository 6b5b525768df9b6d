import type { Spreading } from '../../contract/common';
import type { QueueCounts, QueueStanding, QueueState } from '../../contract/queues';
import type { Minute } from '../../contract/stats';
import { defined, given } from '../../job/envelope/fields';
import { renderWaiting } from '../../job/envelope/render';
import { formatInstant } from '../../job/time';
import { sum } from '../../metrics/meter';
import { errorRate, history, latencies, MINUTE_MS, type Point, throughput } from '../../metrics/series';
import { also } from '../../ojs/names';
import type { QueueActivity } from '../../rpc/metrics';
import type { QueueStats } from '../../rpc/stats';
import { modeOf } from '../../settings';

export const renderStatus = (name: string, mode: { paused: boolean; draining?: boolean }): QueueState => ({
  name,
  paused: mode.paused,
  status: modeOf(mode),
});

/** `created_at`, when it is known. Epoch ms. */
export const createdAt = ({ created_at }: { created_at?: number }): { created_at?: string } =>
  defined({ created_at: given(created_at, formatInstant) });

/** The counts in the form of the statistics tool; `depth` is the number of jobs that have not ended. */
export function renderCounts({ queue, counts, dead, storage }: QueueStats): QueueCounts {
  const { completed, cancelled, discarded, ...open } = counts;
  const depth = Object.values(open).reduce((sum, count) => sum + count, 0);
  return { queue, depth, dead, ...open, completed, cancelled, discarded, ...(storage && { storage }) };
}

/** A queue in a list for operators. @param withRecent with the last half hour, by minute */
export function renderForOperators(stats: QueueStats & QueueActivity, withRecent = false): QueueStanding {
  const { queue: name, counts, computed_at: now, oldest_available_at: oldest, recent, concurrency } = stats;
  const { suspended_targets, dead, pressure, storage, waiting_for } = stats;
  const { latency_ms, queue_time_ms } = latencies(recent, sum(stats.totals.map(([, meter]) => meter)), now);
  return {
    ...also('QueueMode', renderStatus(name, stats)),
    counts,
    throughput: throughput(recent, now),
    ...{ latency_ms, queue_time_ms },
    oldest_available_at: oldest === null ? null : formatInstant(oldest),
    ...defined({ waiting_for: given(waiting_for, renderWaiting), pressure, storage }),
    dead,
    error_rate: errorRate(recent, now),
    ...{ concurrency, suspended_targets },
    ...(withRecent && { recent: renderRecent(recent, now) }),
  };
}

const RECENT_POINTS = 30;

function renderRecent(recent: readonly Point[], now: number): Minute[] {
  const range = { periodMs: MINUTE_MS, from: now - (RECENT_POINTS - 1) * MINUTE_MS, to: now };
  return history(recent, range).map(({ at, processed, failed, enqueued }) => {
    return { timestamp: formatInstant(at), processed, failed, enqueued };
  });
}

/** The part of an answer about a change for all queues: how many have not confirmed it yet, if any. */
export const pendingQueues = (untold = 0): Spreading => (untold > 0 ? { pending_queues: untold } : {});
