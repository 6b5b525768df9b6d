/** How many jobs are in each state. Exact; the one number that needs a scan is counted once and then kept in memory. */
import { LANE_BIT } from '../job/ids';
import type { QueueStats, StateCounts } from './api';
import { countArchived } from './archive';
import { countDead } from './end';
import { STATE } from './rows';
import type { QueueState } from './state';

/** Counts of a queue that has never been used. */
export function emptyStats(queue: string, now: number): QueueStats {
  return { queue, exists: false, paused: false, counts: zero(), dead: 0, computed_at: now };
}

function zero(): StateCounts {
  return {
    scheduled: 0,
    available: 0,
    pending: 0,
    active: 0,
    retryable: 0,
    completed: 0,
    cancelled: 0,
    discarded: 0,
  };
}

/** Counts per state at `now`. */
export function stats(q: QueueState, now: number): QueueStats {
  const counts = zero();
  counts.completed = countArchived(q.sql);
  counts.pending = q.sql.exec<{ n: number }>('SELECT count(*) AS n FROM jobs WHERE state = 1').one().n;
  for (const { state, n } of q.sql.exec<{ state: number; n: number }>(
    'SELECT state, count(*) AS n FROM jobs WHERE state > 1 AND ended_at IS NOT NULL GROUP BY state',
  )) {
    if (state === STATE.cancelled) counts.cancelled += n;
    else counts.discarded += n;
  }
  let due = 0;
  for (const { future, tried, n } of q.sql.exec<{ future: number; tried: number; n: number }>(
    `SELECT due_at > ? AS future, attempt > 0 AS tried, count(*) AS n FROM jobs
     WHERE due_at IS NOT NULL GROUP BY 1, 2`,
    now,
  )) {
    if (!future) due += n;
    else if (tried) counts.retryable += n;
    else counts.scheduled += n;
  }
  let activeIndexed = 0;
  for (const active of q.leases.active.values()) if (active.indexed) activeIndexed++;
  counts.active = q.leases.active.size;
  counts.available = due - activeIndexed + lineLength(q);
  return {
    queue: q.name,
    exists: true,
    paused: q.paused,
    counts,
    dead: countDead(q),
    created_at: q.createdAt,
    computed_at: now,
  };
}

/** Waiting jobs in the line of immediate jobs. */
function lineLength(q: QueueState): number {
  if (q.lineLength === null) {
    let running = 0;
    for (const active of q.leases.active.values()) if (!active.indexed) running++;
    const rows = q.sql
      .exec<{ n: number }>(
        `SELECT count(*) AS n FROM jobs WHERE key < ${LANE_BIT} AND state = ${STATE.waiting} AND due_at IS NULL`,
      )
      .one().n;
    q.lineLength = rows - running;
  }
  return q.lineLength;
}
