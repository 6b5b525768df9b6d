/** Accepts all jobs or none. One written row for the jobs of a block, two for each other job. */

import { recallAnswer, rememberAnswer } from '../../durable/inbox';
import { atIndex, duplicate, invalidRequest, type Outcome, outcomeOf } from '../../job/errors';
import { decodeId, FIRST_CHOSEN, isUuidV7, routeOf, sequenceOf } from '../../job/ids';
import { charsToTell, MAX_EXISTING_CHARS, tooMuchToTell } from '../../job/message';
import type { JobView, NewJob } from '../../job/record';
import type { RetryLayers } from '../../job/retry/resolve';
import { checkRetry } from '../../job/retry/validate';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import type { EachReceipt, EnqueuedJob, EnqueueReceipt, IdempotencyKey } from '../../rpc/receipts';
import { find, viewOf, viewOfRow } from '../read/find';
import { MAX_GAP } from '../store/block';
import { bodyBytes } from '../store/depth';
import { type JobRow, mayWaitInLine, STATE } from '../store/job-row';
import { insert, insertRun, move, type NewRow } from '../store/jobs';
import { runningOf } from '../store/limits/place';
import type { Named, Observed, QueueParts, Stored, StoredQueue, Woken } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { recordOf } from '../store/rows';
import { type Arrival, isBounded, makeRoom, pressureOf } from './backpressure';
import { type Accumulated, cancelKey, existingJob, QueueConflicts, type StoredJob } from './conflicts';
import { hasBoundedGroups, makeGroupRoom } from './group-room';
import { checkType, hasDeparted, refuseMisfit, refuseNewcomers } from './may-enqueue';
import {
  receiptOf,
  receiptOfAccumulated,
  receiptOfEarlier,
  receiptOfExisting,
  refuseTooMuchToTell,
  warn,
  warnOfPriority,
} from './receipt';

/**
 * Checks what only the queue knows: the retry policy over its layers, and that a chosen id is free. Writes nothing.
 * @throws {ApiError} 422 or 409, with `details.index` when there are several jobs
 */
export function checkJobs(q: StoredQueue, jobs: readonly NewJob[], now: number): void {
  refuseNewcomers(q);
  forEachNumbered(jobs, (job) => checkType(q, job.type));
  forEachNumbered(jobs, (job) => refuseMisfit(q, job));
  checkPolicies(jobs, (job) => q.config.retryLayers(job.type, {}));
  const seen = new Set<string>();
  forEachNumbered(jobs, (job) => {
    if (job.id === undefined) return;
    if (seen.has(job.id)) throw duplicate(job.id, 'in the same batch');
    seen.add(job.id);
    checkId(q, job.id, now);
  });
}

/** Checks retry policies over the layers below. @throws {ApiError} 422, with `details.index` for several jobs */
export function checkPolicies<T extends Pick<NewJob, 'retry'>>(
  jobs: readonly T[],
  lower: (job: T) => Omit<RetryLayers, 'job'>,
): void {
  forEachNumbered(jobs, (job) => {
    if (job.retry) checkRetry({ ...lower(job), job: job.retry });
  });
}

function forEachNumbered<T>(jobs: readonly T[], check: (job: T) => void): void {
  jobs.forEach((job, index) => {
    try {
      check(job);
    } catch (error) {
      throw jobs.length === 1 ? error : atIndex(error, index);
    }
  });
}

function checkId(q: StoredQueue, id: string, now: number): void {
  const taken = find(q, id);
  if (taken) throw duplicate(id, viewOf(q, taken, now).record.state);
  if (q.store.hasAlias(id)) throw duplicate(id, 'being enqueued');
  if (!isUuidV7(id) || routeOf(id) !== q.route) return;
  if (hasDeparted(q, id, now)) throw duplicate(id, 'in another queue');
  const sequence = sequenceOf(decodeId(id).key);
  // The queue will mint this id itself one day: no job may take it before.
  if (sequence >= q.store.nextSequence && sequence < FIRST_CHOSEN) {
    throw invalidRequest('id', 'id: is reserved for this queue; choose another UUIDv7.');
  }
}

/** The decision about each job, and what may be tidied up afterwards. */
interface EnqueuePlan {
  placements: Placement<StoredJob>[];
  accumulated: readonly Accumulated[];
  tidy(): void;
}

/**
 * Checks jobs and applies their unique policies. Writes nothing. @param mayAccumulate into stored jobs?
 * @throws {ApiError} as {@link checkJobs}; for a duplicate 409 if its policy rejects it, 503 if that is undecided
 */
