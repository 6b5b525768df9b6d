/** Accepting jobs: all of them or none. One written row for each immediate job, two for a delayed or prioritised one. */
import { atIndex, duplicate, invalidRequest } from '../../job/errors';
import { decodeId, isUuidV7, LANE_BIT, sequenceOf } from '../../job/ids';
import type { JobRecord, NewJob } from '../../job/record';
import type { RetryLayers } from '../../job/retry/resolve';
import { checkRetry } from '../../job/retry/validate';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import type { EnqueuedJob, EnqueueReceipt } from '../../rpc/queue';
import { standingOf } from '../features/limits/report';
import { find, viewOf } from '../read/find';
import type { QueueState } from '../state';
import { bytesOf } from '../store/depth';
import { learn, nowWaits, type Place, place } from '../store/limits/admit';
import { type JobRow, recordOf, STATE } from '../store/rows';
import { remember } from '../store/unique-keys';
import { type Arrival, isBounded, makeRoom, pressureOf } from './backpressure';
import { cancelKey, existingJob, QueueConflicts, type StoredJob } from './conflicts';
import { checkType, refuseNewcomers } from './intake';

const INSERT = `INSERT INTO jobs
  (key, alias, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, expires_at, body, limit_key,
   waits_since)
  VALUES (?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, ?, ?)`;

/** Neither in the due index nor behind a key. */
const NOWHERE: Place = { due_at: null, waits_since: null };

/**
 * Checks what only the queue knows: that the retry policy makes sense over the queue's own layers, and that an id chosen
 * by the client is free. Writes nothing.
 * @throws {ApiError} 422 or 409, with `details.index` when there are several jobs
 */
export function checkJobs(q: QueueState, jobs: readonly NewJob[], now: number): void {
  refuseNewcomers(q);
  forEachNumbered(jobs, (job) => checkType(q, job.type));
  checkPolicies(jobs, (job) => q.retryLayers(job.type, {}));
  const seen = new Set<string>();
  forEachNumbered(jobs, (job) => {
    if (job.id === undefined) return;
    if (seen.has(job.id)) throw duplicate(job.id, 'in the same batch');
    seen.add(job.id);
    checkId(q, job.id, now);
  });
}

/**
 * Checks the jobs' own retry policies over the layers below them.
 * @throws {ApiError} 422, with `details.index` when there are several jobs
 */
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

function checkId(q: QueueState, id: string, now: number): void {
  const taken = find(q, id);
  if (taken) throw duplicate(id, viewOf(q, taken, now).record.state);
  if (q.hasAlias(id)) throw duplicate(id, 'being enqueued');
  const decoded = decodeId(id);
  // An id that this queue will mint itself one day must not be taken before.
  if (isUuidV7(id) && decoded.route === q.route && sequenceOf(decoded.key) >= q.nextSequence) {
    throw invalidRequest('id', 'id: is reserved for this queue; choose another UUIDv7.');
  }
}

/** What becomes of each job, and what may be tidied up when that is done. */
export interface Plan {
  placements: Placement<StoredJob>[];
  tidy(): void;
}

/**
 * Checks jobs and applies their unique policies. Writes nothing.
 * @throws {ApiError} as {@link checkJobs}, and for a duplicate that is to be refused 409, in doubt 503
 */
export function planJobs(q: QueueState, jobs: readonly NewJob[], now: number): Plan {
  checkJobs(q, jobs, now);
  const conflicts = new QueueConflicts(q, now);
  const placements: Placement<StoredJob>[] = [];
  forEachNumbered(jobs, (job) => placements.push(conflicts.place(job)));
  return { placements, tidy: () => conflicts.tidy() };
}

