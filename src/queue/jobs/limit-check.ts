/**
 * The limits as a claim sees them: it takes a job only if its key has room at that moment, and what it finds without room
 * it puts where the job's policy says. A job that became available later than one that waits for the same key lets that one
 * go first. Counted in the transaction of the claim.
 */

import type { JobRow } from '../store/columns';
import { compare, type Position } from '../store/due-index';
import { move } from '../store/jobs';
import { positionOf } from '../store/lanes';
import type { Limiter } from '../store/limits/limiter';
import { firstWaiting, limiterOf, policyOf, runningOf } from '../store/limits/place';
import { noteQueueStarts } from '../store/limits/queue-limit';
import type { QueueState } from '../store/state';
import { drop } from './drop';

/** How many jobs of the job's key may start now; infinite when no key limits it. */
export function roomFor(q: QueueState, row: JobRow, now: number): number {
  if (row.limit_key === null) return Number.POSITIVE_INFINITY;
  return limiterOf(q, row).room(runningOf(q, row.limit_key), now);
}

/**
 * Lets in as many jobs as the key has room for. Two rows written for each.
 * @param least so many are let in even if others stand ready for all the room there is
 * @returns how many were let in
 */
export function admit(q: QueueState, limiter: Limiter, now: number, least = 0): number {
  if (!limiter.mayHaveWaiting) return 0;
  const running = runningOf(q, limiter.key);
  if (limiter.room(running, now) === 0) return 0;
  const [first] = firstWaiting(q, limiter, 1);
  if (!first) return 0;
  const room = Math.max(limiter.roomToAdmit(first.priority, running, now), least);
  if (room <= 0) return 0;
  let count = 0;
  for (const row of firstWaiting(q, limiter, room)) {
    if (count >= least && limiter.roomToAdmit(row.priority, running, now) <= 0) break;
    // Where the clock was set back, it waits since a moment to come; but it is available.
    const due_at = Math.min(row.waits_since as number, now);
    move(q, row, 'admit', { due_at, waits_since: null }, now);
    count++;
  }
  return count;
}

/** The job that waits first for a key. */
type First = Pick<JobRow, 'priority' | 'type'> & { position: Position };

/** One selection of jobs. */
export class LimitCheck {
  /** Jobs taken by this selection, not counted anywhere yet. */
  private readonly taken = new Map<string, number>();
  private readonly refused: JobRow[] = [];
  /** Who waits first, by key, as far as it was asked. */
  private readonly first = new Map<string, First | undefined>();
  /** Keys of jobs that others go before, and how many of those must be let in. */
  private readonly overtaken = new Map<Limiter, number>();

  constructor(
    private readonly q: QueueState,
    private readonly now: number,
  ) {}

  /** Has the job's key room for it? If not, the job is dealt with by {@link setAside}. */
  allows(row: JobRow): boolean {
    if (row.limit_key === null) return true;
    if (roomFor(this.q, row, this.now) > (this.taken.get(row.limit_key) ?? 0)) return true;
    this.refused.push(row);
    return false;
  }

  /** The job is taken. */
  count(row: JobRow): void {
    if (row.limit_key !== null) this.taken.set(row.limit_key, (this.taken.get(row.limit_key) ?? 0) + 1);
  }

  /**
   * Must a job that waits for the same key go first? It is let in by {@link letIn}. Admission leaves a job behind its key
   * while others stand ready for all the room there is; one that was delayed or retried becomes available without admission.
   */
  isOvertaking(row: JobRow): boolean {
    if (row.limit_key === null) return false;
    const limiter = limiterOf(this.q, row);
    const first = this.firstOf(limiter);
    if (!first || first.priority < row.priority) return false;
    if (first.priority === row.priority && compare(first.position, positionOf(row)) > 0) return false;
    // What stands ready may be of types that nobody here takes. Whoever takes this job takes another one of its type.
    const least = first.type === row.type ? 1 : 0;
    const running = runningOf(this.q, limiter.key);
    if (Math.max(limiter.roomToAdmit(first.priority, running, this.now), least) <= 0) return false;
    this.overtaken.set(limiter, least);
    return true;
  }

  private firstOf(limiter: Limiter): First | undefined {
    if (!this.first.has(limiter.key)) {
      const [row] = limiter.mayHaveWaiting ? firstWaiting(this.q, limiter, 1) : [];
      const position = row && positionOf({ ...row, due_at: row.waits_since });
      this.first.set(limiter.key, row && position && { priority: row.priority, type: row.type, position });
    }
    return this.first.get(limiter.key);
  }

  /** Moves what had no room out of the way of the others. @returns how many jobs that were */
  setAside(): number {
    const refused = this.refused.splice(0);
    for (const row of refused) refuse(this.q, row, this.now);
    return refused.length;
  }

  /** Lets in the jobs that go before others of their key. @returns whether there were any: another selection takes them */
  letIn(): boolean {
    let count = 0;
    for (const [limiter, least] of this.overtaken) count += admit(this.q, limiter, this.now, least);
    return count > 0;
  }
}

/** A job whose turn has come finds its limit reached. Two rows written. */
function refuse(q: QueueState, row: JobRow, now: number): void {
  const limiter = limiterOf(q, row);
  const onLimit = policyOf(q, row)?.on_limit ?? 'wait';
  // Whoever stops a key wants to run its jobs later, not to lose them.
  if (limiter.isStopped(now) || onLimit === 'wait') park(q, row, now);
  else if (onLimit === 'reschedule') reschedule(q, row, limiter, now);
  else drop(q, row, 'rate_limited', now);
}

/** It waits until its key has room again. */
function park(q: QueueState, row: JobRow, now: number): void {
  move(q, row, 'park', { due_at: null, waits_since: row.due_at }, now);
}

/** It is scheduled for a moment of its own. How long attempts run nobody knows: for a place among them it waits. */
function reschedule(q: QueueState, row: JobRow, limiter: Limiter, now: number): void {
  const limits = limiter.inForce(now);
  const { concurrency } = limits;
  const isCrowded = concurrency !== undefined && runningOf(q, limiter.key) >= concurrency;
  const at = isCrowded && limiter.room(0, now) > 0 ? undefined : limiter.usage.book(limits, now);
  if (at === undefined) {
    park(q, row, now);
    return;
  }
  limiter.isChanged = true;
  q.limiters.save(limiter);
  move(q, row, 'defer', { availableAt: at }, now);
}

/** These jobs have been claimed: their starts count. One row written for each key whose starts are counted. */
export function noteStarts(q: QueueState, rows: readonly JobRow[], now: number): void {
  const counts = new Map<string, number>();
  for (const row of rows) {
    if (row.limit_key === null) continue;
    limiterOf(q, row).leaves(row.priority);
    counts.set(row.limit_key, (counts.get(row.limit_key) ?? 0) + 1);
  }
  for (const [key, count] of counts) {
    const limiter = q.limiters.get(key);
    limiter.started(count, now);
    q.limiters.save(limiter);
    q.limiters.touch(key);
  }
  noteQueueStarts(q, rows.length, now);
}
