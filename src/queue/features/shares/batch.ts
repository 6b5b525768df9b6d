/**
 * Batches over several queues: all or nothing, whatever dies in the middle.
 *
 *     prepare in every queue ──▶ decide in one of them (the coordinator) ──▶ commit in the others
 *
 * Preparing writes the jobs as rows that do not exist yet for anyone (state `held`), so it finds every reason to refuse.
 * The decision is one row of the coordinator, written in the transaction that makes its own jobs real: from then on the
 * batch is accepted. Whoever drove it may die at any point: a queue that holds jobs asks the coordinator after a while,
 * and an undecided batch is then decided against; the coordinator tells the others of its decision until each has heard.
 *
 * Operations on jobs that exist go the same way: what preparing locks (`operations/across.ts`) is acted on by the commit.
 */
import { unavailable } from '../../../job/errors';
import { decodeId, isUuidV7 } from '../../../job/ids';
import type { NewJob } from '../../../job/record';
import { isEarlierEntry } from '../../../job/unique/conflicts';
import type { RememberedAnswer } from '../../../rpc/operations';
import { type EnqueuedJob, type EnqueueReceipt, MAX_TICKET_AGE_MS } from '../../../rpc/queue';
import { checkRoom, isBounded, shedSurplus } from '../../jobs/backpressure';
import { cancelKey, existingJob } from '../../jobs/conflicts';
import { arrivalOf, dueAtOf, planJobs, rowOf } from '../../jobs/enqueue';
import { recallAnswer, rememberAnswer } from '../../jobs/idempotency';
import { insert, move, remove } from '../../store/jobs';
import { learn, policyOf } from '../../store/limits/place';
import { type JobRow, recordOf, rowByKey, STATE } from '../../store/rows';
import type { QueueState } from '../../store/state';
import { abortBulk, commitBulk } from './bulk';
import {
  CHECK_AFTER_MS,
  type Decision,
  type Fate,
  forgetBatch,
  type Held,
  type Role,
  readBatch,
  writeBatch,
} from './table';

/** A decision against a batch is remembered this long, so that a driver that comes late is refused; ms. */
const REMEMBER_ABORT_MS = 24 * 3_600_000;

/** Checks this queue's share of a batch and holds it. @throws {ApiError} as enqueue does; then nothing was written */
export function prepareBatch(
  q: QueueState,
  batch: string,
  coordinator: string,
  jobs: readonly NewJob[],
  now: number,
): EnqueueReceipt {
  refuseGivenUp(q, batch, now);
  const plan = planJobs(q, jobs, now);
  if (isBounded(q)) checkRoom(q, arrivalOf(plan));
  const held: Held = { coordinator, jobs: [] };
  const receipt: EnqueuedJob[] = [];
  const keys: number[] = [];
  plan.placements.forEach((placement, index) => {
    if ('existing' in placement) {
      receipt[index] = { ...existingJob(q, placement.existing, receipt, now), deduplicated: true };
      return;
    }
    const { job, replaces } = placement;
    const row = insert(q, 'prepare', rowOf(job, now), { at: dueAtOf(job, now), limit: job.limit }, now);
    keys[index] = row.key;
    const fate: Fate = { key: row.key, dueAt: dueAtOf(job, now), pending: job.pending === true };
    if (replaces.length > 0) {
      fate.replaces = replaces.map((job) => (isEarlierEntry(job) ? (keys[job.index] as number) : job.key));
    }
    if (job.superseded) fate.superseded = true;
    held.jobs.push(fate);
    const record = recordOf(realRow(row, fate), undefined, { queue: q.name, route: q.route, now });
    receipt[index] = { record, layers: q.layersFor(job.type) };
    for (const replaced of replaces) if (isEarlierEntry(replaced)) showCancelled(receipt[replaced.index], now);
    if (job.superseded) showCancelled(receipt[index], now);
  });
  if (keys.length > 0) plan.tidy();
  writeBatch(q, batch, 'participant', held, now + CHECK_AFTER_MS);
  return { jobs: receipt };
}

/** The receipt of a job that will be cancelled as soon as it is real. */
function showCancelled(job: EnqueuedJob | undefined, now: number): void {
  if (!job) return;
  job.record.state = 'cancelled';
  job.record.history.cancelled_at = now;
  delete job.record.due_at;
}

/**
 * An enqueue that stands under a ticket is refused once the ticket was given up (somebody waited for it in vain, asked
 * for the decision, and went on), and when it is so old that nobody remembers it.
 * @throws {ApiError} 503
 */
export function refuseGivenUp(q: QueueState, ticket: string, now: number): void {
  const tooOld = isUuidV7(ticket) && now - decodeId(ticket).time > MAX_TICKET_AGE_MS;
  if (tooOld || readBatch<Decision>(q, ticket, 'coordinator')?.committed === false) throw tookTooLong();
}

function tookTooLong(): Error {
  return unavailable('The batch took too long and was given up; nothing was changed.');
}

function realRow(row: JobRow, fate: { dueAt: number; pending: boolean }): JobRow {
  return {
    ...row,
    state: fate.pending ? STATE.pending : STATE.waiting,
    due_at: fate.pending ? null : fate.dueAt,
  };
}

