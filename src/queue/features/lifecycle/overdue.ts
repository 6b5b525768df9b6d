/**
 * Overdue jobs: attempts without a report in time, and expired waiting jobs. A transaction ends a bounded number and
 * the alarm continues; named jobs are ended first ({@link Overdue.about}), readers of the whole queue wait
 * ({@link Overdue.isBehind}).
 */

import type { AttemptFailure } from '../../../job/attempt/outcome';
import { ApiError } from '../../../job/errors';
import type { About, Feature, Host } from '../../feature';
import { fail, quarantine, type Random } from '../../jobs/end-attempt';
import { expireDue, expireIfDue } from '../../jobs/expire';
import type { Active } from '../../store/active';
import type { QueueParts } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';

export class Overdue implements Feature {
  private asked: About[] = [];

  constructor(private readonly host: Host) {}

  get overdueAt(): number {
    const { q } = this.host;
    return Math.min(q.store.leases.earliest, q.store.expiry.next);
  }

  due(): number {
    return this.overdueAt;
  }

  /** The next operation is about these jobs: overdue ones are ended before it, in the same transaction. */
  about(jobs: About): void {
    this.asked.push(jobs);
  }

  isBehind(now: number): boolean {
    return now >= this.overdueAt;
  }

  before(now: number): void {
    const { q } = this.host;
    const { leases, turn } = q.store;
    // Jobs that come back are claimed in a transaction of the same event, which must not end the next ones, and so on.
    if (!this.host.following()) {
      const keys = leases.overdue(now, turn.share).map(({ key }) => key);
      turn.spend({ changes: keys.length });
      this.rescueAll(keys, now);
      expireDue(q, now);
    }
    const { asked } = this;
    this.asked = [];
    if (!this.isBehind(now)) return;
    for (const jobs of asked) {
      for (const key of jobs(q)) {
        if (key === undefined) continue;
        if (leases.isOverdue(key, now)) this.rescueAll([key], now);
        expireIfDue(q, key, now);
      }
    }
    // The alarm continues, though the one for this moment may have rung.
    q.wake.at(now);
  }

  /** Deletes lease rows that only a burst of single claims leaves behind. */
  tidy(): void {
    const { q } = this.host;
    if (q.store.leases.trim()) q.store.recordSequence(q.store.nextSequence);
  }

  /**
   * Ends overdue attempts, which count: expired leases are available at once, exceeded execution limits back off. Never
   * throws for a single job: this runs before everything else, so one job would stop its whole queue.
   */
  private rescueAll(keys: number[], now: number): void {
    const { q, random, apart } = this.host;
    while (keys.length > 0) {
      let at = 0;
      const failed = apart(() => {
        for (; at < keys.length; at++) rescue(q, keys[at] as number, now, random);
      });
      if (!failed) return;
      const [culprit] = keys.splice(at, 1);
      if (culprit === undefined) throw failed.error;
      // All of it is undone, so the part about the others is repeated.
      giveUp(this.host, culprit, failed.error, now);
    }
  }
}

/** While the deployment's settings contradict each other nothing can be decided: interval to the next check, ms. */
const LOOK_AGAIN_MS = 10_000;

function rescue(q: QueueParts, key: number, now: number, random: Random): void {
  const active = q.store.leases.active.get(key);
  if (!active) return;
  const row = rowByKey(q.store, key);
  if (!row || row.claims !== active.claim - 1) {
    q.store.leases.release(active);
    return;
  }
  try {
    fail(q, row, active, failureOf(active), now, random);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // The mistake is the deployment's, not the job's: the job stays as it is until the settings are corrected.
    q.store.leases.putOff(active, now + LOOK_AGAIN_MS);
  }
}

/** Ends an attempt that could not be ended normally: that try left nothing, so this one records its claim. */
function giveUp({ q, apart }: Host, key: number, reason: unknown, now: number): void {
  console.error('tocsin: a job could not be recovered and becomes a dead letter', reason);
  const failed = apart(() => {
    const row = rowByKey(q.store, key);
    if (row) quarantine(q, row, now);
  });
  const active = q.store.leases.active.get(key);
  if (!failed || !active) return;
  console.error('tocsin: it cannot become a dead letter either: its lease is extended', failed.error);
  q.store.leases.putOff(active, now + LOOK_AGAIN_MS);
}

function failureOf(active: Active): AttemptFailure {
  if (active.expiresAt < active.timeoutAt) return { visibility_expired: true, by_queue: true };
  return {
    code: 'timeout',
    type: 'timeout',
    message: `The attempt exceeded its execution limit of ${active.timeoutAt - active.startedAt} ms.`,
    retryable: true,
    by_queue: true,
  };
}
