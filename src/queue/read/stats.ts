/** How many jobs are in each state. Exact; the one number that needs a scan is counted once and then kept in memory. */
import { LANE_BIT } from '../../job/ids';
import type { QueueStats, StateCounts } from '../../rpc/queue';
import { countArchived } from '../store/archive';
import { STATE } from '../store/columns';
import { countDead } from '../store/jobs';
import { stateOf } from '../store/rows';
import type { QueueState } from '../store/state';

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
  const lockedDead = [...q.locks.all()].filter(({ state }) => state === STATE.dead).length;
  let activeIndexed = 0;
  for (const active of q.leases.active.values()) if (active.indexed) activeIndexed++;
  counts.active = q.leases.active.size;
  counts.available = due - activeIndexed + lineLength(q) + countLimited(q.sql);
  for (const place of q.locks.all()) counts[stateOf(place, false, now)]++;
  return {
    queue: q.name,
    exists: true,
    paused: q.paused,
    ...(q.draining && { draining: true }),
    counts,
    dead: countDead(q) + lockedDead,
    created_at: q.createdAt,
    computed_at: now,
  };
}

/** Jobs that wait for room under their key. */
function countLimited(sql: SqlStorage): number {
  return sql
    .exec<{ n: number }>(
      `SELECT count(*) AS n FROM jobs INDEXED BY jobs_limited WHERE waits_since IS NOT NULL AND state = ${STATE.waiting}`,
    )
    .one().n;
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

/** How many jobs that have not ended there are of each priority, highest first. */
export function priorities(q: QueueState): { priority: number; count: number }[] {
  const counts = new Map<number, number>();
  const add = (priority: number, n: number) => {
    if (n > 0) counts.set(priority, (counts.get(priority) ?? 0) + n);
  };
  for (const { priority, n } of q.sql.exec<{ priority: number; n: number }>(
    `SELECT priority, count(*) AS n FROM jobs WHERE due_at IS NOT NULL GROUP BY priority
     UNION ALL SELECT priority, count(*) AS n FROM jobs WHERE state = 1 GROUP BY priority
     UNION ALL SELECT priority, count(*) AS n FROM jobs WHERE waits_since IS NOT NULL GROUP BY priority`,
  )) {
    add(priority, n);
  }
  let runningFromLine = 0;
  for (const active of q.leases.active.values()) if (!active.indexed) runningFromLine++;
  add(0, lineLength(q) + runningFromLine);
  return [...counts].map(([priority, count]) => ({ priority, count })).sort((a, b) => b.priority - a.priority);
}

/** When the job that waits longest became available, epoch ms; undefined when none waits. */
export function oldestAvailable(q: QueueState, now: number): number | undefined {
  const running = JSON.stringify([...q.leases.active.keys()]);
  const waiting = [...q.priorities].map(
    (priority) =>
      q.sql
        .exec<{ at: number }>(
          `SELECT due_at AS at FROM jobs WHERE priority = ? AND due_at <= ?
         AND key NOT IN (SELECT value FROM json_each(?)) ORDER BY due_at LIMIT 1`,
          priority,
          now,
          running,
        )
        .toArray()[0]?.at,
  );
  const limited = q.sql
    .exec<{ at: number | null }>('SELECT min(waits_since) AS at FROM jobs WHERE waits_since IS NOT NULL')
    .one().at;
  waiting.push(limited ?? undefined);
  if (lineLength(q) > 0) {
    waiting.push(
      q.sql
        .exec<{ at: number }>(
          `SELECT enqueued_at AS at FROM jobs WHERE key < ${LANE_BIT} AND state = ${STATE.waiting}
           AND due_at IS NULL AND key NOT IN (SELECT value FROM json_each(?)) ORDER BY key LIMIT 1`,
          running,
        )
        .toArray()[0]?.at,
    );
  }
  const times = waiting.filter((at) => at !== undefined);
  return times.length === 0 ? undefined : Math.min(...times);
}
