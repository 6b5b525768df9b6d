/** The queue object's methods about limits. */
import type { Outcome } from '../../job/errors';
import type { LimitOverride } from '../../job/limits/policy';
import { OperationsObject } from '../operations/object';
import type { LimitsApi, RateLimitView } from './api';
import { limitKeys, overrideRateLimit, rateLimits } from './report';

export abstract class LimitsObject extends OperationsObject implements LimitsApi {
  async limitKeys(_queue: string): Promise<string[]> {
    const q = this.present();
    return q ? limitKeys(q) : [];
  }

  async rateLimits(_queue: string, keys: string[]): Promise<RateLimitView[]> {
    const q = this.present();
    return q ? rateLimits(q, keys, Date.now()) : [];
  }

  async overrideRateLimit(
    _queue: string,
    key: string,
    override: LimitOverride | null,
  ): Promise<Outcome<RateLimitView | null>> {
    const written = this.writeIfExists((q, now) => overrideRateLimit(q, key, override, now));
    return written ?? { ok: true, value: null };
  }
}
