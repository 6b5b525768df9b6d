/** Warnings to a producer in the answer to an enqueue, rather than when its jobs are missed. */
import type { NewJob } from '../../job/record';
import type { EnqueuedJob } from '../../rpc/receipts';
import { mayNameUrl } from '../store/columns';
import type { Configured, Handled, Named, Stored } from '../store/parts';
import { warnOfMisfits } from './schema-misfits';

const UNLIMITED =
  'rate_limit.key alone limits nothing, because its key has no limit. Add concurrency or rate to rate_limit, or set a ' +
  'limit with PUT /rate-limits/:key.';

type Receipts = readonly EnqueuedJob[];
type Jobs = readonly NewJob[];

/** Notes on the receipts of new jobs what their producer should know. @param jobs those that were sent, in order */
export function warn(q: Handled & Stored & Configured, receipts: Receipts, jobs: Jobs, now: number): void {
  warnOfUnhandled(q, receipts, jobs);
  warnOfUnlimited(q, receipts, jobs, now);
  warnOfMisfits(q, receipts, jobs);
}

/** Warns of each job of a group that has a priority, which is without effect in a strict order. */
export function warnOfPriority(q: Named, receipts: Receipts, jobs: Jobs): void {
  for (const [index, { group, priority }] of jobs.entries()) {
    const receipt = receipts[index];
    if (!receipt || receipt.deduplicated || group === undefined || priority === 0) continue;
    receipt.warning = `priority has no effect: queue ${q.name} serves the jobs of a group in the order of enqueue.`;
  }
}

/** Warns on the first new job of a type without a handler, unless it names a URL. Free if the queue pushes none. */
function warnOfUnhandled(q: Handled, receipts: Receipts, jobs: Jobs): void {
  if (!q.handlers.pushesAny) return;
  const seen = new Set<string>();
  for (const [index, receipt] of receipts.entries()) {
    const { type } = receipt.record;
    if (receipt.deduplicated || seen.has(type) || mayNameUrl(jobs[index]?.body ?? '')) continue;
    seen.add(type);
    const warning = q.handlers.warning(type);
    if (warning !== undefined) receipt.warning = warning;
  }
}

/** Warns on the first new job whose key has no limit, from an earlier job, the code or an operator. */
function warnOfUnlimited(q: Stored, receipts: Receipts, jobs: Jobs, now: number): void {
  const first = jobs.findIndex(
    ({ limit }, at) => limit && !limit.limits && !receipts[at]?.deduplicated && isUnlimited(q, limit.key, now),
  );
  const receipt = receipts[first];
  if (receipt) receipt.warning ??= UNLIMITED;
}

function isUnlimited(q: Stored, key: string, now: number): boolean {
  const { concurrency, rate, throttle } = q.store.limiters.get(key).inForce(now);
  return (concurrency ?? rate ?? throttle) === undefined;
}