/** Carries out a plan. */
function insertJobs(q: QueueState, plan: Plan, now: number): EnqueueReceipt {
  const jobs: EnqueuedJob[] = [];
  const keys: number[] = [];
  const isAlone = plan.placements.length === 1;
  const arrived = (row: JobRow, index: number) => {
    keys[index] = row.key;
    const record = recordOf(row, undefined, { queue: q.name, route: q.route, now });
    announce(q, record, now);
    jobs[index] = { record, layers: q.layersFor(row.type), ...(isAlone && standingAfter(q, row, now)) };
  };
  for (let index = 0; index < plan.placements.length; index++) {
    const run = plainRun(plan.placements, index, now);
    if (run.length >= SHORTEST_RUN) {
      for (const row of insertRun(q, run, now)) arrived(row, index++);
      index--;
      continue;
    }
    const placement = plan.placements[index] as Placement<StoredJob>;
    if ('existing' in placement) {
      jobs[index] = { ...existingJob(q, placement.existing, jobs, now), deduplicated: true };
      continue;
    }
    const { job, replaces } = placement;
    for (const replaced of replaces) {
      const key = isEarlierEntry(replaced) ? keys[replaced.index] : replaced.key;
      const cancelled = key === undefined ? undefined : cancelKey(q, key, now);
      if (cancelled && isEarlierEntry(replaced)) jobs[replaced.index] = cancelled;
    }
    const row = insert(q, job, now);
    arrived(row, index);
    if (job.unique) remember(q.sql, job.unique.fingerprint, row.key);
    const superseded = job.superseded ? cancelKey(q, row.key, now) : undefined;
    if (superseded) jobs[index] = superseded;
  }
  if (keys.length > 0) plan.tidy();
  return { jobs };
}

/** Where a job that just arrived leaves the key that limits it. */
function standingAfter(q: QueueState, row: JobRow, now: number): Pick<EnqueuedJob, 'standing'> {
  const standing = row.limit_key === null ? undefined : standingOf(q, row.limit_key, now);
  return standing ? { standing } : {};
}

/** Notes the event of a job's arrival. */
export function announce(q: QueueState, record: JobRecord, now: number): void {
  q.events.add(record.state === 'scheduled' ? 'job.scheduled' : 'job.enqueued', record.id, now, {
    job_type: record.type,
    attempt: 0,
    ...(record.due_at !== undefined && { scheduled_at: record.due_at }),
  });
}

/** What a plan adds to the queue. What it replaces goes at the same time. */
export function arrivalOf(plan: Plan): Arrival {
  const arrival: Arrival = { jobs: 0, bytes: 0 };
  for (const placement of plan.placements) {
    if ('existing' in placement || placement.job.superseded) continue;
    arrival.jobs += 1 - placement.replaces.length;
    arrival.bytes += bytesOf(placement.job);
  }
  return arrival;
}

/** Checks and inserts. @throws {ApiError} as {@link planJobs}, 429 when the queue is full; then nothing was written */
export function enqueue(q: QueueState, jobs: readonly NewJob[], now: number): EnqueueReceipt {
  const plan = planJobs(q, jobs, now);
  if (!isBounded(q)) return insertJobs(q, plan, now);
  makeRoom(q, arrivalOf(plan), now);
  const receipt = insertJobs(q, plan, now);
  const pressure = pressureOf(q);
  if (pressure && receipt.jobs[0]) receipt.jobs[0].pressure = pressure;
  return receipt;
}

/** A run of plain jobs is inserted by one statement from this length on; below, the detour costs more than it saves. */
const SHORTEST_RUN = 4;

/** Characters of bodies in one such statement at most, unless a single body is larger. */
const MAX_RUN_CHARS = 512 * 1024;

/** Consecutive new jobs from `from` on that differ in nothing but their bodies: immediate ones of one type. */
function plainRun(placements: readonly Placement<StoredJob>[], from: number, now: number): NewJob[] {
  const run: NewJob[] = [];
  let chars = 0;
  for (let index = from; index < placements.length; index++) {
    const placement = placements[index] as Placement<StoredJob>;
    if ('existing' in placement || placement.replaces.length > 0) break;
    const { job } = placement;
    const special = job.id ?? job.expiresAt ?? job.unique ?? job.superseded;
    if (special !== undefined || !isImmediate(job, now) || job.type !== (run[0] ?? job).type) break;
    chars += job.body.length;
    if (run.length > 0 && chars > MAX_RUN_CHARS) break;
    run.push(job);
  }
  return run;
}

