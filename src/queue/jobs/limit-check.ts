/**
 * Limits in a claim: a job is taken only if its key has room then; else its policy decides. Jobs of one key go in
 * order of availability. All is counted in the claim's transaction.
 */

import type { OnLimit } from '../../job/limits/policy';
import type { Active } from '../store/active';
import { isBegun, type JobRow } from '../store/job-row';
import { move } from '../store/jobs';
import type { Limiter } from '../store/limits/limiter';
import { limiterOf, policyOf, runningOf } from '../store/limits/place';
import { noteQueueStarts } from '../store/limits/queue-limit';
import type { Named, QueueParts, Stored, StoredQueue } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { entersDueIndex } from '../store/row-places';
import { stateOf } from '../store/rows';
import { drop } from './expire';

interface Taken {
  runs: number;
  starts: number;
}

/** How many like this job its key has room for now; infinite if no key limits it. */
export function roomFor(q: Named & Stored, row: JobRow, now: number, taken: Taken = { runs: 0, starts: 0 }): number {
  const { limit_key: key } = row;
  if (key === null) return Number.POSITIVE_INFINITY;
  const limiter = limiterOf(q, row);
  const running = runningOf(q, key);
  const toRun = limiter.room(running, now, true) - taken.runs;
  return isBegun(row) ? toRun : Math.min(toRun, limiter.room(running, now) - taken.starts);
}

/**
 * The key's desk has nothing for now: decides about jobs that do not wait for it when claimed, up to the first that
 * does. Two rows each. @returns whether the next turn must continue
 */
export function decide(q: QueueParts, limiter: Limiter, now: number): boolean {
  if (limiter.isStopped(now) || limiter.room(runningOf(q, limiter.key), now) > 0) return false;
  const { turn, leases, cursors } = q.store;
  let left = turn.share;
  const isOver = (key: number): boolean => {
    if (left <= 0) return false;
    const row = leases.active.has(key) ? undefined : rowByKey(q.store, key);
    if (row?.ended_at === null && stateOf(row, false, now) === 'available') {
      if (actionOf(q, limiter, row, now) === 'wait') return false;
      refuse(q, row, limiter, now);
    }
    turn.spend({ changes: 1 });
    left = turn.isSpent ? 0 : left - 1;
    return true;
  };
  for (const scan of cursors.all()) scan.dropBehind(limiter.key, isOver);
  return left <= 0;
}

export class LimitCheck {
  /** Jobs taken by this selection, not counted anywhere yet. */
  private readonly taken = new Map<string, Taken>();
  private readonly refused: JobRow[] = [];

  constructor(
    private readonly q: QueueParts,
    private readonly now: number,
  ) {}

  /** Undefined: the key has room. Else whether the job waits where it was read; {@link setAside} handles the rest. */
  judge(row: JobRow): 'wait' | 'pass' | undefined {
    const { q, now } = this;
    if (row.limit_key === null || roomFor(q, row, now, this.taken.get(row.limit_key)) > 0) return undefined;
    if (actionOf(q, limiterOf(q, row), row, now) === 'wait') {
      q.store.limiters.touch(row.limit_key);
      return 'wait';
    }
    this.refused.push(row);
    return 'pass';
  }

  count(row: JobRow): void {
    if (row.limit_key === null) return;
    const { runs, starts } = this.taken.get(row.limit_key) ?? { runs: 0, starts: 0 };
    this.taken.set(row.limit_key, { runs: runs + 1, starts: starts + (isBegun(row) ? 0 : 1) });
  }

  /** Are as many put aside as one selection may? Others may wait behind such a crowd, for the next one. */
  get isFull(): boolean {
    return this.refused.length >= this.q.store.turn.share;
  }

  /** Schedules or discards those that do not wait for room. @returns were they {@link isFull} */
  setAside(): boolean {
    const { refused, isFull, q } = this;
    for (const row of refused) refuse(q, row, limiterOf(q, row), this.now);
    q.store.turn.spend({ changes: refused.splice(0).length });
    return isFull;
  }
}

/** What becomes of a job whose turn has come, and whose limit is reached; `wait`: until its key has room again. */
function actionOf(q: QueueParts, limiter: Limiter, row: JobRow, now: number): OnLimit {
  const onLimit = policyOf(q, row)?.on_limit ?? 'wait';
  if (onLimit === 'wait' || isBegun(row)) return 'wait';
  // An operator who stops a key wants to run its jobs later, not to lose them.
  if (limiter.isStopped(now) || limiter.isUndecided(runningOf(q, limiter.key), now)) return 'wait';
  // How long attempts run is unknown: for a concurrency slot it waits.
  if (onLimit === 'reschedule' && (isCrowded(q, limiter, now) || !limiter.mayBook(now))) return 'wait';
  return onLimit;
}

function isCrowded(q: QueueParts, limiter: Limiter, now: number): boolean {
  const { concurrency } = limiter.inForce(now);
  return concurrency !== undefined && runningOf(q, limiter.key) >= concurrency && limiter.room(0, now) > 0;
}

/** The limit is reached when a job's turn comes. Two rows written, unless others started meanwhile: then it waits. */
function refuse(q: QueueParts, row: JobRow, limiter: Limiter, now: number): void {
  const action = actionOf(q, limiter, row, now);
  if (action === 'drop') drop(q, row, 'rate_limited', now);
  else if (action === 'wait' || !reschedule(q, row, limiter, now)) entersDueIndex(q, row, now);
}

/** It is scheduled for a moment of its own. @returns whether there is any */
function reschedule(q: QueueParts, row: JobRow, limiter: Limiter, now: number): boolean {
  const at = limiter.book(now);
  if (at === undefined) return false;
  limiter.isChanged = true;
  q.store.limiters.save(limiter);
  move(q, row, 'defer', { availableAt: at }, now);
  return true;
}

interface Started {
  row: JobRow;
  active: Active;
}

/** Counts the starts of claimed jobs, except continued ones. One row for each counted key, one for all rated groups. */
export function noteStarts(q: StoredQueue, claimed: readonly Started[], now: number): void {
  const counts = new Map<string, number>();
  let starts = 0;
  const groups: string[] = [];
  for (const { row, active } of claimed) {
    const hasBegun = isBegun(row);
    const counted = hasBegun ? 0 : 1;
    starts += counted;
    if (!hasBegun && active.group !== undefined) groups.push(active.group);
    if (row.limit_key === null) continue;
    counts.set(row.limit_key, (counts.get(row.limit_key) ?? 0) + counted);
  }
  for (const [key, count] of counts) {
    const limiter = q.store.limiters.get(key);
    if (count > 0) limiter.started(count, now);
    q.store.limiters.save(limiter);
    q.store.limiters.touch(key);
  }
  noteQueueStarts(q, starts, now);
  q.store.gates.started(groups, now);
}
