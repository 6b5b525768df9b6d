/** Heartbeats: a live worker keeps its leases, and learns which jobs are no longer its own. */
import { isUuidV7 } from '../../job/ids';
import type { HeartbeatReceipt, HeartbeatRequest, LeasedJob } from '../../rpc/workers';
import { keysOf } from '../read/find';
import type { Active } from '../store/active';
import { bodyOf, readableBody, STATE } from '../store/job-row';
import type { Named, QueueParts, Stored, Woken } from '../store/parts';
import { completedByKeys, identitiesOf, rowByKey } from '../store/row-lookup';
import { idOf } from '../store/rows';
import { fail, type Random, requeue } from './end-attempt';

/** Jobs without a row that one heartbeat looks for among those that have completed. */
const MAX_ARCHIVED = 100;

interface NamedJobs {
  held: { id: string; active: Active }[];
  cancelled: string[];
  lost: string[];
}

/** Extends the worker's leases, all or the named ones; lost jobs are skipped. One row written for each lease. */
export function heartbeat(q: Named & Stored & Woken, request: HeartbeatRequest, now: number): HeartbeatReceipt {
  const { job_ids, worker_id, visibility_timeout_ms } = request;
  const { held, cancelled, lost }: NamedJobs = job_ids
    ? named(q, job_ids, worker_id)
    : { held: leasesOf(q, worker_id), cancelled: [], lost: [] };
  const leases = held.map(({ active }) => active);
  q.store.leases.extend(leases, now, visibility_timeout_ms);
  if (held.length > 0) q.wake.at(q.store.leases.earliest);
  const directive = request.directives ? testDirective(q, leases) : undefined;
  return { extended: held.map(({ id }) => id), cancelled, lost, ...(directive !== undefined && { directive }) };
}

/** Reads what distinguishes jobs, and no body: ten thousand may be named. */
function named(q: Named & Stored, ids: readonly string[], workerId: string): NamedJobs {
  const keys = keysOf(q, [...new Set(ids)].filter(isUuidV7));
  const byKey = identitiesOf(q.store, [...keys.values()]);
  const found: NamedJobs = { held: [], cancelled: [], lost: [] };
  const gone = [...keys.values()].filter((key) => !byKey.has(key));
  const completed = completedByKeys(q.store, gone.slice(0, MAX_ARCHIVED));
  for (const [id, key] of keys) {
    const row = byKey.get(key);
    if (!row) {
      const job = completed.get(key);
      if (job && idOf(q.route, { key, alias: job.a ?? null, created_at: job.at[0] }) === id) found.lost.push(id);
      continue;
    }
    if (idOf(q.route, row) !== id) continue;
    const active = q.store.leases.active.get(key);
    if (active && (active.workerId === undefined || active.workerId === workerId)) found.held.push({ id, active });
    else if ((q.store.locks.seen(row) ?? row).state === STATE.cancelled) found.cancelled.push(id);
    else found.lost.push(id);
  }
  return found;
}

/** The first directive among the jobs of these leases; only deployments with test hooks ask. */
function testDirective(q: Stored, leases: readonly Active[]): string | undefined {
  for (const { key } of leases) {
    const row = rowByKey(q.store, key);
    const { test_directive } =
      ((row && readableBody(row)) as { metadata?: { test_directive?: unknown } } | undefined)?.metadata ?? {};
    if (test_directive === 'quiet' || test_directive === 'terminate') return test_directive;
  }
  return undefined;
}

function leasesOf(q: Named & Stored, workerId: string): { id: string; active: Active }[] {
  const leased = [...q.store.leases.active.values()].filter((active) => active.workerId === workerId);
  if (leased.length === 0) return [];
  const rows = identitiesOf(
    q.store,
    leased.map(({ key }) => key),
  );
  const ids = new Map(Array.from(rows.values(), (row) => [row.key, idOf(q.route, row)]));
  return leased.flatMap((active) => {
    const id = ids.get(active.key);
    return id === undefined ? [] : [{ id, active }];
  });
}

export const leasedBy = (q: Named & Stored, workerId: string): LeasedJob[] =>
  leasesOf(q, workerId).map(({ id, active }) => ({
    id,
    type: active.type,
    queue: q.name,
    attempt: active.attempt,
    started_at: active.startedAt,
    lease_expires_at: active.expiresAt,
  }));

/** Gives a lost worker's jobs to others: available now, the attempt counts, the last one ends. @returns their ids */
export function releaseLeased(q: QueueParts, workerId: string, now: number, random: Random): string[] {
  const leased = leasesOf(q, workerId);
  for (const { active } of leased) {
    const row = rowByKey(q.store, active.key);
    if (!row) continue;
    if (active.attempt < Math.max(1, q.config.policyFor(row.type, bodyOf(row)).max_attempts)) {
      requeue(q, row, active, now);
      continue;
    }
    const message = `Worker ${workerId} was removed while it held the job.`;
    fail(q, row, active, { code: 'worker_lost', type: 'tocsin.worker_lost', message }, now, random);
  }
  return leased.map(({ id }) => id);
}
