/**
 * A queue's share of an enqueue into several queues: rows in state `held`, invisible until the commit, which also
 * cancels replaced jobs.
 */
import type { NewJob } from '../../../job/record';
import { isEarlierEntry } from '../../../job/unique/conflicts';
import type { EnqueuedJob, EnqueueReceipt } from '../../../rpc/receipts';
import { checkRoom, isBounded } from '../../jobs/backpressure';
import { cancelKey, existingJob } from '../../jobs/conflicts';
import { arrivalOf, dueAtOf, planJobs, rowOf } from '../../jobs/enqueue';
import { expiredRows } from '../../jobs/expire';
import { checkGroupRoom } from '../../jobs/group-room';
import { refuseGivenUp } from '../../jobs/may-enqueue';
import { receiptOf, receiptOfEarlier, receiptOfExisting, refuseTooMuchToTell, warn } from '../../jobs/receipt';
import { type PreparedJob, type Share, writeShare } from '../../store/batches';
import { type JobRow, STATE } from '../../store/job-row';
import { insert, move, remove } from '../../store/jobs';
import { learn, policyOf } from '../../store/limits/place';
import type { Named, Observed, QueueParts, Stored } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { recordOf } from '../../store/rows';

/** Checks this queue's share and writes it. @throws {ApiError} as enqueue does; then nothing was written */
export function prepareBatch(
  q: QueueParts,
  batch: string,
  coordinator: string,
  jobs: readonly NewJob[],
  now: number,
): EnqueueReceipt {
  refuseGivenUp(q, batch, now);
  // Until the batch is decided the jobs that exist stay as they are.
  const plan = planJobs(q, jobs, now, false);
  refuseTooMuchToTell(plan.placements, now);
  checkGroupRoom(q, plan.placements);
  if (isBounded(q)) checkRoom(q, arrivalOf(plan), expiredRows(q, now));
  const share: Share = { coordinator, jobs: [] };
  const receipt: EnqueuedJob[] = [];
  const keys: number[] = [];
  plan.placements.forEach((placement, index) => {
    if ('existing' in placement) {
      const existing: EnqueuedJob = existingJob(q, placement.existing, receipt, now);
      const { job, accumulated } = placement;
      receipt[index] = accumulated ? receiptOfEarlier(existing) : receiptOfExisting(existing, job);
      return;
    }
    const { job, replaces } = placement;
    const dueAt = dueAtOf(job, now);
    const row = insert(q, 'prepare', rowOf(job, now), { at: dueAt, limit: job.limit }, now);
    keys[index] = row.key;
    if (job.steps !== undefined) q.store.checkpoints.saveSteps(row.key, job.steps, now, job.parts);
    const prepared: PreparedJob = { key: row.key, dueAt, pending: job.pending === true };
    if (replaces.length > 0) {
      prepared.replaces = replaces.map((old) => (isEarlierEntry(old) ? (keys[old.index] as number) : old.key));
    }
    if (job.superseded) prepared.superseded = true;
    share.jobs.push(prepared);
    const record = recordOf(committedRow(row, prepared), undefined, { queue: q.name, route: q.route, now });
    receipt[index] = receiptOf({ record, layers: q.config.layersFor(job.type) }, job);
    for (const old of replaces) if (isEarlierEntry(old)) showCancelled(receipt[old.index], now);
    if (job.superseded) showCancelled(receipt[index], now);
  });
  if (keys.length > 0) plan.tidy();
  writeShare(q, batch, share, now);
  warn(q, receipt, jobs, now);
  return { jobs: receipt };
}

/** The receipt of a job that the commit will cancel at once. */
function showCancelled(job: EnqueuedJob | undefined, now: number): void {
  if (!job) return;
  job.record.state = 'cancelled';
  job.record.history.cancelled_at = now;
  delete job.record.due_at;
}

/** The row as it will be once the batch is committed. */
const committedRow = (row: JobRow, { pending, dueAt }: PreparedJob): JobRow => ({
  ...row,
  state: pending ? STATE.pending : STATE.waiting,
  due_at: pending ? null : dueAt,
});

export function commitJobs(q: QueueParts, jobs: readonly PreparedJob[], now: number): void {
  for (const { key, dueAt, pending, replaces = [], superseded } of jobs) {
    const row = rowByKey(q.store, key);
    if (row?.state !== STATE.held) continue;
    const limit = row.limit_key === null ? undefined : policyOf(q, row);
    if (limit) learn(q, limit, now);
    if (pending) move(q, row, 'commit', { state: STATE.pending, holds: null }, now);
    else move(q, row, 'commit', { state: STATE.waiting, availableAt: dueAt, holds: null }, now);
    for (const old of superseded ? [...replaces, key] : replaces) cancelKey(q, old, now);
  }
}

/** The batch is abandoned: the jobs never existed. */
export function abortJobs(q: Named & Stored & Observed, jobs: readonly PreparedJob[], now: number): void {
  for (const { key } of jobs) {
    const row = rowByKey(q.store, key);
    if (row?.state === STATE.held) remove(q, row, 'abort', now);
  }
}
