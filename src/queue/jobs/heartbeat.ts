/** Heartbeats: a worker that is alive keeps its leases, and hears which jobs are no longer its own. */

import { isUuidV7 } from '../../job/ids';
import type { HeartbeatReceipt, HeartbeatRequest } from '../../rpc/workers';
import { keysOf } from '../read/find';
import { findArchived } from '../store/archive';
import { type JobRow, STATE } from '../store/columns';
import type { Active } from '../store/leases';
import { idOf } from '../store/rows';
import type { QueueState } from '../store/state';
import { leasesOf } from './leased';

/** Jobs without a row that one heartbeat looks for among those that have completed. */
const MAX_ARCHIVED = 100;

/** What became of the jobs that a worker names. One that this queue does not know is in none of the lists. */
interface Named {
  held: { id: string; active: Active }[];
  cancelled: string[];
  lost: string[];
}

/**
 * Extends the leases that the worker holds: those named, or all of them. Jobs it does not hold are left alone, without an
 * error: a heartbeat is about all of a worker's jobs, and one that was taken away must not cost it the others. One row
 * written for each lease.
 */
export function heartbeat(q: QueueState, request: HeartbeatRequest, now: number): HeartbeatReceipt {
  const { job_ids, worker_id, visibility_timeout_ms } = request;
  const { held, cancelled, lost }: Named = job_ids
    ? named(q, job_ids, worker_id)
    : { held: leasesOf(q, worker_id), cancelled: [], lost: [] };
  const leases = held.map(({ active }) => active);
  q.leases.extend(leases, now, visibility_timeout_ms);
  if (held.length > 0) q.wake(q.leases.earliest);
  const directive = request.directives ? testDirective(q, leases) : undefined;
  return { extended: held.map(({ id }) => id), cancelled, lost, ...(directive !== undefined && { directive }) };
}

/** Reads what tells jobs apart, and no body: ten thousand may be named. */
function named(q: QueueState, ids: readonly string[], workerId: string): Named {
  const keys = keysOf(q, [...new Set(ids)].filter(isUuidV7));
  const rows = q.sql.exec<Pick<JobRow, 'key' | 'alias' | 'state' | 'created_at' | 'due_at' | 'attempt'>>(
    'SELECT key, alias, state, created_at, due_at, attempt FROM jobs WHERE key IN (SELECT value FROM json_each(?))',
    JSON.stringify([...keys.values()]),
  );
  const byKey = new Map(Array.from(rows, (row) => [row.key, row]));
  const found: Named = { held: [], cancelled: [], lost: [] };
  let archived = 0;
  for (const [id, key] of keys) {
    const row = byKey.get(key);
    if (!row) {
      const job = archived++ < MAX_ARCHIVED ? (q.archive.find(key) ?? findArchived(q.sql, key)) : undefined;
      if (job && idOf(q.route, { key, alias: job.a ?? null, created_at: job.at[0] }) === id) found.lost.push(id);
      continue;
    }
    if (idOf(q.route, row) !== id) continue;
    const active = q.leases.active.get(key);
    if (active && (active.workerId === undefined || active.workerId === workerId)) found.held.push({ id, active });
    else if ((q.locks.seen(row) ?? row).state === STATE.cancelled) found.cancelled.push(id);
    else found.lost.push(id);
  }
  return found;
}

/** The first directive among the jobs of these leases; only deployments with test hooks ask. */
function testDirective(q: QueueState, leases: readonly Active[]): string | undefined {
  const rows = q.sql.exec<{ directive: string }>(
    `SELECT body ->> '$.metadata.test_directive' AS directive FROM jobs
     WHERE key IN (SELECT value FROM json_each(?)) AND json_valid(body) AND directive IN ('quiet', 'terminate') LIMIT 1`,
    JSON.stringify(leases.map(({ key }) => key)),
  );
  return rows.toArray()[0]?.directive;
}
