/** Keys that limit jobs: lets jobs in when a key has room again, a window opens, or an override ends. */
import type { Feature, Host } from '../../feature';
import { lookAtDueKeys, seeToTouched } from './admission';

export class LimitsFeature implements Feature {
  constructor(private readonly host: Host) {}

  /** During maintenance a window that opens lets nobody start. */
  due(): number {
    const { limiters, shutUntil } = this.host.q;
    return Math.max(limiters.nextCheck, shutUntil);
  }

  before(now: number): void {
    lookAtDueKeys(this.host.q, now);
    seeToTouched(this.host.q, now);
  }

  follow(now: number): void {
    seeToTouched(this.host.q, now);
  }
}
