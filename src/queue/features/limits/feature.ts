/**
 * Keys that limit jobs: jobs start when there is room again, a window opens, or an override ends. A job without room
 * costs nothing: consumers pass over it and remember it in a lane (`store/limits/lanes`). Here lanes are opened again;
 * the claim decides in its own transaction whether there is room, so opening too often costs time only.
 *
 * Whatever makes room, takes it, or finds none touches the key; touched keys are processed at the end of each
 * operation.
 */
import type { Holder } from '../../../allowance/holder';
import { derived, type MessageKind } from '../../../durable/outbox-relay';
import { LIMIT_SCOPES, type LimitScope, plainKey, scopedKey } from '../../../job/limits/policy';
import { isFromBefore } from '../../../job/limits/starts';
import type { LeaseAnswer } from '../../../rpc/allowances';
import type { RateLimitView } from '../../../rpc/limits';
import type { Feature, Host } from '../../feature';
import { decide } from '../../jobs/limit-check';
import { type WaitingUnder, waitingUnder } from '../../read/available';
import { forgetEnded } from '../../store/limits/changes';
import type { Limiter, WaitingJobs } from '../../store/limits/limiter';
import { FORGET_AFTER_MS, runningOf } from '../../store/limits/place';
import type { Named, QueueParts, Stored } from '../../store/parts';

export class LimitsFeature implements Feature {
  readonly leases: MessageKind;
  readonly messages: readonly MessageKind[];
  private askedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly host: Host) {
    this.leases = leasing(host);
    this.messages = [this.leases];
  }

  /** During maintenance an open window starts no job. */
  due(): number {
    const { store, config } = this.host.q;
    return Math.max(Math.min(store.limiters.nextCheck, store.cursors.nextGroup()), config.shutUntil);
  }

  before(now: number): void {
    // Otherwise the keys and groups that consumers wait for would wait until the clock has caught up.
    if (isFromBefore(this.askedAt, 0, now)) {
      const { store, wake } = this.host.q;
      for (const key of store.cursors.keysBehind()) store.limiters.touch(key);
      store.cursors.reset();
      wake.callWorkers();
    }
    this.askedAt = now;
    lookAtDueKeys(this.host.q, now);
    wakeGroups(this.host.q, now);
    seeToTouched(this.host.q, now);
  }

  follow(now: number): void {
    seeToTouched(this.host.q, now);
  }
}

