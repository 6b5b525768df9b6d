/** Keeps all indexes of a row up to date: the line, the due index, the expiry, the dead letters. */

import type { Active } from './active';
import { positionOf } from './due-index';
import { groupOfRow, isInLine, type JobRow, STATE } from './job-row';
import type { Named, Stored, Woken } from './parts';
import type { Owned } from './scan';

/** The row leaves its place. @param active the attempt that ends by this, if the job runs */
export function leaves(q: Stored, row: JobRow, active: Active | undefined): void {
  if (q.store.gates.areBounded) {
    const group = groupOfRow(row);
    if (group !== undefined) q.store.gates.free(group);
  }
  if (active) {
    q.store.leases.release(active);
    q.store.streams.flush(row.key);
  } else if (isInLine(row)) {
    q.store.counts.lineChanged(-1);
  } else if (row.state === STATE.waiting && row.limit_key !== null && row.due_at !== null) {
    q.store.limiters.touch(row.limit_key);
  } else if (row.state === STATE.dead && row.ended_at !== null) {
    q.store.counts.deadChanged(-1);
  }
}

/** The row takes its place. @param staysPut only its expiry may have changed */
export function enters(q: Named & Stored & Woken, row: JobRow, now: number, staysPut = false): void {
  if (!staysPut) {
    if (isInLine(row)) {
      q.store.counts.lineChanged(1);
      q.wake.arrived(now, row.type, [row.body]);
    } else if (row.state === STATE.waiting) {
      entersDueIndex(q, row, now);
    } else if (row.state === STATE.dead && row.ended_at !== null) {
      q.store.counts.deadChanged(1);
    }
  }
  if (row.expires_at !== null && (row.state === STATE.waiting || row.state === STATE.pending)) {
    q.store.expiry.awaits(row.expires_at);
    q.wake.at(row.expires_at);
  }
}

/** Notes a row of the due index for cursors, priorities, and whatever starts it once it is due. */
export function entersDueIndex(q: Named & Stored & Woken, row: JobRow, now: number): void {
  const at = row.due_at as number;
  q.store.priorities.add(row.priority);
  const position = positionOf(row);
  const owned = ownedBy(q, row);
  // Where it stood before, it must not be taken: it was given a later time, or it ran or had ended and begins again.
  if (owned && (owned.group === undefined || owned.isOutOfOrder)) {
    for (const scan of q.store.cursors.all()) scan.moved(row.priority, row.key, owned.group);
  }
  for (const scan of q.store.cursors.all()) scan.entered(row.priority, position, owned);
  if (at > now) {
    q.wake.at(at);
    return;
  }
  q.wake.arrived(now, row.type, [row.body]);
}

function ownedBy({ store: { gates } }: Stored, row: JobRow): Owned | undefined {
  if (!gates.rules) return undefined;
  const group = groupOfRow(row);
  const isHolder = gates.isStrict && row.holds_group !== null;
  const isGrouped = group !== undefined;
  return {
    ...{ group, isHolder, isFoundLater: gates.areFoundLater },
    isOutOfOrder: gates.isStrict && isGrouped && !isHolder,
    goesOn: isGrouped && gates.goesOn(group, row),
  };
}
