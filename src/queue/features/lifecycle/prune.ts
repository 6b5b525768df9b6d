/** Removes jobs that ended long ago, and what exceeds a lowered bound, in bounded steps from the oldest. */

import { forgetAnswers, oldestAnswer, REMEMBER_ANSWER_MS } from '../../../durable/inbox';
import { removalMoment } from '../../../job/retention';
import type { Feature, Host } from '../../feature';
import { setShedding, shed } from '../../jobs/backpressure';
import { firstKeptUntil, oldestArchived, pruneArchive, pruneKeptChunks } from '../../store/archive';
import { endedBefore, firstEnded, firstKeptRow, keptBefore } from '../../store/ended-rows';
import { STATE } from '../../store/job-row';
import { evictDeadLetters, remove, setEvicting } from '../../store/jobs';
import { MOVE } from '../../store/moves';
import type { Configured, Named, Observed, QueueParts, Stored } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';

const ENDED = [
  { state: STATE.cancelled, kind: 'cancelled' },
  { state: STATE.discarded, kind: 'discarded' },
  { state: STATE.dead, kind: 'dead_letter' },
] as const;

/** Interval to the alarm's next check of ended jobs that it could not remove yet, ms. */
const BUSY_MS = 1_000;

export const pruning = ({ q }: Host): Feature => ({
  due(now) {
    if (q.store.evicting || q.store.depth.isShedding) return now;
    const next = nextPrune(q);
    // Dead letters on their way elsewhere are kept beyond their time, and must not keep the alarm busy.
    return next === undefined || !q.store.outbox.has(MOVE) ? next : Math.max(next, now + BUSY_MS);
  },

  tidy(now) {
    prune(q, now);
    if (q.store.depth.isShedding) setShedding(q, shed(q, now));
  },
});

/** Removes ended jobs past their own retention or the queue's, and dead letters beyond their bound. */
function prune(q: QueueParts, now: number): void {
  const { sql, inbox, turn } = q.store;
  pruneArchive(q.store, now - q.config.retentionMs('completed'));
  pruneKeptChunks(q.store, now);
  turn.spend({ changes: forgetAnswers(inbox, now, turn.share) });
  removeAll(q, keptBefore(sql, now, turn.share), now);
  for (const { state, kind } of ENDED) {
    removeAll(q, endedBefore(sql, state, now - q.config.retentionMs(kind), turn.share), now);
  }
  if (q.store.evicting) setEvicting(q, evictDeadLetters(q, turn.share, now));
}

function removeAll(q: Named & Stored & Observed, keys: readonly number[], now: number): void {
  // One at a time: with their bodies they could exceed this object's memory.
  for (const key of q.store.turn.draw(keys)) {
    const row = rowByKey(q.store, key);
    if (row) remove(q, row, 'remove', now);
  }
}

/** When the next ended job is due, in the steps of {@link removalMoment}. */
function nextPrune(q: Stored & Configured): number | undefined {
  let next: number | undefined;
  const wakeFor = (at: number | undefined) => {
    if (at !== undefined && (next === undefined || at < next)) next = at;
  };
  const consider = (endedAt: number | undefined, retention: number) => {
    if (endedAt !== undefined) wakeFor(removalMoment(endedAt, retention));
  };
  consider(oldestArchived(q.store.sql), q.config.retentionMs('completed'));
  for (const { state, kind } of ENDED) consider(firstEnded(q.store.sql, state), q.config.retentionMs(kind));
  wakeFor(firstKeptUntil(q.store.sql));
  wakeFor(firstKeptRow(q.store.sql));
  consider(oldestAnswer(q.store.inbox), REMEMBER_ANSWER_MS);
  return next;
}
