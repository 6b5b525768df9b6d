/** What producers get back for their jobs: receipts, and warnings, rather than when the jobs are missed. */
import { parseExactly } from '../../job/envelope/exact';
import { charsToTell, MAX_EXISTING_CHARS, tooMuchToTell } from '../../job/message';
import type { JobBody, JobView, NewJob } from '../../job/record';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import type { EnqueuedJob } from '../../rpc/receipts';
import { mayNameUrl } from '../store/job-row';
import type { Configured, Handled, Named, Stored } from '../store/parts';
import type { StoredJob } from './conflicts';
import { warnOfMisfits } from './may-enqueue';

/** The job that an entry has become, without the body that it brought. */
export function receiptOf({ record, layers }: JobView, { scheduledAt, expiresAt, coalesced }: NewJob): EnqueuedJob {
  const receipt: EnqueuedJob = { record: { ...record, body: '' }, layers };
  if (coalesced) receipt.coalesced = coalesced;
  if (scheduledAt !== undefined) receipt.scheduled_at = scheduledAt;
  if (expiresAt !== undefined) receipt.expires_at = expiresAt;
  return receipt;
}

/** The job that an entry stands for; a repeated entry gets the body of the first. */
export function receiptOfExisting(existing: EnqueuedJob, entry: NewJob): EnqueuedJob {
  const receipt = existing.record.body === entry.body ? receiptOf(existing, entry) : existing;
  return { ...receipt, deduplicated: true };
}

/** The job of an earlier entry, which this one has become a part of. */
export const receiptOfEarlier = (earlier: EnqueuedJob): EnqueuedJob => ({ ...earlier, accumulated: true });

/** A stored job that entries have become a part of, without its arguments: the answer repeats it for each entry. */
export function receiptOfAccumulated({ record, layers }: JobView): EnqueuedJob {
  const { type, scheduled_at, expires_at, ...rest } = parseExactly(record.body) as JobBody;
  const { retry, max_attempts, retention, coalesced } = rest;
  const said = { retry, max_attempts, retention, scheduled_at, expires_at, coalesced };
  const body = JSON.stringify({ type, args: [], meta: {}, ...said });
  return { record: { ...record, body }, layers, accumulated: true };
}

/** Checks, before writing, that one answer can hold the existing jobs. @throws {ApiError} 413 */
export function refuseTooMuchToTell(placements: readonly Placement<StoredJob>[], now: number): void {
  let chars = 0;
  for (const placement of placements) {
    if (!('existing' in placement) || isEarlierEntry(placement.existing) || placement.accumulated) continue;
    const record = placement.existing.view(now)?.record;
    if (record) chars += charsToTell(record.body === placement.job.body ? { ...record, body: '' } : record);
  }
  if (chars > MAX_EXISTING_CHARS) throw tooMuchToTell(chars);
}

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
