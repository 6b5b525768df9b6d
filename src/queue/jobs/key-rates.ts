/** What keys have enqueued, for those with a rate: exact while the object lives, and never stored. */
import { getOrInsert } from '../../job/get-or-insert';
import type { Quota } from '../../job/limits/policy';
import { Starts } from '../../job/limits/starts';

/** As many keys as there may be, and moments of each in a period: 8 MB. A key may wait one moment too long. */
const MAX_KEYS = 1_000;
const MOMENTS = 128;

export class KeyRates {
  private readonly byKey = new Map<string, Starts>();

  /** @param quota its limit is at least `count` @returns 0, or in how many ms there is room; then nothing is counted */
  spend(key: string, count: number, { limit, period_ms }: Quota, now: number): number {
    const spent = getOrInsert(this.byKey, key, () => new Starts());
    const [oldest] = this.byKey.keys();
    if (this.byKey.size > MAX_KEYS && oldest !== undefined) this.byKey.delete(oldest);
    const moment = Math.ceil(period_ms / MOMENTS);
    const at = Math.ceil(now / moment) * moment;
    if (spent.count(at, period_ms + moment) + count <= limit) {
      spent.add(at, count, period_ms + moment);
      return 0;
    }
    return Math.max(1, spent.opensAt(limit - count + 1, period_ms + moment) - now);
  }
}
