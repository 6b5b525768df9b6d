/**
 * Admission: which limited jobs stand where claims read.
 *
 *     enqueued, retried, given back ──▶ room? ──yes──▶ due index ──▶ claimed, if there still is room
 *                                         │no             ▲  │else
 *                                         ▼               │  ▼
 *                                  waits for its key ─────┘ waits, is rescheduled or dropped (judge.ts)
 *                                     room again: an attempt of the key ended, a window opened, limits were raised
 *
 * A job that waits for its key costs nothing: it is read when its key admits it and not before, so ten thousand of them
 * are in nobody's way. Whether there is room is judged for good by the claim, in its own transaction; admission only keeps
 * the jobs that have no chance out of its sight. It may therefore admit too many (after this object lost its memory), at
 * the price of rows, but never too few: whatever makes room, or takes away a job that stood ready, touches the key, and
 * touched keys are seen to at the end of each operation, in the same transaction.
 */
import { holds } from '../../../job/limits/overrides';
import type { LimitPolicy } from '../../../job/limits/policy';
import { readLimitPolicy } from '../../../job/limits/policy';
import type { QueueState } from '../../state';
import { entersDueIndex } from '../due-index';
import { bodyOf, type JobRow } from '../rows';
import type { Limiter } from './limiter';
import { forgetEnded } from './overrides';

/** Where a waiting job stands: in the due index, or behind its key. */
export type Place = Pick<JobRow, 'due_at' | 'waits_since'>;

/** A key that nobody used for so long is forgotten, ms. */
export const FORGET_AFTER_MS = 24 * 3_600_000;

/** Keys looked at in one transaction. */
const KEYS_PER_TURN = 200;

/** The limits that a stored job carries; undefined when it has none that can be read. */
export function policyOf(q: QueueState, row: Pick<JobRow, 'body' | 'type'>): LimitPolicy | undefined {
  const written = bodyOf(row).rate_limit;
  if (written === undefined) return undefined;
  try {
    return readLimitPolicy(written, 'rate_limit', q.name);
  } catch {
    return undefined;
  }
}

/** The key of a stored job. One that was forgotten is made anew from what the job says. */
export function limiterOf(q: QueueState, row: Pick<JobRow, 'limit_key' | 'body' | 'type'>): Limiter {
  const key = row.limit_key as string;
  const known = q.limiters.find(key);
  if (known) return known;
  const limiter = q.limiters.get(key);
  limiter.limits = policyOf(q, row)?.limits ?? {};
  return limiter;
}

/** Attempts of this key that run. */
export function runningOf(q: QueueState, key: string): number {
  return q.leases.runningByKey.get(key) ?? 0;
}

/** A job with these limits arrives: its key allows from now on what the newest job says. */
export function learn(q: QueueState, policy: LimitPolicy, now: number): void {
  const { key, limits } = policy;
  const limiter = q.limiters.get(key);
  if (limits && JSON.stringify(limits) !== JSON.stringify(limiter.limits)) {
    limiter.limits = limits;
    limiter.isChanged = true;
    q.limiters.touch(key);
  }
  if (limiter.checkAt === null && !limiter.ownOverride) {
    limiter.setCheck(now + FORGET_AFTER_MS);
    q.wake(now + FORGET_AFTER_MS);
  }
  q.limiters.save(limiter);
}

/**
 * Where a job stands that becomes available at `dueAt`.
 * @param policy the job's limits, if the caller has them; else they are read from its body
 */
export function place(
  q: QueueState,
  row: Pick<JobRow, 'limit_key' | 'priority' | 'body' | 'type'>,
  dueAt: number,
  now: number,
  policy?: LimitPolicy,
): Place {
  const ready = { due_at: dueAt, waits_since: null };
  if (row.limit_key === null || dueAt > now) return ready;
  // What a limit does to the others is decided when their turn comes.
  if ((policy ?? policyOf(q, row))?.on_limit !== 'wait') return ready;
  const waiting = { due_at: null, waits_since: dueAt };
  const limiter = limiterOf(q, row);
  if (limiter.roomToAdmit(row.priority, runningOf(q, row.limit_key), now) <= 0) return waiting;
  const first = limiter.mayHaveWaiting ? firstWaiting(q, limiter, 1)[0] : undefined;
  return first && first.priority >= row.priority ? waiting : ready;
}

/** A row was written that waits, in the due index or behind its key: whoever has to know learns of it. */
export function nowWaits(q: QueueState, row: JobRow, now: number): void {
  if (row.waits_since !== null) {
    const limiter = limiterOf(q, row);
    limiter.mayHaveWaiting = true;
    q.limiters.touch(limiter.key);
    return;
  }
  entersDueIndex(q, row);
  const dueAt = row.due_at as number;
  if (dueAt > now) {
    q.wake(dueAt);
    return;
  }
  if (row.limit_key !== null) limiterOf(q, row).enters(row.priority);
  q.arrived(now, row.type);
}

