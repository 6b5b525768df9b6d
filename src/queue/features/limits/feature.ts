/**
 * Keys that limit jobs: admits jobs when a key has room again, a window opens, or an override ends. Groups with a rate
 * continue when their windows open.
 */
import { isFromBefore } from '../../../job/limits/starts';
import type { Feature, Host } from '../../feature';
import { lookAtDueKeys, seeToTouched, wakeGroups } from './admission';

export class LimitsFeature implements Feature {
  /** When it was last asked, epoch ms. */
  private askedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly host: Host) {}

  /** During maintenance an open window starts no job. */
  due(): number {
    const { store, config } = this.host.q;
    return Math.max(Math.min(store.limiters.nextCheck, store.cursors.nextGroup()), config.shutUntil);
  }

  before(now: number): void {
    // Otherwise its keys would wait until the clock has caught up.
    if (isFromBefore(this.askedAt, 0, now)) this.host.q.store.limiters.touchWaiting();
    this.askedAt = now;
    lookAtDueKeys(this.host.q, now);
    wakeGroups(this.host.q, now);
    seeToTouched(this.host.q, now);
  }

  follow(now: number): void {
    seeToTouched(this.host.q, now);
  }
}
