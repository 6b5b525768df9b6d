/**
 * Fires cron entries where their jobs are: one transaction enqueues the job and sets the next time, so no time fires
 * twice and none is lost. Due entries fire before each transaction's operations; fires that wait for a job's end are
 * checked after them.
 *
 * A fire whose unique policy looks across queues is recorded with its job's future id, and settled once the others
 * have been asked.
 */
import { v7 as uuidv7 } from 'uuid';
import { STANDBY_MS } from '../../../durable/outbox';
import { ApiError, type ErrorData, notFound, type Outcome } from '../../../job/errors';
import { decodeId, FIRST_CHOSEN, mintId } from '../../../job/ids';
import type { NewJob } from '../../../job/record';
import { TERMINAL_STATES } from '../../../job/states';
import { cut } from '../../../job/text';
import { formatInstant } from '../../../job/time';
import type { CronAcross, CronRun, CronSkip, CronView } from '../../../rpc/cron';
import type { EnqueuedJob } from '../../../rpc/receipts';
import { jobOf, scheduleOf } from '../../../schedules/definition';
import { dueFires } from '../../../schedules/missed';
import { nextFire } from '../../../schedules/schedule';
import { cancel } from '../../jobs/cancel';
import { enqueue } from '../../jobs/enqueue';
import { hasExpired } from '../../jobs/expire';
import { find } from '../../read/find';
import type { Named, Observed, QueueParts, Stored, Woken } from '../../store/parts';
import { stateOf } from '../../store/rows';

const KEPT_EXECUTIONS = 50;
const KEPT_SKIPS = 20;

/** A job has been enqueued, or found to exist. @param own the id reserved for it */
function noteJob(
  q: Observed,
  entry: CronView,
  enqueued: EnqueuedJob,
  tick: number | undefined,
  now: number,
  own?: string,
): void {
  const { id, type } = enqueued.record;
  if (enqueued.deduplicated && id !== own) {
    if (tick !== undefined) noteSkip(q, entry, { tick, at: now, reason: 'unique', job_id: id });
    return;
  }
  noteRun(q, entry, { id, type }, tick, now);
}

const entryOf = ({ name, expression, timezone }: CronView['definition']) => ({
  cron_name: name,
  cron_expression: expression,
  timezone,
});

function noteRun(
  q: Observed,
  { definition, run }: CronView,
  job: { id: string; type: string },
  tick: number | undefined,
  now: number,
): void {
  run.runs++;
  if (tick !== undefined) run.fires++;
  run.last_run_at = now;
  run.last_job = job.id;
  const execution = { job_id: job.id, ...(tick !== undefined && { tick }), at: now };
  run.history = [...run.history, execution].slice(-KEPT_EXECUTIONS);
  q.observed.events.add('cron.triggered', definition.name, now, {
    ...entryOf(definition),
    job_id: job.id,
    job_type: job.type,
    run_count: run.runs,
    ...(tick !== undefined && { scheduled_time: formatInstant(tick) }),
    actual_time: formatInstant(now),
  });
}

/** A job was refused. @param own the id reserved for it */
function noteRefusal(q: Observed, entry: CronView, tick: number, error: ErrorData, now: number, own?: string): void {
  const { existing_job_id } = error.details ?? {};
  const existing = typeof existing_job_id === 'string' && existing_job_id !== '' ? existing_job_id : undefined;
  // An earlier try succeeded, and was cut off before it could note it.
  if (own !== undefined && existing === own) {
    noteRun(q, entry, { id: own, type: String(entry.definition.template.type) }, tick, now);
    return;
  }
  noteSkip(q, entry, {
    tick,
    at: now,
    reason: error.code === 'duplicate' ? 'unique' : 'refused',
    ...(existing !== undefined && { job_id: existing }),
    ...(error.code !== 'duplicate' && { message: cut(error.message, 500) }),
  });
}

