/**
 * What happens once a key may have room: an attempt of it ended, a window opened, limits were raised.
 *
 * A job whose key has no room costs nothing. Each consumer passes over it when it comes to it, and remembers it in a
 * lane of the key ({@link KeyLanes}). So ten thousand of them delay no other job. Here these lanes are opened again,
 * and their jobs are taken in the same order as all others. The claim decides in its own transaction whether there is
 * room, so to open a lane too often costs time, and nothing else.
 *
 * Where groups take turns, such a job has a row of its own, out of every index that a claim reads, and is admitted:
 *
 *     its turn comes ──▶ room? ──yes──▶ claimed
 *                          │no             ▲
 *                          ▼               │
 *                   waits for its key ──▶ due index      (jobs/limit-check.ts)
 *
 * Whatever makes room, takes away a ready job, or finds no room touches the key. Touched keys are processed at the end
 * of each operation, in the same transaction.
 */
import type { Holder } from '../../../allowance/holder';
import { ADMITTED_AT_ONCE, admit } from '../../jobs/limit-check';
import { forgetEnded } from '../../store/limits/changes';
import type { Limiter } from '../../store/limits/limiter';
import { FORGET_AFTER_MS, firstWaiting, runningOf } from '../../store/limits/place';
import { waitingUnder } from '../../store/limits/waiting';
import type { QueueParts, Stored } from '../../store/parts';

/** Keys looked at in one transaction. */
const KEYS_PER_TURN = 200;

/** What a look at a key has found. */
interface Looked {
  /** Not all were admitted that may be: the rest is, in the next turn. */
  isCut: boolean;
  /** Do jobs wait that name the key? */
  isWaitedFor: () => boolean;
}

/**
 * When the key must be looked at without any other reason: its window opens for waiting jobs, or its override ends. An
 * open window matters only to a job that waits while others, of lower priority, are ready: they would be taken before
 * it.
 */
function scheduleCheck(q: QueueParts, limiter: Limiter, now: number, { isCut, isWaitedFor }: Looked): void {
  let at = isCut ? now : Number.POSITIVE_INFINITY;
  const grows = limiter.holder ? now : (limiter.resetsAt(now) ?? now);
  const ends = q.store.limiters.overrides.get(limiter.name)?.expires_at ?? now;
  if (limiter.holder) lookAtAllowance(q, limiter, limiter.holder, now);
  const [first] = (grows > now || ends > now) && limiter.mayHaveWaiting ? firstWaiting(q, limiter, 1) : [];
  if (first || q.store.cursors.waitFor(limiter.key)) {
    const isBelow = first !== undefined && limiter.mayHaveReadyBelow(first.priority);
    const opens = isBelow ? grows : (limiter.opensAt(now) ?? now);
    if (opens > now) at = Math.min(at, opens);
    if (ends > now) {
      q.store.limiters.overrides.awaitEnd(limiter.key, ends);
      q.wake.at(ends);
    }
  }
  const isOver = limiter.checkAt === null || limiter.checkAt <= now;
  if (!Number.isFinite(at)) {
    if (!isOver) return;
    if (isForgettable(q, limiter, now) && !isWaitedFor()) {
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
  const mayWait = !limiter.hasReady && limiter.mayHaveWaiting;
  if (limiter.room(runningOf(q, limiter.key), now) > 0) limiter.hasArrived = false;
  const isRead = limiter.hasArrived || q.store.cursors.waitFor(limiter.key);
  const isAwaited = isRead || (mayWait && firstWaiting(q, limiter, 1).length > 0);
  holder.needs = isAwaited && !limiter.isStopped(now);
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
  lookAt(q, q.store.limiters.takeTouched(), now);
}

function lookAt(q: QueueParts, keys: readonly string[], now: number): void {
  let waiting: ReadonlyMap<string, unknown> | undefined;
  const waitingJobs = () => {
    waiting ??= waitingUnder(q, new Set(keys), now);
    return waiting;
  };
  for (const key of keys) lookAtKey(q, key, () => waitingJobs().has(key), now);
}

function lookAtKey(q: QueueParts, key: string, isWaitedFor: () => boolean, now: number): void {
  const limiter = q.store.limiters.find(key);
  const isCut = limiter !== undefined && admit(q, limiter, now) >= ADMITTED_AT_ONCE;
  const running = runningOf(q, key);
  // A key that is not known is made again from the first job that names it.
  const [starts, runs] = limiter ? [limiter.room(running, now), limiter.room(running, now, true)] : [1, 1];
  let isNew = false;
  for (const scan of q.store.cursors.all()) if (scan.opens(key, starts, runs)) isNew = true;
  if (isNew) q.wake.callWorkers();
  if (limiter) scheduleCheck(q, limiter, now, { isCut, isWaitedFor });
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
  lookAt(q, [...new Set([...ended, ...q.store.limiters.due(now, KEYS_PER_TURN), ...awaited])], now);
  q.store.limiters.flush();
  q.store.limiters.readNextCheck();
  // Many keys at once are processed in turns.
  q.wake.at(q.store.limiters.nextCheck);
}
