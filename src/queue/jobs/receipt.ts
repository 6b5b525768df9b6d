import { parseExactly } from '../../job/envelope/exact';
import { charsToTell, MAX_EXISTING_CHARS, tooMuchToTell } from '../../job/message';
import type { JobBody, JobView, NewJob } from '../../job/record';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import type { EnqueuedJob } from '../../rpc/receipts';
import type { StoredJob } from './conflicts';

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