export function planJobs(q: StoredQueue, jobs: readonly NewJob[], now: number, mayAccumulate = true): EnqueuePlan {
  checkJobs(q, jobs, now);
  const conflicts = new QueueConflicts(q, now, mayAccumulate);
  const placements: Placement<StoredJob>[] = [];
  forEachNumbered(jobs, (job) => placements.push(conflicts.place(job)));
  return { placements, accumulated: conflicts.gathered(), tidy: () => conflicts.tidy() };
}

function insertJobs(q: QueueParts, plan: EnqueuePlan, now: number): EnqueueReceipt {
  const jobs: EnqueuedJob[] = [];
  const keys: number[] = [];
  const isAlone = plan.placements.length === 1;
  const accumulated = new Map<number, EnqueuedJob>();
  for (const change of plan.accumulated) {
    accumulated.set(change.into.key, receiptOfAccumulated(accumulate(q, change, now)));
  }
  const entryAt = (index: number) => (plan.placements[index] as Placement<StoredJob>).job;
  const arrived = (row: JobRow, index: number) => {
    keys[index] = row.key;
    const view = {
      record: recordOf(row, undefined, { queue: q.name, route: q.route, now }),
      layers: q.config.layersFor(row.type),
    };
    jobs[index] = { ...receiptOf(view, entryAt(index)), ...(isAlone && standingAfter(q, row, now)) };
  };
  for (let index = 0; index < plan.placements.length; index++) {
    const run = plainRun(plan.placements, index, now);
    if (run.length >= SHORTEST_RUN) {
      for (const row of insertRun(q, (run[0] as NewJob).type, run, now)) arrived(row, index++);
      index--;
      continue;
    }
    const placement = plan.placements[index] as Placement<StoredJob>;
    if ('existing' in placement) {
      const { existing, job } = placement;
      const into = placement.accumulated && !isEarlierEntry(existing) ? accumulated.get(existing.key) : undefined;
      const found = into ?? existingJob(q, existing, jobs, now);
      jobs[index] = placement.accumulated ? receiptOfEarlier(found) : receiptOfExisting(found, job);
      continue;
    }
    const { job, replaces } = placement;
    for (const replaced of replaces) {
      const key = isEarlierEntry(replaced) ? keys[replaced.index] : replaced.key;
      const cancelled = key === undefined ? undefined : cancelKey(q, key, now);
      if (cancelled && isEarlierEntry(replaced)) {
        jobs[replaced.index] = receiptOf(cancelled, entryAt(replaced.index));
      }
    }
    arrived(insertOne(q, job, now, hasCompany(plan.placements, index, now)), index);
    const superseded = job.superseded ? cancelKey(q, keys[index] as number, now) : undefined;
    if (superseded) jobs[index] = receiptOf(superseded, job);
  }
  if (keys.length > 0 || plan.accumulated.length > 0) plan.tidy();
  return { jobs };
}

/**
 * Writes what a stored job becomes by newcomers; one that is full and takes none is only made due. One row for all of
 * a request, two where its start moves.
 */
function accumulate(q: QueueParts, { into, gathered }: Accumulated, now: number): JobView {
  const row = rowByKey(q.store, into.key);
  if (!row) throw new Error(`Queue ${q.name} lost a job within a transaction.`);
  const { taken, body, dueAt } = gathered;
  const place = row.state === STATE.waiting && dueAt !== into.dueAt ? { due_at: dueAt ?? now } : {};
  return viewOfRow(q, move(q, row, taken > 0 ? 'accumulate' : 'patch', { ...place, body }, now, { taken }), now);
}

/** What a job that just arrived leaves of the key that limits it. */
function standingAfter(q: Stored, { limit_key: key }: JobRow, now: number): Pick<EnqueuedJob, 'standing'> {
  if (key === null) return {};
  const limiter = q.store.limiters.get(key);
  const limits = limiter.inForce(now);
  const limit = limits.rate?.limit ?? limits.throttle?.limit ?? limits.concurrency;
  const running = runningOf(q, key);
  if (limit === undefined || limiter.isUndecided(running, now)) return {};
  const remaining = Math.min(limit, limiter.room(running, now));
  return { standing: { limit, remaining, resets_at: limiter.resetsAt(now) ?? now } };
}

/** What a plan adds to the queue. The jobs that it replaces are removed at the same time. */
export function arrivalOf(plan: EnqueuePlan): Arrival {
  const replaces = new Set<number>();
  const arrival: Arrival = { jobs: 0, bytes: 0, replaces };
  for (const { into, gathered } of plan.accumulated) {
    // It does not make room for what it has become.
    replaces.add(into.key);
    arrival.bytes += bodyBytes(gathered) - bodyBytes(into);
  }
  for (const placement of plan.placements) {
    if ('existing' in placement || placement.job.superseded) continue;
    arrival.jobs += 1 - placement.replaces.length;
    arrival.bytes += bodyBytes(placement.job);
    for (const replaced of placement.replaces) if (!isEarlierEntry(replaced)) replaces.add(replaced.key);
  }
  return arrival;
}

