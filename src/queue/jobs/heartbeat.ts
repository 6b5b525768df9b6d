/** Heartbeats: a worker that is alive keeps its leases. Costs one row for each lease extended. */

import type { HeartbeatRequest } from '../../rpc/workers';
import { find } from '../read/find';
import type { Active } from '../store/leases';
import type { QueueState } from '../store/state';
import { leasesOf } from './leased';

/**
 * Extends the leases that the worker holds: those named, or all of them. Jobs it does not hold are left alone, without an
 * error: a heartbeat is about all of a worker's jobs, and one that was taken away must not cost it the others.
 */
export function heartbeat(
  q: QueueState,
  request: HeartbeatRequest,
  now: number,
): { extended: string[]; directive?: string } {
  let held: { id: string; active: Active }[] = [];
  if (request.job_ids) {
    for (const id of new Set(request.job_ids)) {
      const row = find(q, id)?.row;
      const active = row && q.leases.active.get(row.key);
      if (active && (active.workerId === undefined || active.workerId === request.worker_id)) held.push({ id, active });
    }
  } else {
    held = leasesOf(q, request.worker_id);
  }
  q.leases.extend(
    held.map(({ active }) => active),
    now,
    request.visibility_timeout_ms,
  );
  if (held.length > 0) q.wake(q.leases.earliest);
  const directive = held.find(({ active }) => active.directive !== undefined)?.active.directive;
  return { extended: held.map(({ id }) => id), ...(directive !== undefined && { directive }) };
}
