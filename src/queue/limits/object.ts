/** The queue object's methods about limits. */
import type { Outcome } from '../../job/errors';
import { OperationsObject } from '../operations/object';
import type { LimitsApi, RateLimitView } from './api';
import { limitKeys, rateLimits, removeOwnOverride } from './report';

export abstract class LimitsObject extends OperationsObject implements LimitsApi {
  async limitKeys(_queue: string): Promise<string[]> {
    const q = this.present();
    return q ? limitKeys(q) : [];
  }

  async rateLimits(_queue: string, keys: string[]): Promise<RateLimitView[]> {
    const q = this.present();
    return q ? rateLimits(q, keys, Date.now()) : [];
  }

  async removeOwnOverride(_queue: string, key: string): Promise<Outcome<void>> {
    return this.writeIfExists((q, now) => removeOwnOverride(q, key, now)) ?? { ok: true, value: undefined };
  }
}
