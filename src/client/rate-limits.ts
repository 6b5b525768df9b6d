import type * as contract from '../contract/rate-limits';
import { jsonOf, type Moment, momentText } from '../producer/job';
import type { Period } from '../producer/limits';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { collection, type ListOptions } from './pages';
import { pathTo, type Requests } from './requests';

/** Limits that replace a key's own; 0 stops it. Members left out stay as jobs set them. */
export type RateLimitOverride = Omit<Named<contract.RateLimitOverride>, 'period' | 'expiresAt'> & {
  /** Default: the present one of the key. */
  period?: Period;
  /** A moment, or relative: `"+PT15M"`. Default: until it is removed. */
  expiresAt?: Moment;
} & ({ concurrency: number; limit?: never; period?: never } | { limit: number });

export type LimitsInForce = Named<contract.LimitsInForce>;

/** A key in one queue. */
export type RateLimitInQueue = Named<contract.RateLimitInQueue>;

/** A key, summed up over all queues that know it; a key with only an override has none. */
export type RateLimitStatus = Named<contract.RateLimitStatus>;

/** Keys that jobs count under, as `tocsin.rateLimits`. */
export interface RateLimits {
  /** Every known key: from its first job until a day after its last use, and while it has an override. */
  list(options?: ListOptions): AsyncGenerator<RateLimitStatus>;
  /** Reads a key. @throws {NotFoundError} when no job has counted under it recently and it has no override */
  get(key: string): Promise<RateLimitStatus>;
  /**
   * Overrides the limits of a key, at once and in every queue, also in those that meet the key later.
   * @throws {InvalidJobError} a member is malformed, or `period` is missing and no queue has one to keep
   * @throws {ConflictError} too many keys have an override
   * @example
   * await tocsin.rateLimits.override('stripe', { concurrency: 0, expiresAt: '+PT15M' });
   */
  override(key: string, override: RateLimitOverride): Promise<RateLimitStatus>;
  /** Removes the override, so that the key's own limits hold again. @throws {NotFoundError} */
  removeOverride(key: string): Promise<void>;
}

export function createRateLimits(requests: Requests): RateLimits {
  const statusOf = (answer: unknown) => shaped<RateLimitStatus>(answer, 'queues', 'the key');
  const { list, get } = collection(requests, '/rate-limits', 'items', statusOf);
  return {
    list,
    get,
    override: async (key, { expiresAt, ...limits }) => {
      const body = jsonOf({ ...limits, expiresAt: momentText(expiresAt, 'expiresAt') }, 'The override');
      return statusOf(await requests.safely('PUT', pathTo`/rate-limits/${key}/override`, body));
    },
    removeOverride: async (key) => await requests.remove(pathTo`/rate-limits/${key}/override`),
  };
}
