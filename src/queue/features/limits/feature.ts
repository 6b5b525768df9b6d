/** Keys that limit jobs: jobs start when there is room again, a window opens, or an override ends. */
import type { MessageKind } from '../../../durable/outbox-relay';
import { isFromBefore } from '../../../job/limits/starts';
import type { Feature, Host } from '../../feature';
import { lookAtDueKeys, seeToTouched, wakeGroups } from './admission';
import { leasing } from './leasing';

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
