/** How many jobs are in each state. Exact; what needs a scan is counted once and then kept in memory. */
import { listed, rows } from '../../durable/sql';
import { RANK_BIT } from '../../job/ids';
import { first } from '../../job/size';
import { JOB_STATES } from '../../job/states';
import { MAX_UPCOMING, type Upcoming } from '../../metrics/as-of';
import type { QueueStats, StateCounts } from '../../rpc/stats';
import { countArchived } from '../store/archive';
import { afterAllAt } from '../store/due-index';
import { STANDS_IN_LINE, STATE } from '../store/job-row';
import type { Stored, StoredQueue } from '../store/parts';
import { stateOf } from '../store/rows';

export const emptyStats = (queue: string, now: number): QueueStats => ({
  queue,
  exists: false,
  paused: false,
  counts: noJobs(),
  dead: 0,
  computed_at: now,
});

export const noJobs = (): StateCounts => Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as StateCounts;

export function stats(q: StoredQueue, now: number): QueueStats {
  const counts = noJobs();
  const { due, dead, discarded, ...standing } = q.store.tally.read(q.store.priorities, now).standing;
  Object.assign(counts, standing);
  counts.completed = countArchived(q.store.sql);
  counts.discarded = discarded + dead;
  const lockedDead = [...q.store.locks.all()].filter(({ state }) => state === STATE.dead).length;
  let activeIndexed = 0;
  for (const active of q.store.leases.active.values()) if (active.indexed) activeIndexed++;
  counts.active = q.store.leases.active.size;
  counts.available = due - activeIndexed + lineLength(q);
  for (const place of q.store.locks.all()) counts[stateOf(place, false, now)]++;
  return {
    queue: q.name,
    exists: true,
    paused: q.config.paused,
    ...(q.config.draining && { draining: true }),
    counts,
    dead: dead + lockedDead,
    created_at: q.config.createdAt,
    computed_at: now,
  };
}

function lineLength(q: Stored): number {
  if (q.store.counts.line === null) {
    let running = 0;
    for (const active of q.store.leases.active.values()) if (!active.indexed) running++;
    const query = `SELECT count(*) AS n FROM jobs WHERE key < ${RANK_BIT} AND ${STANDS_IN_LINE}`;
    const { n } = q.store.sql.exec<{ n: number }>(query).one();
    q.store.counts.line = n + q.store.blocks.countLine() - running;
  }
  return q.store.counts.line;
}

export function priorities(q: Stored, now: number): { priority: number; count: number }[] {
  const counts = new Map(q.store.tally.read(q.store.priorities, now).priorities);
  let fromLine = lineLength(q);
  for (const active of q.store.leases.active.values()) if (!active.indexed) fromLine++;
  counts.set(0, (counts.get(0) ?? 0) + fromLine);
  return [...counts]
    .filter(([, count]) => count > 0)
    .map(([priority, count]) => ({ priority, count }))
    .sort((a, b) => b.priority - a.priority);
}

interface Oldest {
  key: number;
  at: number;
}

/** The job that waits longest, and when it became available, epoch ms; undefined when none waits. */
export function oldestAvailable(q: Stored, now: number): Oldest | undefined {
  const running = listed(q.store.leases.active.keys());
  const firstRow = (at: string, where: string, order: string, ...bindings: number[]) => {
    const idle = `${where} AND key NOT IN ${running.sql}`;
    const query = `SELECT key, ${at} AS at FROM jobs WHERE ${idle} ORDER BY ${order} LIMIT 1`;
    return rows<{ key: number; at: number }>(q.store.sql, query, ...bindings, ...running.bindings)[0];
  };
  const waiting: ({ key: number; at?: number | undefined } | undefined)[] = [...q.store.priorities].flatMap(
    (priority) => {
      const due = firstIdle(q, q.store.blocks.due.inTurn(priority, undefined, now, false));
      return [
        due && { key: due.key, at: due.due_at ?? undefined },
        firstIdle(q, q.store.blocks.retries.placesInTurn(priority, undefined, now)),
        firstRow('due_at', 'priority = ? AND due_at <= ?', 'due_at', priority, now),
      ];
    },
  );
  if (lineLength(q) > 0) {
    const inLine = firstIdle(q, q.store.blocks.line.after(q.store.leases.head, false));
    const ofRows = `key < ${RANK_BIT} AND ${STANDS_IN_LINE} AND key > ?`;
    waiting.push(
      firstRow('enqueued_at', ofRows, 'key', q.store.leases.head),
      inLine && { key: inLine.key, at: inLine.enqueued_at },
    );
  }
  const found = waiting.filter((one): one is Oldest => one?.at !== undefined);
  return found.length === 0 ? undefined : found.reduce((first, one) => (one.at < first.at ? one : first));
}

function firstIdle<T extends { key: number }>({ store: { leases } }: Stored, rows: Iterable<T>): T | undefined {
  for (const row of rows) if (!leases.active.has(row.key)) return row;
  return undefined;
}

export function upcoming(q: Stored, now: number): Upcoming[] {
  const ofRows = `SELECT due_at AS at, attempt > 0 AS tried FROM jobs
    WHERE priority = ? AND due_at > ? ORDER BY due_at LIMIT ${MAX_UPCOMING}`;
  const next = [...q.store.priorities].flatMap((priority) => [
    ...first(q.store.blocks.due.inTurn(priority, afterAllAt(now), undefined, false), MAX_UPCOMING).map(
      ({ due_at }): Upcoming => [due_at as number, false],
    ),
    ...first(q.store.blocks.retries.placesInTurn(priority, afterAllAt(now)), MAX_UPCOMING).map(
      ({ at, attempt }): Upcoming => [at, attempt > 0],
    ),
    ...rows<{ at: number; tried: number }>(q.store.sql, ofRows, priority, now).map(
      ({ at, tried }): Upcoming => [at, tried === 1],
    ),
  ]);
  return next.sort(([a], [b]) => a - b).slice(0, MAX_UPCOMING);
}
