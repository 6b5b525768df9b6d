/** Removing what ended long ago, in bounded steps from the oldest. */

import { forgetTasks, oldestTask, REMEMBER_MS } from '../operations/tasks';
import type { QueueState } from '../state';
import { oldestArchived, pruneArchive } from '../storage/archive';
import { STATE } from '../storage/rows';
import { removeEnded } from './end';
import { rowByKey } from './find';
import { forgetAnswers, oldestAnswer, REMEMBER_ANSWER_MS } from './idempotency';

/** Rows removed in one go; what is left waits for the next wake, a moment later. */
const STEP = 500;

const ENDED = [
  { state: STATE.cancelled, kind: 'cancelled' },
  { state: STATE.discarded, kind: 'discarded' },
  { state: STATE.dead, kind: 'dead' },
] as const;

/** Removes ended jobs whose retention has passed. */
export function prune(q: QueueState, now: number): void {
  pruneArchive(q.sql, now - q.retentionMs('completed'), STEP);
  forgetTasks(q, now);
  forgetAnswers(q, now, STEP);
  for (const { state, kind } of ENDED) {
    const rows = q.sql
      .exec<{ key: number }>(
        'SELECT key FROM jobs WHERE state = ? AND ended_at <= ? ORDER BY ended_at LIMIT ?',
        state,
        now - q.retentionMs(kind),
        STEP,
      )
      .toArray();
    // One at a time: with their bodies they could be more than this object has memory for.
    for (const { key } of rows) {
      const row = rowByKey(q, key);
      if (row) removeEnded(q, row);
    }
  }
}

/**
 * When the next ended job is to be removed, rounded up so that the object does not wake for each one: to a tenth of the
 * retention, an hour at most.
 */
export function nextPrune(q: QueueState): number | undefined {
  let next: number | undefined;
  const consider = (endedAt: number | undefined, retention: number) => {
    if (endedAt === undefined) return;
    const step = Math.max(1, Math.min(retention / 10, 3_600_000));
    const at = Math.ceil((endedAt + retention) / step) * step;
    if (next === undefined || at < next) next = at;
  };
  consider(oldestArchived(q.sql), q.retentionMs('completed'));
  for (const { state, kind } of ENDED) {
    const row = q.sql
      .exec<{ at: number | null }>(
        'SELECT min(ended_at) AS at FROM jobs WHERE state = ? AND ended_at IS NOT NULL',
        state,
      )
      .one();
    consider(row.at ?? undefined, q.retentionMs(kind));
  }
  consider(oldestTask(q), REMEMBER_MS);
  consider(oldestAnswer(q), REMEMBER_ANSWER_MS);
  return next;
}