/** A job that waited, and did not run, goes away: cancelled, expired, removed, changed. */
export function waitsNoMore(q: QueueState, row: Pick<JobRow, 'limit_key' | 'due_at' | 'priority'>): void {
  if (row.limit_key === null || row.due_at === null) return;
  q.limiters.find(row.limit_key)?.leaves(row.priority);
  q.limiters.touch(row.limit_key);
}

type Waiting = Pick<JobRow, 'key' | 'priority' | 'waits_since' | 'attempt' | 'type'>;

/** The jobs that wait for the key, in the order in which they are to run. */
function firstWaiting(q: QueueState, limiter: Limiter, limit: number): Waiting[] {
  const rows = q.sql
    .exec<Waiting>(
      `SELECT key, priority, waits_since, attempt, type FROM jobs
       WHERE limit_key = ? AND waits_since IS NOT NULL AND state = 0
       ORDER BY priority DESC, waits_since, attempt, key LIMIT ?`,
      limiter.key,
      limit,
    )
    .toArray();
  if (rows.length === 0) limiter.mayHaveWaiting = false;
  return rows;
}

/** Lets in as many jobs as the key has room for. Two rows written for each. */
function admit(q: QueueState, limiter: Limiter, now: number): void {
  if (!limiter.mayHaveWaiting) return;
  const running = runningOf(q, limiter.key);
  if (limiter.room(running, now) === 0) return;
  const [first] = firstWaiting(q, limiter, 1);
  if (!first) return;
  const room = limiter.roomToAdmit(first.priority, running, now);
  if (room <= 0) return;
  for (const row of firstWaiting(q, limiter, room)) {
    if (limiter.roomToAdmit(row.priority, running, now) <= 0) break;
    q.sql.exec('UPDATE jobs SET due_at = waits_since, waits_since = NULL WHERE key = ?', row.key).toArray();
    entersDueIndex(q, { ...row, due_at: row.waits_since });
    limiter.enters(row.priority);
    q.arrived(now, row.type);
  }
}

/** When the key must be looked at although nothing happens: its window opens for those who wait, its override ends. */
function planCheck(q: QueueState, limiter: Limiter, now: number): void {
  const { ownOverride } = limiter;
  let at = (ownOverride && holds(ownOverride, now) && ownOverride.expires_at) || Number.POSITIVE_INFINITY;
  const opens = limiter.usage.opensAt(limiter.inForce(now)) ?? now;
  const ends = q.limiters.overrides.get(limiter.key)?.expires_at ?? now;
  if ((opens > now || ends > now) && limiter.mayHaveWaiting && firstWaiting(q, limiter, 1).length > 0) {
    if (opens > now) at = Math.min(at, opens);
    if (ends > now) {
      q.limiters.overrides.awaitEnd(limiter.key, ends);
      q.wake(ends);
    }
  }
  const isOver = limiter.checkAt === null || limiter.checkAt <= now;
  if (!Number.isFinite(at)) {
    if (!isOver) return;
    if (!ownOverride && isForgettable(q, limiter, now)) {
      q.limiters.remove(limiter);
      return;
    }
    limiter.setCheck(ownOverride ? null : now + FORGET_AFTER_MS);
  } else if (isOver || at < (limiter.checkAt as number)) {
    limiter.setCheck(at);
  }
  q.limiters.save(limiter);
  if (limiter.checkAt !== null) q.wake(limiter.checkAt);
}

/** Is there nothing that only its row knows? What stands ready carries its limits with it. */
function isForgettable(q: QueueState, limiter: Limiter, now: number): boolean {
  if (!limiter.isStored || limiter.hasReady || runningOf(q, limiter.key) > 0) return false;
  if (!limiter.usage.isEmpty(limiter.inForce(now), now)) return false;
  return !limiter.mayHaveWaiting || firstWaiting(q, limiter, 1).length === 0;
}

/** Sees to the keys that the operation just done has touched. */
export function seeToTouched(q: QueueState, now: number): void {
  if (q.leases.hasFreed) {
    for (const key of q.leases.takeFreed()) q.limiters.touch(key);
    // A place in the queue may be what a worker waits for.
    if (q.settings.rate_limit?.concurrency !== undefined) q.workArrived = true;
  }
  for (const key of q.limiters.takeTouched()) {
    const limiter = q.limiters.find(key);
    if (!limiter) continue;
    admit(q, limiter, now);
    planCheck(q, limiter, now);
  }
}

/** Looks at the keys whose moment has come. */
export function lookAtDueKeys(q: QueueState, now: number): void {
  if (now < q.limiters.nextCheck) return;
  const ended = q.limiters.overrides.takeEnded(now, KEYS_PER_TURN);
  forgetEnded(q, ended, now);
  for (const key of new Set([...ended, ...q.limiters.due(now, KEYS_PER_TURN)])) {
    const limiter = q.limiters.find(key);
    if (!limiter) continue;
    if (limiter.ownOverride && !holds(limiter.ownOverride, now)) {
      limiter.ownOverride = undefined;
      limiter.isChanged = true;
    }
    admit(q, limiter, now);
    planCheck(q, limiter, now);
  }
  q.limiters.flush();
  q.limiters.readNextCheck();
  // Many keys at once are seen to in turns.
  q.wake(q.limiters.nextCheck);
}
