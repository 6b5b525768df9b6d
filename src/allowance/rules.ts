/** What desk and holder agree on. Times in ms. */
import { holds } from '../job/limits/overrides';
import { type Limits, overridden, type Quota } from '../job/limits/policy';
import type { DeclaredLimits, KeySettings } from '../rpc/allowances';

/** The shortest and the longest lease of starts. */
const SHORTEST_MS = 250;
export const LONGEST_MS = 30_000;

/** How long a queue may rely on what its desk answered, from the sending of the request. */
export const TERM_MS = LONGEST_MS;

/** How long a lease of starts lasts: short beside the period, as it counts a period longer than it lasts. */
export function lengthOf({ period_ms }: Quota): number {
  return Math.min(LONGEST_MS, Math.max(SHORTEST_MS, period_ms / 8));
}

/** Between two starts of a throttle. */
export const spacingOf = ({ limit, period_ms }: Quota): number => period_ms / limit;

/** The limits in force at `now` (epoch ms): an override, else what the code declares, before what jobs name. */
export function limitsInForce(
  named: DeclaredLimits | undefined,
  { override, declared }: KeySettings,
  now: number,
): Limits {
  return overridden(named?.limits ?? {}, override && holds(override, now) ? override : declared);
}

/** Has an operator stopped the key? */
export function isStopped({ concurrency, rate, throttle }: Limits): boolean {
  return concurrency === 0 || rate?.limit === 0 || throttle?.limit === 0;
}
