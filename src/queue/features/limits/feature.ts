/** Keys that limit jobs: lets jobs in when a key has room again, a window opens, or an override ends. */
import { isFromBefore } from '../../../job/limits/starts';
import type { Feature, Host } from '../../feature';
import { lookAtDueKeys, seeToTouched } from './admission';

export class LimitsFeature implements Feature {
  /** When it was asked last, epoch ms. */
  private askedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly host: Host) {}

  /** During maintenance a window that opens lets nobody start. */
  due(): number {
    const { store, config } = this.host.q;
    return Math.max(store.limiters.nextCheck, config.shutUntil);
  }

  before(now: number): void {
    // Its keys would not be looked at before the clock has made up for that.
    if (isFromBefore(this.askedAt, 0, now)) this.host.q.store.limiters.touchWaiting();
    this.askedAt = now;
    lookAtDueKeys(this.host.q, now);
    seeToTouched(this.host.q, now);
  }

  follow(now: number): void {
    seeToTouched(this.host.q, now);
  }
}
