/**
 * Overdue jobs: attempts without a report in time, and expired waiting jobs. A transaction ends a bounded number and
 * the alarm continues; named jobs are ended first ({@link Overdue.about}), readers of the whole queue wait
 * ({@link Overdue.isBehind}).
 */
import type { About, Feature, Host } from '../../feature';
import { expireDue, expireIfDue } from '../../jobs/expire';
import { rescueIfDue, rescueOverdue } from '../../jobs/rescue';

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
    const { q, random, apart } = this.host;
    // Jobs that come back are claimed in a transaction of the same event, which must not end the next ones, and so on.
    if (!this.host.following()) {
      rescueOverdue(q, now, random, apart);
      expireDue(q, now);
    }
    const { asked } = this;
    this.asked = [];
    if (!this.isBehind(now)) return;
    for (const jobs of asked) {
      for (const key of jobs(q)) {
        if (key === undefined) continue;
        rescueIfDue(q, key, now, random, apart);
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
}
