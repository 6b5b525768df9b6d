/**
 * Admission: which limited jobs are in the due index, where claims read.
 *
 *     enqueued, retried, given back ──▶ room? ──yes──▶ due index ──▶ claimed, if there still is room
 *                                         │no             ▲  │else
 *                                         ▼               │  ▼
 *                                  waits for its key ─────┘ waits, is rescheduled or dropped (jobs/limit-check.ts)
 *                                     room again: an attempt of the key ended, a window opened, limits were raised
 *
 * A job that waits for its key costs nothing: it is read only when its key admits it. So ten thousand of them delay no
 * other job. The claim decides in its own transaction whether there is room; admission only hides jobs without a chance
 * from it.
 *
 * So it may admit too many (after this object lost its memory), at the price of rows, but never too few. Whatever makes
 * room, or takes away a ready job, touches the key. Touched keys are processed at the end of each operation, in the
 * same transaction.
 */
import type { Holder } from '../../../allowance/holder';
import { ADMITTED_AT_ONCE, admit } from '../../jobs/limit-check';
import { forgetEnded } from '../../store/limits/changes';
import type { Limiter } from '../../store/limits/limiter';
import { FORGET_AFTER_MS, firstWaiting, runningOf } from '../../store/limits/place';
import type { QueueParts, Stored } from '../../store/parts';

/** Keys looked at in one transaction. */
const KEYS_PER_TURN = 200;

/**
 * When the key must be looked at without any other reason: its window opens for waiting jobs, or its override ends. An
 * open window matters only to a job that waits while others, of lower priority, are ready: they would be taken before
 * it.
 * @param isCut it was not admitted all that may be: the rest is, in the next turn
 */
function scheduleCheck(q: QueueParts, limiter: Limiter, now: number, isCut: boolean): void {
  let at = isCut ? now : Number.POSITIVE_INFINITY;
  const grows = limiter.holder ? now : (limiter.resetsAt(now) ?? now);
  const ends = q.store.limiters.overrides.get(limiter.name)?.expires_at ?? now;
  if (limiter.holder) lookAtAllowance(q, limiter, limiter.holder, now);
  const [first] = (grows > now || ends > now) && limiter.mayHaveWaiting ? firstWaiting(q, limiter, 1) : [];
  if (first) {
    const opens = limiter.mayHaveReadyBelow(first.priority) ? grows : (limiter.opensAt(now) ?? now);
    if (opens > now) at = Math.min(at, opens);
    if (ends > now) {
      q.store.limiters.overrides.awaitEnd(limiter.key, ends);
      q.wake.at(ends);
    }
  }
  const isOver = limiter.checkAt === null || limiter.checkAt <= now;
  if (!Number.isFinite(at)) {
    if (!isOver) return;
    if (isForgettable(q, limiter, now)) {
      q.store.limiters.remove(limiter);
      return;
    }
    limiter.setCheck(now + FORGET_AFTER_MS);
  } else if (isOver || at < (limiter.checkAt as number)) {
    limiter.setCheck(at);
  }
  q.store.limiters.save(limiter);
  if (limiter.checkAt !== null) q.wake.at(limiter.checkAt);
}

/**
 * Does the queue need a part of the key's allowance? Not while jobs are ready: what it gets would end unused where
 * no worker takes them.
 */
function lookAtAllowance(q: QueueParts, limiter: Limiter, holder: Holder, now: number): void {
  const { allowances } = q.store;
  const mayNeed = !limiter.hasReady && limiter.mayHaveWaiting && !limiter.isStopped(now);
  holder.needs = mayNeed && firstWaiting(q, limiter, 1).length > 0;
  const looksAt = q.config.paused ? Number.POSITIVE_INFINITY : holder.looksAt(allowances.situation(limiter.key, now));
  holder.lookAt = Math.max(looksAt, q.config.shutUntil);
  allowances.stir(limiter.key);
  q.wake.at(holder.lookAt);
}

/** Does memory know nothing that its row lacks? Ready jobs carry their limits with them. */
function isForgettable(q: Stored, limiter: Limiter, now: number): boolean {
  if (!limiter.isStored || limiter.hasReady || runningOf(q, limiter.key) > 0) return false;
  if (limiter.holder && !limiter.holder.isEmpty) {
    limiter.holder.letGo(now);
    return false;
  }
  if (!limiter.usage.isEmpty(limiter.inForce(now), now)) return false;
  return !limiter.mayHaveWaiting || firstWaiting(q, limiter, 1).length === 0;
}

/** Processes the keys that the last operation touched. */
export function seeToTouched(q: QueueParts, now: number): void {
  if (q.store.leases.hasFreed) {
    const { keys, wasFull } = q.store.leases.takeFreed();
    for (const key of keys) q.store.limiters.touch(key);
    // A worker may wait for a place in the queue.
    if (wasFull || q.config.settings.rate_limit?.concurrency !== undefined) q.wake.callWorkers();
  }
  for (const group of q.store.gates.takeFreed()) {
    for (const scan of q.store.cursors.all()) scan.freed(group);
    q.wake.callWorkers();
  }
  for (const key of q.store.limiters.takeTouched()) {
    const limiter = q.store.limiters.find(key);
    if (!limiter) continue;
    scheduleCheck(q, limiter, now, admit(q, limiter, now) >= ADMITTED_AT_ONCE);
  }
}

/** Groups may start a job again whose rate lets them. */
export function wakeGroups(q: QueueParts, now: number): void {
  if (!q.store.gates.rules || now < q.store.cursors.nextGroup()) return;
  for (const scan of q.store.cursors.all()) scan.wakeGroups(now);
  q.wake.callWorkers();
}

/** Looks at the keys whose moment has come. */
export function lookAtDueKeys(q: QueueParts, now: number): void {
  if (now < q.store.limiters.nextCheck) return;
  const ended = q.store.limiters.overrides.takeEnded(now, KEYS_PER_TURN);
  forgetEnded(q, ended, now);
  const awaited = q.store.allowances.due(now);
  for (const key of new Set([...ended, ...q.store.limiters.due(now, KEYS_PER_TURN), ...awaited])) {
    const limiter = q.store.limiters.find(key);
    if (!limiter) continue;
    scheduleCheck(q, limiter, now, admit(q, limiter, now) >= ADMITTED_AT_ONCE);
  }
  q.store.limiters.flush();
  q.store.limiters.readNextCheck();
  // Many keys at once are processed in turns.
  q.wake.at(q.store.limiters.nextCheck);
}
