/**
 * The limits in a claim. It takes a job only if its key has room at that moment. Without room, the job's policy decides
 * its place. A job that waits for the same key goes before one that became available later. All is counted in the
 * transaction of the claim.
 */

import type { OnLimit } from '../../job/limits/policy';
import type { Active } from '../store/active';
import { compare, type Position } from '../store/due-index';
import type { JobRow } from '../store/job-row';
import { move } from '../store/jobs';
import type { Limiter } from '../store/limits/limiter';
import { begunWaiting, firstWaiting, isPaused, limiterOf, parks, policyOf, runningOf } from '../store/limits/place';
import { noteQueueStarts } from '../store/limits/queue-limit';
import type { Configured, Named, QueueParts, Stored } from '../store/parts';
import { positionOf } from '../store/ranks';
import { rowByKey } from '../store/row-lookup';
import { isBegun } from '../store/row-texts';
import { stateOf } from '../store/rows';
import { drop } from './drop';

/** Jobs that are decided upon with one answer of a desk. */
const DECIDED_AT_ONCE = 200;

/** Jobs of a key that one admission lets in at most; more than this only where none of them needs room. */
export const ADMITTED_AT_ONCE = 500;

/** Jobs of a key that a selection has taken, and how many of them start an attempt. */
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
 * Admits as many jobs as the key has room for. Two rows written for each. Those of paused groups take no room: they are
 * let in as they are met, so that others do not wait behind them.
 * @param least this many are admitted even if others are ready for all the room
 * @returns how many were admitted; {@link ADMITTED_AT_ONCE} or more: there may be room for others
 */
export function admit(q: QueueParts, limiter: Limiter, now: number, least = 0): number {
  if (!limiter.mayHaveWaiting) return 0;
  if (!parks(q)) return admitAll(q, limiter, now);
  let [all, count] = [0, 0];
  for (let isCut = true; isCut && all < ADMITTED_AT_ONCE; ) {
    const rows = admitNext(q, limiter, now, least - count);
    const paused = rows.filter((row) => isPaused(q, row)).length;
    all += rows.length;
    count += rows.length - paused;
    isCut = paused > 0;
  }
  return all;
}

function admitNext(q: QueueParts, limiter: Limiter, now: number, least: number): JobRow[] {
  const running = runningOf(q, limiter.key);
  const admitted = admitBegun(q, limiter, running, now);
  if (limiter.room(running, now) === 0) return admitted;
  const [first] = firstWaiting(q, limiter, 1);
  if (!first) return admitted;
  // Others of its group that are ready wait for its end, and would not take the room.
  const isAwaited = q.store.gates.isStrict && first.holds_group !== null;
  const certain = Math.max(least, Number(isAwaited));
  const room = Math.max(limiter.roomToAdmit(first.priority, running, now), certain);
  if (room <= 0) return admitted;
  for (const row of firstWaiting(q, limiter, room)) {
    if (admitted.length >= certain && limiter.roomToAdmit(row.priority, running, now) <= 0) break;
    letInNow(q, row, now);
    admitted.push(row);
  }
  return admitted;
}

/** The queue had groups when these jobs were put behind their key. Now they stand among the others. */
function admitAll(q: QueueParts, limiter: Limiter, now: number): number {
  const rows = firstWaiting(q, limiter, ADMITTED_AT_ONCE);
  for (const row of rows) letInNow(q, row, now);
  return rows.length;
}

/** If starts are counted, jobs that continue do not wait for those that start: admits as many as may run. */
function admitBegun(q: QueueParts, limiter: Limiter, running: number, now: number): JobRow[] {
  const { rate, throttle } = limiter.inForce(now);
  if (!limiter.mayHaveBegun || (!rate && !throttle)) return [];
  const room = limiter.roomToAdmit(Number.NEGATIVE_INFINITY, running, now, true);
  if (room <= 0) return [];
  const rows = begunWaiting(q, limiter, room);
  for (const row of rows) letInNow(q, row, now);
  return rows;
}

function letInNow(q: QueueParts, row: JobRow, now: number): void {
  // If the clock was set back, it waits since a future moment; but it is available.
  const due_at = Math.min(row.waits_since as number, now);
  move(q, row, 'admit', { due_at, waits_since: null }, now);
}

/**
 * The key's desk has nothing for now: jobs that do not wait for it are decided upon when they are claimed. Two rows
 * written for each.
 */
export function decide(q: QueueParts, limiter: Limiter, now: number): void {
  if (limiter.isUndecided(runningOf(q, limiter.key), now)) return;
  if (limiter.isStopped(now) || limiter.room(runningOf(q, limiter.key), now) > 0) return;
  for (const scan of q.store.cursors.all()) {
    for (const { key } of scan.jobsBehind(limiter.key, DECIDED_AT_ONCE)) {
      const row = q.store.leases.active.has(key) ? undefined : rowByKey(q.store, key);
      if (
        row?.ended_at === null &&
        stateOf(row, false, now) === 'available' &&
        actionOf(q, limiter, row, now) !== 'wait'
      ) {
        refuse(q, row, limiter, now);
      }
    }
  }
  if (!limiter.mayHaveWaiting) return;
  for (const row of firstWaiting(q, limiter, DECIDED_AT_ONCE)) {
    if (!isBegun(row) && policyOf(q, row)?.on_limit !== 'wait') letInNow(q, row, now);
  }
}

/** The job that waits first for a key. */
type First = Pick<JobRow, 'priority' | 'type'> & { position: Position };

