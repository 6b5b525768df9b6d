/** Warns a producer of a job that counts under a key without a limit. */
import type { NewJob } from '../../job/record';
import type { EnqueuedJob } from '../../rpc/receipts';
import type { Stored } from '../store/parts';

const WARNING =
  'rate_limit.key alone limits nothing, because its key has no limit. Add concurrency or rate to rate_limit, or set a ' +
  'limit with PUT /rate-limits/:key.';

/** Warns on the first new job whose key has no limit, from an earlier job, the code or an operator. */
export function warnOfUnlimited(
  q: Stored,
  receipts: readonly EnqueuedJob[],
  jobs: readonly NewJob[],
  now: number,
): void {
  const first = jobs.findIndex(
    ({ limit }, at) => limit && !limit.limits && !receipts[at]?.deduplicated && isUnlimited(q, limit.key, now),
  );
  const receipt = receipts[first];
  if (receipt) receipt.warning ??= WARNING;
}

function isUnlimited(q: Stored, key: string, now: number): boolean {
  const { concurrency, rate, throttle } = q.store.limiters.get(key).inForce(now);
  return (concurrency ?? rate ?? throttle) === undefined;
}
