/** Workers that pull: claims that may wait for work (long poll), in memory only, so waiting costs no rows. */
import type { Outcome } from '../../../job/errors';
import type { JobView } from '../../../job/record';
import type { ClaimRequest } from '../../../rpc/workers';
import type { Feature, Host } from '../../feature';
import { claim } from '../../jobs/claim';
import { nextDue } from '../../store/lanes';
import { queueOpensAt } from '../../store/limits/queue-limit';
import { Waiters } from './waiters';

export class Pulling implements Feature {
  private readonly waiters = new Waiters();

  constructor(private readonly host: Host) {}

  /** The next scheduled or retried job, for whoever runs it. */
  due(now: number): number | undefined {
    return nextDue(this.host.q, now);
  }

  workArrived(): void {
    this.waiters.notify();
  }

  start(why: 'commit' | 'alarm'): void {
    if (why === 'alarm') this.waiters.notify();
  }

  /**
   * A claim that waits until there is work or the time is up.
   * @param deadline epoch ms
   * @param unwanted asked before each try: must this worker get no more jobs?
   */
  async claim(request: ClaimRequest, deadline: number, unwanted: () => boolean): Promise<Outcome<JobView[]>> {
    const { q } = this.host;
    for (;;) {
      if (unwanted()) return { ok: true, value: [] };
      const outcome = await this.host.request((now) => claim(q, request, now));
      const now = this.host.now();
      if (!outcome.ok || outcome.value.length > 0 || now >= deadline) return outcome;
      const opens = Math.min(q.limiters.nextCheck, queueOpensAt(q, now) ?? deadline);
      const next = Math.min(nextDue(q, now) ?? deadline, this.host.overdueAt(), opens, deadline);
      await this.waiters.wait(Math.max(1, next - now));
    }
  }

  /** Waiting workers look again. */
  callWaiters(): void {
    this.waiters.notify();
  }
}
