/** The answer to an enqueue, for each job. */
import { charsToTell, MAX_EXISTING_CHARS, tooMuchToTell } from '../../job/message';
import type { JobView, NewJob } from '../../job/record';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import type { EnqueuedJob } from '../../rpc/receipts';
import type { StoredJob } from './conflicts';

/** The job that an entry has become, without the body that it brought. */
export function receiptOf({ record, layers }: JobView, { scheduledAt, expiresAt }: NewJob): EnqueuedJob {
  const receipt: EnqueuedJob = { record: { ...record, body: '' }, layers };
  if (scheduledAt !== undefined) receipt.scheduled_at = scheduledAt;
  if (expiresAt !== undefined) receipt.expires_at = expiresAt;
  return receipt;
}

/** The job that an entry stands for; a repeated entry gets the body of the first. */
export function receiptOfExisting(existing: EnqueuedJob, entry: NewJob): EnqueuedJob {
  const receipt = existing.record.body === entry.body ? receiptOf(existing, entry) : existing;
  return { ...receipt, deduplicated: true };
}

/**
 * Checks, before anything is written, that one answer can hold the existing jobs which entries stand for.
 * @throws {ApiError} 413
 */
export function refuseTooMuchToTell(placements: readonly Placement<StoredJob>[], now: number): void {
  let chars = 0;
  for (const placement of placements) {
    if (!('existing' in placement) || isEarlierEntry(placement.existing)) continue;
    const record = placement.existing.view(now)?.record;
    if (record) chars += charsToTell(record.body === placement.job.body ? { ...record, body: '' } : record);
  }
  if (chars > MAX_EXISTING_CHARS) throw tooMuchToTell(chars);
}
