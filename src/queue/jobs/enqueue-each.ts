import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import { type Outcome, outcomeOf } from '../../job/errors';
import { charsToTell, MAX_EXISTING_CHARS, tooMuchToTell } from '../../job/message';
import type { NewJob } from '../../job/record';
import type { EachReceipt, EnqueuedJob, IdempotencyKey } from '../../rpc/receipts';
import type { QueueParts } from '../store/parts';
import { isBounded } from './backpressure';
import { enqueue } from './enqueue';
import { hasBoundedGroups } from './group-room';

/**
 * Enqueues each job on its own; a refusal leaves nothing behind. @param mayDrop may old jobs go, if so configured?
 * @throws {ApiError} 409 when the key was used for another request
 */
export function enqueueEach(
  q: QueueParts,
  jobs: readonly NewJob[],
  idempotency: IdempotencyKey | undefined,
  now: number,
  mayDrop = true,
): EachReceipt {
  const remembered = idempotency && recallAnswer<EachReceipt>(q.store.inbox, idempotency, now);
  if (remembered) return { ...remembered, replayed: true };
  let told = 0;
  const warnings = new Set<string>();
  const asTold = (enqueued: EnqueuedJob): EnqueuedJob => {
    if (enqueued.warning !== undefined && warnings.has(enqueued.warning)) delete enqueued.warning;
    else if (enqueued.warning !== undefined) warnings.add(enqueued.warning);
    if (!enqueued.deduplicated) return enqueued;
    const chars = told + charsToTell(enqueued.record);
    if (chars > MAX_EXISTING_CHARS) throw tooMuchToTell(chars);
    told = chars;
    return enqueued;
  };
  const outcomes: Outcome<EnqueuedJob>[] = [];
  for (let at = 0; at < jobs.length; at = outcomes.length) {
    const run = accumulating(jobs, at);
    // Where room is scarce each has its own.
    const together =
      run.length > 1 && !isBounded(q) && !hasBoundedGroups(q)
        ? outcomeOf(() => enqueue(q, run, now, mayDrop).jobs.map(asTold))
        : undefined;
    const told = together?.ok
      ? together.value.map((value): Outcome<EnqueuedJob> => ({ ok: true, value }))
      : run.map((job) => outcomeOf(() => asTold(enqueue(q, [job], now, mayDrop).jobs[0] as EnqueuedJob)));
    outcomes.push(...told);
  }
  const receipt: EachReceipt = { outcomes };
  if (idempotency && outcomes.some(({ ok }) => ok)) rememberAnswer(q.store.inbox, idempotency, receipt, now);
  return receipt;
}

/** Jobs from this place on that may become one: a row is written once for all of them. Else the job in this place. */
function accumulating(jobs: readonly NewJob[], from: number): readonly NewJob[] {
  let to = from;
  while (jobs[to]?.unique?.on_conflict === 'accumulate') to++;
  return jobs.slice(from, Math.max(to, from + 1));
}
