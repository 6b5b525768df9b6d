/** The leases of one worker in this queue, and revoking them when the worker is gone. */

import type { LeasedJob } from '../../rpc/workers';
import type { Active } from '../store/active';
import type { Named, QueueParts, Stored } from '../store/parts';
import { identitiesOf, rowByKey } from '../store/row-lookup';
import { bodyOf } from '../store/row-texts';
import { idOf } from '../store/rows';
import { fail, type Random, requeue } from './end-attempt';

export function leasesOf(q: Named & Stored, workerId: string): { id: string; active: Active }[] {
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