/** When the key must be looked at by itself: its window opens for waiting jobs, or its override ends. */
function scheduleCheck(q: QueueParts, limiter: Limiter, now: number, isWaitedFor: (key: string) => boolean): void {
  let at = Number.POSITIVE_INFINITY;
  const ends = q.store.limiters.overrides.get(limiter.name)?.expires_at ?? now;
  if (limiter.holder) lookAtAllowance(q, limiter, limiter.holder, now);
  if (q.store.cursors.waitFor(limiter.key)) {
    const opens = limiter.opensAt(now) ?? now;
    if (opens > now) at = Math.min(at, opens);
    if (ends > now) {
      q.store.limiters.overrides.awaitEnd(limiter.key, ends);
      q.wake.at(ends);
    }
  }
  const isOver = limiter.checkAt === null || limiter.checkAt <= now;
  if (!Number.isFinite(at)) {
    if (!isOver) return;
    if (isForgettable(q, limiter, now) && !isWaitedFor(limiter.key)) {
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
 * Does the queue need a part of the key's allowance? Only while a consumer is there that has read jobs which wait for
 * it, or one has come since the desk's last answer.
 */
function lookAtAllowance(q: QueueParts, limiter: Limiter, holder: Holder, now: number): void {
  const { allowances } = q.store;
  if (limiter.room(runningOf(q, limiter.key), now) > 0) limiter.hasArrived = false;
  const isAwaited = limiter.hasArrived || q.store.cursors.needs(limiter.key, now);
  holder.needs = isAwaited && !limiter.isStopped(now);
  const looksAt = q.config.paused ? Number.POSITIVE_INFINITY : holder.looksAt(allowances.situation(limiter.key, now));
  holder.lookAt = Math.max(looksAt, q.config.shutUntil);
  allowances.mayAsk(limiter.key);
  q.wake.at(holder.lookAt);
}

/** Does memory know nothing that its row lacks? Jobs carry their limits with them. */
function isForgettable(q: Stored, limiter: Limiter, now: number): boolean {
  if (!limiter.isStored || runningOf(q, limiter.key) > 0) return false;
  if (limiter.holder && !limiter.holder.isEmpty) {
    limiter.holder.letGo(now);
    return false;
  }
  return limiter.usage.isEmpty(limiter.inForce(now), now);
}

function seeToTouched(q: QueueParts, now: number): void {
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
  let waiting: WaitingUnder | undefined;
  const isWaitedFor = (key: string): boolean => {
    waiting ??= waitingUnder(q, new Set(keys), now);
    return !waiting.isAll || waiting.counts.has(key);
  };
  for (const key of keys) lookAtKey(q, key, isWaitedFor, now);
}

function lookAtKey(q: QueueParts, key: string, isWaitedFor: (key: string) => boolean, now: number): void {
  const limiter = q.store.limiters.find(key);
  const running = runningOf(q, key);
  // A key that is not known is made again from the first job that names it.
  const [starts, runs] = limiter ? [limiter.room(running, now), limiter.room(running, now, true)] : [1, 1];
  if (q.store.cursors.opens(key, starts, runs)) q.wake.callWorkers();
  if (limiter) scheduleCheck(q, limiter, now, isWaitedFor);
}

/** Groups may start a job again whose rate lets them. */
function wakeGroups(q: QueueParts, now: number): void {
  if (!q.store.gates.rules || now < q.store.cursors.nextGroup()) return;
  for (const scan of q.store.cursors.all()) scan.wakeGroups(now);
  q.wake.callWorkers();
}

function lookAtDueKeys(q: QueueParts, now: number): void {
  if (now < q.store.limiters.nextCheck) return;
  const { limiters, allowances, turn } = q.store;
  const ended = limiters.overrides.takeEnded(now, turn.share);
  forgetEnded(q, ended, now);
  const keys = new Set([...ended, ...limiters.due(now, turn.share), ...allowances.due(now)]);
  turn.spend({ changes: keys.size });
  lookAt(q, [...keys], now);
  limiters.flush();
  limiters.readNextCheck();
  // Many keys at once are processed in turns.
  q.wake.at(limiters.nextCheck);
}

const MAX_KEYS = 10_000;

export const limitKeys = (q: Stored): string[] => [...new Set(q.store.limiters.known(MAX_KEYS).map(plainKey))].sort();

/** Those of these keys that are known, in each scope. */
export function rateLimits(q: Named & Stored, keys: readonly string[], now: number): RateLimitView[] {
  const known = keys.flatMap((key) =>
    LIMIT_SCOPES.flatMap((scope) => {
      const limiter = key === '' ? undefined : q.store.limiters.find(scopedKey(key, scope));
      return limiter ? [{ limiter, scope }] : [];
    }),
  );
  const { counts, isAll } = waitingUnder(q, new Set(known.map(({ limiter }) => limiter.key)), now);
  return known.map(({ limiter, scope }) => ({
    ...view(q, limiter, scope, counts.get(limiter.key), now),
    ...(!isAll && { complete: false as const }),
  }));
}

function view(
  q: Named & Stored,
  limiter: Limiter,
  scope: LimitScope,
  waiting: WaitingJobs | undefined,
  now: number,
): RateLimitView {
  const { key, usage } = limiter;
  const { concurrency, rate, throttle } = limiter.inForce(now);
  const quota = rate ?? throttle;
  const running = runningOf(q, key);
  const resetsAt = limiter.resetsAt(now);
  const override = limiter.overrideAt(now);
  const ownPeriod = (limiter.limits.rate ?? limiter.limits.throttle)?.period_ms;
  return {
    key: limiter.name,
    scope,
    queue: q.name,
    ...(concurrency !== undefined && { concurrency }),
    active: running,
    ...(quota && { limit: quota.limit, period_ms: quota.period_ms }),
    ...(!rate && throttle && { throttled: true as const }),
    current_count: usage.startsIn(quota, now),
    ...(resetsAt !== undefined && { window_resets_at: resetsAt }),
    waiting: waiting ? limiter.withoutRoom(waiting, running, now) : 0,
    ...(ownPeriod !== undefined && { own_period_ms: ownPeriod }),
    ...(override && { override }),
  };
}

/** Leases of allowances from the desks of shared keys: derived, so the outbox relay repeats what fails. */
function leasing(host: Host): MessageKind<void> {
  const { q } = host;
  const { allowances } = q.store;
  return derived({
    kind: 'allowance of',
    open: () => {
      const now = host.now();
      return allowances.open(now, q.config.isClosed(now));
    },
    deliver: (key) => ask(host, key),
  });
}

async function ask({ q, others, now, write }: Host, key: string): Promise<void> {
  const { allowances, limiters } = q.store;
  const holder = allowances.of(key);
  const situation = allowances.situation(key, now());
  if (!holder?.hasToAsk(situation)) return;
  const request = holder.ask(q.name, situation);
  let answer: LeaseAnswer;
  try {
    answer = await others.desk(plainKey(key)).lease(request);
  } catch (error) {
    holder.failed(request);
    throw error;
  }
  holder.answered(request, answer, now());
  const act = (at: number): boolean => {
    limiters.touch(key);
    allowances.mayAsk(key);
    const limiter = limiters.find(key);
    if (!limiter || limiter.isUndecided(runningOf(q, key), at)) return false;
    limiter.hasArrived = false;
    return decide(q, limiter, at);
  };
  while (await write(act));
}

/** The desk of a key calls. @param recall as of the verb @returns that the queue is there */
export function deskCalls(q: QueueParts, key: string, recall: { most?: number } | undefined, now: number): boolean {
  const { allowances, limiters } = q.store;
  const scoped = scopedKey(key, 'deployment');
  allowances.of(scoped)?.called(recall, now);
  allowances.mayAsk(scoped);
  limiters.touch(scoped);
  return true;
}
