/** Accepts jobs one by one in one transaction: a refused job says why, and affects no other. */

import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import { outcomeOf } from '../../job/errors';
import { charsToTell, MAX_EXISTING_CHARS, tooMuchToTell } from '../../job/message';
import type { NewJob } from '../../job/record';
import type { EachReceipt, EnqueuedJob, IdempotencyKey } from '../../rpc/receipts';
import type { QueueParts } from '../store/parts';
import { enqueue } from './enqueue';

/**
 * Enqueues each job on its own. A refusal comes before anything is written, so it leaves nothing behind.
 * @throws {ApiError} 409 when the key was used for another request
 */
export function enqueueEach(
  q: QueueParts,
  jobs: readonly NewJob[],
  idempotency: IdempotencyKey | undefined,
  now: number,
): EachReceipt {
  const remembered = idempotency && recallAnswer<EachReceipt>(q.store.inbox, idempotency, now);
  if (remembered) return { ...remembered, replayed: true };
  let told = 0;
  const warnings = new Set<string>();
  const enqueueOne = (job: NewJob): EnqueuedJob => {
    const enqueued = enqueue(q, [job], now).jobs[0] as EnqueuedJob;
    if (enqueued.warning !== undefined && warnings.has(enqueued.warning)) delete enqueued.warning;
    else if (enqueued.warning !== undefined) warnings.add(enqueued.warning);
    if (!enqueued.deduplicated) return enqueued;
    const chars = told + charsToTell(enqueued.record);
    if (chars > MAX_EXISTING_CHARS) throw tooMuchToTell(chars);
    told = chars;
    return enqueued;
  };
  const receipt: EachReceipt = { outcomes: jobs.map((job) => outcomeOf(() => enqueueOne(job))) };
  if (idempotency) rememberAnswer(q.store.inbox, idempotency, receipt, now);
  return receipt;
}
