/**
 * Jobs whose time is over: attempts that nobody reported in time, and waiting jobs that have expired.
 *
 * However many are over at once, a transaction ends a bounded number, and the next one goes on; the alarm sees to it that
 * there is a next one. Until all are ended, an operation on jobs that it names has these ended first ({@link Overdue.about}),
 * and whoever looks at the whole queue waits ({@link Overdue.isBehind}). So nobody sees a job that is over as if it were not.
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

  /** The next operation is about these jobs: those whose time is over are ended before it, in the same transaction. */
  about(jobs: About): void {
    this.asked.push(jobs);
  }

  /** Is something over that has not been ended? */
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
    // The alarm goes on, though the one for this moment may have rung.
    q.wake.at(now);
  }

  /** Deletes lease rows that only a burst of single claims leaves behind. */
  tidy(): void {
    const { q } = this.host;
    if (q.store.leases.trim()) q.store.recordSequence(q.store.nextSequence);
  }
}