/**
 * Checks and inserts. @param mayDrop may old jobs go for them, where the settings say so?
 * @throws {ApiError} as {@link planJobs}; 429 when the queue, or a group, is full; 413 when too much exists already
 */
export function enqueue(q: QueueParts, jobs: readonly NewJob[], now: number, mayDrop = true): EnqueueReceipt {
  const plan = planJobs(q, jobs, now);
  refuseTooMuchToTell(plan.placements, now);
  // A full queue of jobs that wait for others would never empty.
  const isExempt = jobs.every(({ awaited }) => awaited);
  if (!isExempt) makeGroupRoom(q, plan.placements, () => new Set(arrivalOf(plan).replaces), now, mayDrop);
  const bounded = isBounded(q) && !isExempt;
  if (bounded) makeRoom(q, arrivalOf(plan), now, mayDrop);
  const receipt = insertJobs(q, plan, now);
  const pressure = bounded ? pressureOf(q) : undefined;
  if (pressure && receipt.jobs[0]) receipt.jobs[0].pressure = pressure;
  if (q.store.gates.isStrict) warnOfPriority(q, receipt.jobs, jobs);
  warn(q, receipt.jobs, jobs, now);
  return receipt;
}

/** Inserts jobs that a handler of this queue waits for, however full it is. @param jobs checked @returns their ids */
export function enqueueAwaited(q: QueueParts, jobs: readonly NewJob[], now: number): string[] {
  const placements = jobs.map((job) => ({ job, replaces: [] }));
  return insertJobs(q, { placements, accumulated: [], tidy: () => undefined }, now).jobs.map(({ record }) => record.id);
}

/** Runs of plain jobs from this length on are inserted by one statement; shorter ones are cheaper one by one. */
const SHORTEST_RUN = 4;

/** Characters of bodies in one such statement at most, unless a single body is larger. */
const MAX_RUN_CHARS = 512 * 1024;

/** Consecutive new jobs from `from` on that differ only in their bodies: immediate ones of one type. */
function plainRun(placements: readonly Placement<StoredJob>[], from: number, now: number): NewJob[] {
  const run: NewJob[] = [];
  let chars = 0;
  for (let index = from; index < placements.length; index++) {
    const placement = placements[index] as Placement<StoredJob>;
    if ('existing' in placement || placement.replaces.length > 0) break;
    const { job } = placement;
    const special = job.id ?? job.expiresAt ?? job.unique ?? job.superseded ?? job.steps;
    if (special !== undefined || !isImmediate(job, now) || job.type !== (run[0] ?? job).type) break;
    chars += job.body.length;
    if (run.length > 0 && chars > MAX_RUN_CHARS) break;
    run.push(job);
  }
  return run;
}

/** Is the job's place the line: available now, of default priority, and it waits for its key if it must? */
const isImmediate = (job: NewJob, now: number): boolean =>
  dueAtOf(job, now) === now && job.priority === 0 && !job.pending && mayWaitInLine(job.limit);

/** The moment at which a new job becomes available, epoch ms. */
export const dueAtOf = (job: Pick<NewJob, 'scheduledAt'>, now: number): number =>
  job.scheduledAt !== undefined && job.scheduledAt > now ? job.scheduledAt : now;

/** Does an adjacent job outside the line become available at the same moment and priority? They then share a row. */
function hasCompany(placements: readonly Placement<StoredJob>[], index: number, now: number): boolean {
  const { job } = placements[index] as Placement<StoredJob>;
  if (isImmediate(job, now)) return false;
  const isLike = (step: 1 | -1): boolean => {
    for (let far = 1; far <= MAX_GAP; far++) {
      const other = placements[index + step * far];
      if (!other) return false;
      if ('existing' in other || isImmediate(other.job, now)) continue;
      return other.job.priority === job.priority && dueAtOf(other.job, now) === dueAtOf(job, now);
    }
    return false;
  };
  return isLike(-1) || isLike(1);
}

function insertOne(q: Named & Stored & Observed & Woken, job: NewJob, now: number, together: boolean): JobRow {
  const { pending = false, limit, group, steps, parts } = job;
  const at = dueAtOf(job, now);
  const row = insert(q, 'enqueue', rowOf(job, now), { at, pending, limit, together, group }, now);
  if (steps !== undefined) q.store.checkpoints.saveSteps(row.key, steps, now, parts);
  return row;
}

export const rowOf = (job: NewJob, now: number): NewRow => ({
  ...{ alias: job.id ?? null, type: job.type, priority: job.priority, attempt: 0, claims: 0 },
  ...{ created_at: now, enqueued_at: now, expires_at: job.expiresAt ?? null, body: job.body, history: null },
});

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