function noteSkip(q: Observed, { definition, run }: CronView, skip: CronSkip): void {
  run.skips++;
  run.skipped = [...run.skipped, skip].slice(-KEPT_SKIPS);
  q.observed.events.add('cron.skipped', definition.name, skip.at, {
    ...entryOf(definition),
    reason: skip.reason,
    scheduled_time: formatInstant(skip.tick),
    ...(skip.until !== undefined && { scheduled_until: formatInstant(skip.until) }),
    ...(skip.job_id !== undefined && { active_job_id: skip.job_id }),
    ...(skip.message !== undefined && { message: skip.message }),
  });
}

/** Fires of one entry that may wait for the previous job. */
const MAX_WAITING = 100;

/** Fires a due entry. One row written, besides the job's. @returns how often @throws {ApiError} 503: try again later */
export function fireCron(q: QueueParts, name: string, now: number): number {
  const entry = q.store.crons.read(name);
  const due = entry?.run.next_at;
  if (!entry || due === undefined || due > now) return 0;
  const { definition, run } = entry;
  const plan = dueFires(scheduleOf(definition, run.anchor), due, now, definition.missed_policy, definition.max_catchup);
  if (plan.dropped) {
    const { from, until } = plan.dropped;
    noteSkip(q, entry, { tick: from, ...(until > from && { until }), at: now, reason: 'missed' });
  }
  for (const tick of plan.fires) if (!isUsedUp(entry)) applyOverlap(q, entry, tick, now);
  setNext(q, entry, plan.next);
  q.store.crons.writeRun(name, run);
  return plan.fires.length;
}

/** Fires what waited for the entry's last job, if that has ended. One row written when it has. */
export function fireWaiting(q: QueueParts, name: string, now: number): void {
  const entry = q.store.crons.read(name);
  q.store.crons.resume(name);
  if (!entry) return;
  const { run } = entry;
  const before = run.waiting.length;
  while (run.waiting.length > 0 && runningJob(q, run, now) === undefined) {
    fire(q, entry, run.waiting.shift() as number, now);
  }
  if (run.waiting.length === before) return;
  goOn(q, entry, now);
  q.store.crons.writeRun(name, run);
}

/** The next fire of an entry, unless its fires are used up. The caller writes the run. */
export function setNext(q: Woken, entry: CronView, next: number | undefined): void {
  const { run } = entry;
  if (next === undefined || !entry.definition.enabled || isUsedUp(entry)) {
    delete run.next_at;
    return;
  }
  run.next_at = next;
  q.wake.at(next);
}

/** A fire that counted towards a limit has enqueued nothing: if it was the last one, another may come. */
function goOn(q: Woken, entry: CronView, now: number): void {
  const { definition, run } = entry;
  if (run.next_at === undefined) setNext(q, entry, nextFire(scheduleOf(definition, run.anchor), now));
}

const isUsedUp = ({ definition, run }: CronView): boolean =>
  definition.limit !== undefined && run.fires + run.waiting.length + run.across.length >= definition.limit;

function applyOverlap(q: QueueParts, entry: CronView, tick: number, now: number): void {
  const { run } = entry;
  const policy = entry.definition.overlap_policy;
  const running = policy === 'allow' ? undefined : runningJob(q, run, now);
  const inTheWay = running === undefined ? {} : { job_id: running };
  if (policy === 'allow' || (running === undefined && run.waiting.length === 0)) {
    fire(q, entry, tick, now);
  } else if (policy === 'skip') {
    noteSkip(q, entry, { tick, at: now, reason: 'overlap_skip', ...inTheWay });
  } else if (policy === 'enqueue') {
    if (run.waiting.length < MAX_WAITING) run.waiting.push(tick);
    else noteSkip(q, entry, { tick, at: now, reason: 'waiting_full', ...inTheWay });
  } else {
    // A job that other queues are asked about is cancelled when it exists: usually later, by `noteAnswer`; now if this
    // object restarted between question and answer.
    if (run.across.length > 0) for (const { id } of run.across.splice(0)) cancelIfRunning(q, id, now);
    else if (running !== undefined) cancel(q, running, now);
    fire(q, entry, tick, now);
  }
}