/** One selection of jobs. */
export class LimitCheck {
  /** Jobs taken by this selection, not counted anywhere yet. */
  private readonly taken = new Map<string, Taken>();
  private readonly refused: JobRow[] = [];
  /** The first waiting job, by key, as far as it was looked up. */
  private readonly first = new Map<string, First | undefined>();
  /** Keys of jobs that must let others pass, and how many of those must be admitted. */
  private readonly overtaken = new Map<Limiter, number>();

  constructor(
    private readonly q: QueueParts,
    private readonly now: number,
  ) {}

  /**
   * Undefined: the job's key has room for it. Else whether it waits where it was read; {@link setAside} handles those
   * that are passed.
   */
  judge(row: JobRow): 'wait' | 'pass' | undefined {
    const { q, now } = this;
    if (row.limit_key === null || roomFor(q, row, now, this.taken.get(row.limit_key)) > 0) return undefined;
    if (!parks(q) && actionOf(q, limiterOf(q, row), row, now) === 'wait') {
      q.store.limiters.touch(row.limit_key);
      return 'wait';
    }
    this.refused.push(row);
    return 'pass';
  }

  /** The job is taken. */
  count(row: JobRow): void {
    if (row.limit_key === null) return;
    const { runs, starts } = this.taken.get(row.limit_key) ?? { runs: 0, starts: 0 };
    this.taken.set(row.limit_key, { runs: runs + 1, starts: starts + (isBegun(row) ? 0 : 1) });
  }

  /**
   * Must a job that waits for the same key go first? Then {@link letIn} admits it. Admission leaves a job behind its
   * key while others are ready for all the room. A delayed or retried job becomes available without admission. A
   * continuing job has begun before both.
   */
  isOvertaking(row: JobRow): boolean {
    if (row.limit_key === null || isBegun(row)) return false;
    const limiter = limiterOf(this.q, row);
    const first = this.firstOf(limiter);
    if (!first || first.priority < row.priority) return false;
    const position = positionOf({ ...row, due_at: row.due_at ?? row.enqueued_at });
    if (first.priority === row.priority && compare(first.position, position) > 0) return false;
    // Ready jobs may be of types that no worker here takes. A consumer of this job takes another one of its type.
    const least = first.type === row.type || !parks(this.q) ? 1 : 0;
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

  /** Moves jobs without room out of the way of the others. @returns how many */
  setAside(): number {
    const refused = this.refused.splice(0);
    for (const row of refused) refuse(this.q, row, limiterOf(this.q, row), this.now);
    return refused.length;
  }

  /** Admits the jobs that precede others of their key. @returns whether there were any: another selection takes them */
  letIn(): boolean {
    let count = 0;
    for (const [limiter, least] of this.overtaken) count += admit(this.q, limiter, this.now, least);
    return count > 0;
  }
}

/** What becomes of a job whose turn has come, and whose limit is reached; `wait`: until its key has room again. */
function actionOf(q: QueueParts, limiter: Limiter, row: JobRow, now: number): OnLimit {
  const onLimit = policyOf(q, row)?.on_limit ?? 'wait';
  if (onLimit === 'wait' || isBegun(row)) return 'wait';
  // An operator who stops a key wants to run its jobs later, not to lose them.
  const running = runningOf(q, limiter.key);
  if (limiter.isStopped(now) || limiter.isUndecided(running, now)) return 'wait';
  // How long attempts run is unknown: for a concurrency slot it waits.
  if (onLimit === 'reschedule' && (isCrowded(q, limiter, now) || !limiter.mayBook(now))) return 'wait';
  return onLimit;
}

function isCrowded(q: QueueParts, limiter: Limiter, now: number): boolean {
  const { concurrency } = limiter.inForce(now);
  return concurrency !== undefined && runningOf(q, limiter.key) >= concurrency && limiter.room(0, now) > 0;
}

/** A job whose turn has come finds its limit reached. Two rows written. */
function refuse(q: QueueParts, row: JobRow, limiter: Limiter, now: number): void {
  const action = actionOf(q, limiter, row, now);
  if (action === 'wait') move(q, row, 'park', { due_at: null, waits_since: row.due_at ?? row.enqueued_at }, now);
  else if (action === 'reschedule') reschedule(q, row, limiter, now);
  else drop(q, row, 'rate_limited', now);
}

/** It is scheduled for a moment of its own. */
function reschedule(q: QueueParts, row: JobRow, limiter: Limiter, now: number): void {
  const at = limiter.book(now);
  if (at === undefined) return;
  limiter.isChanged = true;
  q.store.limiters.save(limiter);
  move(q, row, 'defer', { availableAt: at }, now);
}

/** A job that was claimed. */
interface Started {
  row: JobRow;
  active: Active;
}

/**
 * Counts the starts of these claimed jobs, except jobs that continue after a sleep or a signal. One row written for
 * each key whose starts are counted, and one for all groups with a rate.
 */
export function noteStarts(q: Named & Stored & Configured, claimed: readonly Started[], now: number): void {
  const counts = new Map<string, number>();
  let starts = 0;
  const groups: string[] = [];
  for (const { row, active } of claimed) {
    const hasBegun = isBegun(row);
    const counted = hasBegun ? 0 : 1;
    starts += counted;
    if (!hasBegun && active.group !== undefined) groups.push(active.group);
    if (row.limit_key === null) continue;
    if (row.due_at !== null) limiterOf(q, row).leaves(row.priority, hasBegun);
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