/** Inserts plain jobs under consecutive keys with one statement. One row written for each. */
function insertRun(q: QueueState, run: readonly NewJob[], now: number): JobRow[] {
  const first = q.nextSequence;
  q.nextSequence += run.length;
  const { type } = run[0] as NewJob;
  q.sql
    .exec(
      `INSERT INTO jobs (key, state, type, priority, attempt, claims, created_at, enqueued_at, body)
       SELECT ? + key, ${STATE.waiting}, ?, 0, 0, 0, ?, ?, value FROM json_each(?)`,
      first,
      type,
      now,
      now,
      JSON.stringify(run.map((job) => job.body)),
    )
    .toArray();
  for (const job of run) q.depth.added(job);
  if (q.lineLength !== null) q.lineLength += run.length;
  q.arrived(now, type);
  return run.map((job, index) => newRow(job, { key: first + index, state: STATE.waiting, ...NOWHERE }, now));
}

/** Does the job stand in the line: available now, of default priority, not limited? */
function isImmediate(job: NewJob, now: number): boolean {
  return dueAtOf(job, now) === now && job.priority === 0 && !job.pending && !job.limit;
}

/** The moment at which a new job becomes available, epoch ms. */
export function dueAtOf(job: Pick<NewJob, 'scheduledAt'>, now: number): number {
  return job.scheduledAt !== undefined && job.scheduledAt > now ? job.scheduledAt : now;
}

function insert(q: QueueState, job: NewJob, now: number): JobRow {
  const line = isImmediate(job, now);
  if (job.limit) learn(q, job.limit, now);
  const at = line || job.pending ? NOWHERE : placeOf(q, job, now);
  const row = writeRow(q, job, { line, state: job.pending ? STATE.pending : STATE.waiting, ...at }, now);
  if (line) {
    if (q.lineLength !== null) q.lineLength++;
    q.arrived(now, row.type);
  } else if (!job.pending) {
    nowWaits(q, row, now);
  }
  return row;
}

function placeOf(q: QueueState, job: NewJob, now: number): Place {
  return place(q, { ...job, limit_key: job.limit?.key ?? null }, dueAtOf(job, now), now, job.limit);
}

/** Writes the row of a new job under the next sequence number, and its alias if it has one. */
export function writeRow(
  q: QueueState,
  job: NewJob,
  at: Place & { line: boolean; state: number },
  now: number,
): JobRow {
  const sequence = q.nextSequence++;
  const row = newRow(job, { ...at, key: at.line ? sequence : LANE_BIT + sequence }, now);
  q.sql
    .exec(
      INSERT,
      ...[row.key, row.alias, row.state, row.type, row.priority, row.due_at, now, now, row.expires_at, row.body],
      ...[row.limit_key, row.waits_since],
    )
    .toArray();
  q.depth.added(row);
  if (row.alias !== null) q.sql.exec('INSERT INTO aliases (id, key) VALUES (?, ?)', row.alias, row.key).toArray();
  if (row.expires_at !== null) {
    q.nextExpiry = Math.min(q.nextExpiry, row.expires_at);
    q.wake(row.expires_at);
  }
  return row;
}

/** The row of a job that is new at `now`. */
function newRow(job: NewJob, at: Place & { key: number; state: number }, now: number): JobRow {
  return {
    key: at.key,
    alias: job.id ?? null,
    state: at.state,
    type: job.type,
    priority: job.priority,
    due_at: at.due_at,
    attempt: 0,
    claims: 0,
    created_at: now,
    enqueued_at: now,
    expires_at: job.expiresAt ?? null,
    ended_at: null,
    body: job.body,
    history: null,
    limit_key: job.limit?.key ?? null,
    waits_since: at.waits_since,
  };
}