/**
 * The coordinator's decision for a batch, with its own jobs made real in the same transaction.
 * @throws {ApiError} 503 when the batch was decided against in the meantime
 */
export function decideBatch<T>(
  q: QueueState,
  batch: string,
  others: readonly string[],
  now: number,
  answer?: RememberedAnswer<T>,
): T | null {
  const decision = readBatch<Decision>(q, batch, 'coordinator');
  if (decision?.committed) return null;
  const earlier = answer && recallAnswer<T>(q, answer.idempotency, now);
  if (earlier) return earlier;
  refuseGivenUp(q, batch, now);
  if (!readBatch<Held>(q, batch, 'participant')) throw tookTooLong();
  writeBatch(q, batch, 'coordinator', { committed: true, untold: [...others] }, now + CHECK_AFTER_MS);
  commitBatch(q, batch, now);
  if (answer) rememberAnswer(q, answer.idempotency, answer.receipt, now);
  return null;
}

/** Makes the held jobs real. Idempotent. */
export function commitBatch(q: QueueState, batch: string, now: number): void {
  const held = readBatch<Held>(q, batch, 'participant');
  if (!held) return;
  for (const fate of held.jobs) {
    const row = rowByKey(q.sql, fate.key);
    if (row?.state !== STATE.held) continue;
    const limit = row.limit_key === null ? undefined : policyOf(q, row);
    if (limit) learn(q, limit, now);
    if (fate.pending) move(q, row, 'commit', { state: STATE.pending }, now);
    else move(q, row, 'commit', { state: STATE.waiting, availableAt: fate.dueAt, limit }, now);
    for (const key of [...(fate.replaces ?? []), ...(fate.superseded ? [fate.key] : [])]) cancelKey(q, key, now);
  }
  if (held.act) commitBulk(q, held.act, now);
  forgetBatch(q, batch, 'participant');
  if (isBounded(q)) shedSurplus(q, now);
}

/** Removes the held jobs, and unlocks the locked ones. Idempotent; without effect once the batch is committed. */
export function abortBatch(q: QueueState, batch: string, now: number): void {
  const held = readBatch<Held>(q, batch, 'participant');
  if (!held) return;
  for (const { key } of held.jobs) {
    const row = rowByKey(q.sql, key);
    if (row?.state === STATE.held) remove(q, row, 'abort', now);
  }
  if (held.act) abortBulk(q, held.act, now);
  forgetBatch(q, batch, 'participant');
}

/** What was decided? Asking decides: a batch that is still open is given up, so that nobody waits for ever. */
export function decisionOf(q: QueueState, batch: string, now: number): 'committed' | 'aborted' {
  const decision = readBatch<Decision>(q, batch, 'coordinator');
  if (decision) return decision.committed ? 'committed' : 'aborted';
  writeBatch(q, batch, 'coordinator', { committed: false, untold: [] }, now + REMEMBER_ABORT_MS);
  abortBatch(q, batch, now);
  return 'aborted';
}

/** A queue has heard of the decision; the coordinator's row goes when all have. */
export function confirmBatch(q: QueueState, batch: string, queues: readonly string[], now: number): void {
  const decision = readBatch<Decision>(q, batch, 'coordinator');
  if (!decision?.committed) return;
  const untold = decision.untold.filter((queue) => !queues.includes(queue));
  if (untold.length === 0) forgetBatch(q, batch, 'coordinator');
  else writeBatch(q, batch, 'coordinator', { committed: true, untold }, now + CHECK_AFTER_MS);
}

/** What has to be done about batches at `now`. */
export interface BatchDuties {
  /** Batches held here that someone else decides about. */
  ask: { batch: string; coordinator: string }[];
  /** Decisions of this queue that others have not confirmed. */
  tell: { batch: string; queues: string[] }[];
}

/** Unfinished batches whose time has come. Moves their next look on; forgets old decisions. */
export function dueBatches(q: QueueState, now: number): BatchDuties {
  const duties: BatchDuties = { ask: [], tell: [] };
  const rows = q.sql
    .exec<{ batch: string; role: Role; data: string }>('SELECT batch, role, data FROM batches WHERE check_at <= ?', now)
    .toArray();
  for (const { batch, role, data } of rows) {
    if (role === 'participant') {
      const held = JSON.parse(data) as Held;
      writeBatch(q, batch, role, held, now + CHECK_AFTER_MS);
      duties.ask.push({ batch, coordinator: held.coordinator });
      continue;
    }
    const decision = JSON.parse(data) as Decision;
    if (!decision.committed || decision.untold.length === 0) {
      forgetBatch(q, batch, role);
    } else {
      writeBatch(q, batch, role, decision, now + CHECK_AFTER_MS);
      duties.tell.push({ batch, queues: decision.untold });
    }
  }
  return duties;
}

/** When the next unfinished batch must be looked into, epoch ms. */
export function nextBatchCheck(q: QueueState): number | undefined {
  return q.sql.exec<{ at: number | null }>('SELECT min(check_at) AS at FROM batches').one().at ?? undefined;
}
