/** The bound of a group's waiting jobs: what would exceed it is refused, and nothing of its request is written. */
import { ApiError } from '../../job/errors';
import { quote } from '../../job/text';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import type { Configured, Named, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { groupOfRow } from '../store/row-texts';
import type { StoredJob } from './conflicts';

/** Seconds after which a refused producer may try again. */
const RETRY_AFTER_S = 1;

/** Do the queue's groups have a bound? */
export function hasBoundedGroups({ config: { groups } }: Configured): boolean {
  return groups?.boundWaiting === true;
}

/** @throws {ApiError} 429 `GROUP_FULL` where more jobs of a group would wait than its queue allows */
export function checkGroupRoom(q: Named & Stored & Configured, placements: readonly Placement<StoredJob>[]): void {
  if (!hasBoundedGroups(q)) return;
  for (const [group, arriving] of arrivals(q, placements)) {
    const limit = q.config.groups?.limitsOf(group).max_waiting;
    if (arriving <= 0 || limit === undefined) continue;
    const running = q.store.gates.runningOf(group);
    const open = q.store.groupCounts.above(group, limit + running - arriving);
    if (open !== undefined) throw groupFull(q, group, limit, open - running);
  }
}

/** How many jobs of each group these are, without those that they replace. */
function arrivals(q: Stored, placements: readonly Placement<StoredJob>[]): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (group: string | undefined, by: number) => {
    if (group !== undefined) counts.set(group, (counts.get(group) ?? 0) + by);
  };
  for (const placement of placements) {
    if ('existing' in placement || placement.job.superseded) continue;
    add(placement.job.group, 1);
    for (const replaced of placement.replaces) {
      const row = isEarlierEntry(replaced) ? undefined : rowByKey(q.store, replaced.key);
      const earlier = isEarlierEntry(replaced) ? placements[replaced.index] : undefined;
      add(row ? groupOfRow(row) : earlier && 'job' in earlier ? earlier.job.group : undefined, -1);
    }
  }
  return counts;
}

function groupFull({ name }: Named, group: string, limit: number, waiting: number): ApiError {
  return new ApiError({
    status: 429,
    code: 'GROUP_FULL',
    message: `Group ${JSON.stringify(quote(group))} of queue ${name} is full; nothing was enqueued.`,
    retryable: true,
    details: { queue: name, group: quote(group), waiting, limit },
    headers: { 'Retry-After': String(RETRY_AFTER_S) },
  });
}
