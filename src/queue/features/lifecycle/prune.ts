/** Removing what ended long ago, in bounded steps from the oldest. */

import { forgetAnswers, oldestAnswer, REMEMBER_ANSWER_MS } from '../../../durable/inbox';
import { removalMoment } from '../../../job/retention';
import type { Feature, Host } from '../../feature';
import { oldestArchived, pruneArchive, pruneKeptChunks } from '../../store/archive';
import { rowByKey, STATE } from '../../store/columns';
import { endedBefore, firstEnded, firstKeptRow, keptBefore } from '../../store/ended-rows';
import { remove } from '../../store/jobs';
import { firstKeptUntil } from '../../store/kept-chunks';
import { MOVE } from '../../store/moves';
import type { QueueState } from '../../store/state';

/** Rows removed in one go; what is left waits for the next wake, a moment later. */
const STEP = 500;

const ENDED = [
  { state: STATE.cancelled, kind: 'cancelled' },
  { state: STATE.discarded, kind: 'discarded' },
  { state: STATE.dead, kind: 'dead_letter' },
] as const;

/** Pause before the alarm looks again at ended jobs that it could not remove yet, ms. */
const BUSY_MS = 1_000;

export class Pruning implements Feature {
  constructor(private readonly host: Host) {}

  due(now: number): number | undefined {
    const { q } = this.host;
    const next = nextPrune(q);
    // Dead letters that are on their way elsewhere are kept beyond their time, and must not keep the alarm busy.
    return next === undefined || !q.outbox.has(MOVE) ? next : Math.max(next, now + BUSY_MS);
  }

  tidy(now: number): void {
    prune(this.host.q, now);
  }
}

/** Removes ended jobs whose retention has passed: their own, or that of the queue. */
function prune(q: QueueState, now: number): void {
  pruneArchive(q.sql, now - q.retentionMs('completed'), STEP);
  pruneKeptChunks(q.sql, now, STEP);
  forgetAnswers(q, now, STEP);
  for (const { state, kind } of ENDED) removeAll(q, endedBefore(q.sql, state, now - q.retentionMs(kind), STEP), now);
  removeAll(q, keptBefore(q.sql, now, STEP), now);
}

function removeAll(q: QueueState, keys: readonly number[], now: number): void {
  // One at a time: with their bodies they could be more than this object has memory for.
  for (const key of keys) {
    const row = rowByKey(q.sql, key);
    if (row) remove(q, row, 'remove', now);
  }
}

/**
 * When the next ended job is to be removed. {@link removalMoment} puts removals together, so that the object does not wake
 * for each one.
 */
function nextPrune(q: QueueState): number | undefined {
  let next: number | undefined;
  const wakeFor = (at: number | undefined) => {
    if (at !== undefined && (next === undefined || at < next)) next = at;
  };
  const consider = (endedAt: number | undefined, retention: number) => {
    if (endedAt !== undefined) wakeFor(removalMoment(endedAt, retention));
  };
  consider(oldestArchived(q.sql), q.retentionMs('completed'));
  for (const { state, kind } of ENDED) consider(firstEnded(q.sql, state), q.retentionMs(kind));
  wakeFor(firstKeptUntil(q.sql));
  wakeFor(firstKeptRow(q.sql));
  consider(oldestAnswer(q), REMEMBER_ANSWER_MS);
  return next;
}
