/** Where a row stands and what must know of it: the line, the due index, its key, the expiry, the dead letters. */

import type { Active } from './active';
import { isInLine, type JobRow, STATE } from './columns';
import { isBegun, limiterOf } from './limits/place';
import type { QueueState } from './state';

/** The row leaves its place. @param active the attempt that ends by this, if the job runs */
export function leaves(q: QueueState, row: JobRow, active: Active | undefined): void {
  if (active) {
    q.leases.release(active);
  } else if (isInLine(row)) {
    if (q.lineLength !== null) q.lineLength--;
  } else if (row.state === STATE.waiting && row.limit_key !== null && row.due_at !== null) {
    q.limiters.find(row.limit_key)?.leaves(row.priority, isBegun(row));
    q.limiters.touch(row.limit_key);
  } else if (row.state === STATE.dead && row.ended_at !== null) {
    deadLetters(q, -1);
  }
}

/** The row takes its place. @param staysPut only its expiry may have changed */
export function enters(q: QueueState, row: JobRow, now: number, staysPut = false): void {
  if (!staysPut) {
    if (isInLine(row)) {
      if (q.lineLength !== null) q.lineLength++;
      q.arrived(now, row.type, [row.body]);
    } else if (row.state === STATE.waiting) {
      if (row.waits_since === null) entersDueIndex(q, row, now);
      else waitsForKey(q, row);
    } else if (row.state === STATE.dead && row.ended_at !== null) {
      deadLetters(q, 1);
    }
  }
  if (row.expires_at !== null && (row.state === STATE.waiting || row.state === STATE.pending)) {
    if (row.expires_at <= q.nextExpiry) {
      q.nextExpiry = row.expires_at;
      q.expiredUntilKey = 0;
    }
    q.wake(row.expires_at);
  }
}

/** One has come or gone. */
function deadLetters(q: QueueState, by: 1 | -1): void {
  if (q.deadCount !== null) q.deadCount += by;
  q.deadKinds = null;
}

/** Cursors and priorities must know of a row in the due index; whoever runs it, once it is due. */
function entersDueIndex(q: QueueState, row: JobRow, now: number): void {
  const at = row.due_at as number;
  q.priorities.add(row.priority);
  for (const scan of q.scans()) scan.entered(row.priority, { at, attempt: row.attempt, key: row.key });
  if (at > now) {
    q.wake(at);
    return;
  }
  if (row.limit_key !== null) limiterOf(q, row).enters(row.priority, isBegun(row));
  q.arrived(now, row.type, [row.body]);
}

function waitsForKey(q: QueueState, row: JobRow): void {
  const limiter = limiterOf(q, row);
  limiter.mayHaveWaiting = true;
  if (isBegun(row)) limiter.mayHaveBegun = true;
  q.limiters.touch(limiter.key);
}