function runningJob(q: Named & Stored, run: CronRun, now: number): string | undefined {
  const pending = run.across.at(-1);
  if (pending) return pending.id;
  if (run.last_job === undefined) return undefined;
  return isRunning(q, run.last_job, now) ? run.last_job : undefined;
}

function isRunning(q: Named & Stored, id: string, now: number): boolean {
  const row = find(q, id)?.row;
  if (!row || hasExpired(q, row, now)) return false;
  return !TERMINAL_STATES.includes(stateOf(row, q.store.leases.active.has(row.key), now));
}

function cancelIfRunning(q: QueueParts, id: string, now: number): void {
  if (isRunning(q, id, now)) cancel(q, id, now);
}

/** An id that names this queue, for finding the job, and that the queue never mints itself. */
const freshId = (q: Named, now: number): string =>
  mintId(now, q.route, FIRST_CHOSEN + (decodeId(uuidv7()).key % FIRST_CHOSEN));

function fire(q: QueueParts, entry: CronView, tick: number, now: number): void {
  const { definition, run } = entry;
  const job = jobOf(definition, { now, tick });
  if (job.unique?.scope === 'global') {
    run.across.push({ id: freshId(q, now), tick, at: now });
    q.wake.at(now + STANDBY_MS);
    return;
  }
  let enqueued: EnqueuedJob;
  try {
    enqueued = enqueue(q, [job], now).jobs[0] as EnqueuedJob;
  } catch (error) {
    // Nothing was written. An undecided fire is retried, with the whole entry.
    if (!(error instanceof ApiError) || error.data.status === 503) throw error;
    noteRefusal(q, entry, tick, error.data, now);
    return;
  }
  noteJob(q, entry, enqueued, tick, now);
}

/** Enqueues a job of the entry now, on behalf of an operator. @throws {ApiError} 404, 409 */
export function triggerHere(q: QueueParts, name: string, job: NewJob, now: number): EnqueuedJob {
  mustReadCron(q, name);
  const enqueued = enqueue(q, [job], now).jobs[0] as EnqueuedJob;
  noteTriggered(q, name, enqueued, now);
  return enqueued;
}

export function noteTriggered(q: Stored & Observed & Woken, name: string, enqueued: EnqueuedJob, now: number): void {
  const entry = q.store.crons.read(name);
  if (!entry || enqueued.deduplicated) return;
  noteJob(q, entry, enqueued, undefined, now);
  q.store.crons.writeRun(name, entry.run);
  // An entry that could not be fired backs off no longer.
  q.wake.at(q.store.crons.nextAt);
}

/** The entry with this name. @throws {ApiError} 404 */
export function mustReadCron(q: Stored, name: string): CronView {
  const entry = q.store.crons.read(name);
  if (!entry) throw noSuchCron(name);
  return entry;
}

export const noSuchCron = (name: string): ApiError => notFound('cron', name, 'GET /ojs/v1/cron lists all entries.');

export function acrossJobs(q: Stored, name: string): { pending: CronAcross; job: NewJob }[] {
  const entry = q.store.crons.read(name);
  return (entry?.run.across ?? []).map((pending) => ({
    pending,
    job: jobOf((entry as CronView).definition, { now: pending.at, tick: pending.tick, id: pending.id }),
  }));
}

export function noteAnswer(
  q: QueueParts,
  name: string,
  pending: CronAcross,
  outcome: Outcome<EnqueuedJob>,
  now: number,
): void {
  const entry = q.store.crons.read(name);
  if (!entry) return;
  if (!entry.run.across.some(({ id }) => id === pending.id)) {
    // A later fire should have cancelled this one, which has become a job, now or when it was asked about before.
    cancelIfRunning(q, pending.id, now);
    return;
  }
  entry.run.across = entry.run.across.filter(({ id }) => id !== pending.id);
  if (outcome.ok) noteJob(q, entry, outcome.value, pending.tick, now, pending.id);
  else noteRefusal(q, entry, pending.tick, outcome.error, now, pending.id);
  goOn(q, entry, now);
  q.store.crons.writeRun(name, entry.run);
}
