/**
 * Why a job does not run: its own reason (delayed, pending, between attempts), its queue's, then those of features.
 * Explanations use the predicates that decide, so both agree.
 */
import { formatDuration, MAX_DURATION_MS } from '../../job/duration';
import { type Limits, plainKey } from '../../job/limits/policy';
import { tellMaintenance } from '../../job/maintenance';
import { own } from '../../job/own';
import { isPendingRun, runningIn } from '../../job/runs';
import { cut, quote } from '../../job/text';
import { formatInstant } from '../../job/time';
import { namedKey, overridePath, type WaitingFor, waiting } from '../../job/waiting';
import { batchOf } from '../store/batches';
import type { ChunkScan } from '../store/chunks/scan';
import { bodyOf, historyOf, isBegun, type JobRow, STATE } from '../store/job-row';
import { type Ahead, countAhead, MAX_COUNTED } from '../store/jobs-ahead';
import type { Limiter } from '../store/limits/limiter';
import { limiterOf, policyOf, runningOf } from '../store/limits/place';
import { queueStandstill } from '../store/limits/queue-limit';
import type { Configured, Named, Stored, StoredQueue } from '../store/parts';
import { availableSince, idOf, isSnoozed } from '../store/rows';
import { Scan } from '../store/scan';
import { waitsForGroup } from './group-detail';
import { roomFor } from './limit-check';
import { recordedSteps } from './steps';

/** Characters of an error message that an explanation repeats. */
const MAX_ERROR = 200;

/** Jobs before it delay it; undefined without any. @param first what the first of them wait for */
export function behind({ count, isMore }: Ahead, since: number, first?: WaitingFor): WaitingFor | undefined {
  if (count === 0 && !isMore) return undefined;
  const jobs = `${isMore ? 'more than ' : ''}${count} ${count === 1 ? 'job' : 'jobs'}`;
  const why = first ? ` ${first.detail}` : '';
  const found = waiting('behind', `It is behind ${jobs} in the queue.${why}`, since);
  return first?.key === undefined ? found : { ...found, key: first.key };
}

/** Why this job does not run; undefined when it runs or has ended. @param ask the features' reasons, in their order */
export function waitingFor(
  q: StoredQueue,
  row: JobRow,
  now: number,
  ask: (row: JobRow) => WaitingFor | undefined,
): WaitingFor | undefined {
  if (row.ended_at !== null || q.store.leases.active.has(row.key)) return undefined;
  if (row.state !== STATE.waiting && row.state !== STATE.pending) return undefined;
  const found =
    locked(q, row) ??
    ofItself(q, row, now) ??
    paused(q, row) ??
    shut(q, row, now) ??
    waitsForGroup(q, row, now) ??
    waitsForKey(q, row, now) ??
    ask(row);
  return withExpiry(row, withCoalesced(row, found ?? starting(row)));
}

function locked(q: Stored, row: JobRow): WaitingFor | undefined {
  if (!q.store.locks.has(row.key)) return undefined;
  const batch = batchOf(q, row.key);
  const detail =
    'An operation on jobs of several queues is being decided, and this job is part of it. It continues within seconds.';
  return waiting('batch_undecided', detail, batch?.since ?? row.enqueued_at, batch?.checkAt);
}

/** The job's own reason. A pause of the queue is mentioned too: the job's own moment will not be enough. */
function ofItself(q: StoredQueue, row: JobRow, now: number): WaitingFor | undefined {
  const also = q.config.paused ? ` Its queue ${q.name} is ${q.config.removal ? 'being deleted' : 'paused'}, too.` : '';
  const said = (found: WaitingFor): WaitingFor => ({ ...found, detail: found.detail + also });
  if (row.state === STATE.pending) {
    const detail = `It was enqueued as pending and waits until it is activated: POST /jobs/${idOf(q.route, row)}/activate.`;
    return said(waiting('pending', detail, row.created_at));
  }
  if (row.due_at === null || row.due_at <= now) return undefined;
  const snoozed = waitsForRuns(q, row, row.due_at) ?? waitsForItself(idOf(q.route, row), row, row.due_at);
  if (snoozed) return said(snoozed);
  const rescheduled = rescheduledByKey(q, row, now);
  if (rescheduled) return said(rescheduled);
  const at = formatInstant(row.due_at);
  if (row.attempt === 0) {
    const detail = `It is scheduled for ${at}. PATCH its scheduled_at to start it earlier.`;
    return said(
      waiting('delayed', detail, bodyOf(row).scheduled_at === undefined ? row.created_at : row.enqueued_at, row.due_at),
    );
  }
  const { error } = historyOf(row);
  const failed = error ? `Attempt ${error.attempt} failed (${error.type}: ${shortened(error.message)}).` : 'It failed.';
  const detail = `${failed} Attempt ${row.attempt + 1} begins at ${at}; PATCH its scheduled_at to retry it earlier.`;
  return said(waiting('retry', detail, error?.occurred_at ?? row.enqueued_at, row.due_at));
}

/** Its handler waits for jobs. @param dueAt when it continues without them, epoch ms */
function waitsForRuns(q: Stored, row: JobRow, dueAt: number): WaitingFor | undefined {
  const { snoozed } = historyOf(row);
  if (!snoozed?.runs || !isSnoozed(row, { snoozed })) return undefined;
  const steps = recordedSteps(q, row.key);
  const name = snoozed.runs.find((one) => isPendingRun(own(steps, one)));
  const run = name === undefined ? undefined : own(steps, name)?.run;
  if (name === undefined || !run) return undefined;
  const [first] = runningIn(run);
  const { queue, type, jobs = 1, ended = 0 } = run;
  const some = jobs === 1 ? '' : ` It is one of ${jobs - ended} under the name ${quote(name)}.`;
  const which = first ? `job ${first.id} (${type}) in queue ${first.queue}.${some}` : notTaken(type, queue);
  const detail = `It waits for ${which} It continues without it at ${formatInstant(dueAt)}.`;
  const found = { ...waiting('run', detail, snoozed.since, dueAt), signal: name };
  return first ? { ...found, job_id: first.id } : found;
}

const notTaken = (type: string, queue: string) => `a job (${type}) that queue ${queue} has not taken yet.`;

/** Its handler has put it to sleep. @param dueAt when it continues, epoch ms */
function waitsForItself(id: string, row: JobRow, dueAt: number): WaitingFor | undefined {
  const { snoozed } = historyOf(row);
  if (!snoozed || !isSnoozed(row, { snoozed })) return undefined;
  const { since, signal } = snoozed;
  const at = formatInstant(dueAt);
  if (signal === undefined) {
    const detail = `Its handler snoozed it until ${at}. PATCH its scheduled_at to run it earlier.`;
    return waiting('snoozed', detail, since, dueAt);
  }
  // A handler without a moment waits as long as it takes.
  const until = dueAt - since < MAX_DURATION_MS ? dueAt : undefined;
  const limit = until === undefined ? '' : ` It continues without it at ${at}.`;
  const detail = `It waits for the signal ${quote(signal)}: POST /jobs/${id}/signals/${quote(signal)}.${limit}`;
  return { ...waiting('signal', detail, since, until), signal };
}

function paused(q: Named & Configured, row: JobRow): WaitingFor | undefined {
  if (!q.config.paused) return undefined;
  const since = Math.max(availableSince(row), q.config.pausedChangedAt);
  if (q.config.removal)
    return waiting('queue_paused', `Queue ${q.name} is being deleted and hands out no jobs.`, since);
  const detail = `Queue ${q.name} is paused and hands out no jobs. POST /queues/${q.name}/resume to resume it.`;
  return waiting('queue_paused', detail, since);
}

function shut(q: Configured, row: JobRow, now: number): WaitingFor | undefined {
  const maintenance = q.config.maintenance(now);
  if (!maintenance) return undefined;
  const since = Math.max(availableSince(row), maintenance.started_at);
  return waiting('maintenance', tellMaintenance(maintenance), since, maintenance.ends_at);
}

const starting = (row: JobRow): WaitingFor =>
  waiting('starting', 'Nothing blocks it: it is about to be handed out.', availableSince(row));

/** Newcomers may have put it off, or have become a part of it. */
function withCoalesced(row: JobRow, found: WaitingFor): WaitingFor {
  // Hardly any job stands for others, and parsing is not free.
  const coalesced = row.body.includes('"coalesced":') ? bodyOf(row).coalesced : undefined;
  if (!coalesced) return found;
  const { calls, since } = coalesced;
  return { ...found, detail: `${found.detail} It stands for ${calls} enqueues since ${formatInstant(since)}.` };
}

/** A job that must start by a moment may never run. */
function withExpiry({ expires_at }: JobRow, found: WaitingFor): WaitingFor {
  if (expires_at === null) return found;
  return { ...found, detail: `${found.detail} It is discarded unless it starts before ${formatInstant(expires_at)}.` };
}

function shortened(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length <= MAX_ERROR ? line : `${cut(line, MAX_ERROR)}…`;
}

/** What a rate counts, for the reader of an explanation. */
const WHAT_COUNTS =
  ' Each attempt counts once, when it starts, and not again when it continues after a sleep or a signal.';

/** The key of an available job has no room, or jobs before it take that room. */
function waitsForKey(q: Named & Stored, row: JobRow, now: number): WaitingFor | undefined {
  const { limit_key: key } = row;
  if (key === null) return undefined;
  const limiter = limiterOf(q, row);
  const { name } = limiter;
  const hasBegun = isBegun(row);
  const room = roomFor(q, row, now);
  if (room > 0 && (hasBegun || isInTime(q, row, room, now))) return undefined;
  const since = availableSince(row);
  const override = limiter.overrideAt(now);
  if (limiter.isStopped(now)) {
    const until = override?.expires_at;
    const how = until === undefined ? '' : ` until ${formatInstant(until)}`;
    const detail = `An operator has stopped ${namedKey(name)}${how}. DELETE ${overridePath(name)} to resume.`;
    return { ...waiting('key_limit', detail, since, until), key: name };
  }
  const opensAt = hasBegun ? undefined : limiter.opensAt(now);
  const until = opensAt !== undefined && opensAt > now ? opensAt : undefined;
  const byRate = !hasBegun && limiter.room(0, now) <= 0;
  const use = usedUp(limiter.inForce(now), runningOf(q, key), byRate);
  const counted = hasBegun ? ' Its start was counted before: it continues as soon as one of them ends.' : '';
  const raised = override ? ` An override holds; DELETE ${overridePath(name)} to end it.` : '';
  if (limiter.holder) {
    const detail = `It counts under ${namedKey(name)} in all queues. ${sharedUse(limiter, runningOf(q, key), now)}${raised}`;
    return { ...waiting('key_limit', detail, since, until), key: name };
  }
  const detail = use
    ? `It counts under ${namedKey(name)}, whose limit is reached: ${use}.${byRate ? WHAT_COUNTS : counted}${raised}`
    : `It counts under ${namedKey(name)}, and jobs ahead of it take the free slots.${raised}`;
  return { ...waiting('key_limit', detail, since, until), key: name };
}

function isInTime(q: Stored, row: JobRow, room: number, now: number): boolean {
  // Where groups take turns, no order among all of them says who comes before.
  if (q.store.gates.rules || room > MAX_COUNTED) return true;
  const { active, head } = q.store.leases;
  const scan = new Scan();
  scan.reset(head);
  const isRival = (other: Pick<JobRow, 'key' | 'limit_key'>) =>
    other.limit_key === row.limit_key && !active.has(other.key);
  const ahead = countAhead(q.store, scan, row, now, isRival);
  return ahead.count < room && !ahead.isMore;
}

/** How a limit over all queues delays the jobs of this one. */
function sharedUse(limiter: Limiter, running: number, now: number): string {
  if (limiter.isUndecided(running, now)) return 'Its queue has asked for a part of the limit and waits for the answer.';
  const use = usedUp(limiter.inForce(now), running, false);
  if (use) return `The limit is reached: ${use}.`;
  return limiter.room(running, now) > 0
    ? 'Jobs ahead of it take the part of the limit that its queue has.'
    : 'Its queue waits for a part of the limit: other queues have, or have used, all of it.';
}

/** The job's policy reschedules it if the key has no room, and that happened. */
function rescheduledByKey(q: Named, row: JobRow, now: number): WaitingFor | undefined {
  const { limit_key: key, due_at } = row;
  if (key === null || due_at === null || due_at <= now || row.attempt > 0) return undefined;
  if (bodyOf(row).scheduled_at === due_at || policyOf(q, row)?.on_limit !== 'reschedule') return undefined;
  const detail = `There was no room under ${namedKey(plainKey(key))}, so it was scheduled for ${formatInstant(due_at)}.`;
  return { ...waiting('key_limit', detail, row.enqueued_at, due_at), key: plainKey(key) };
}

/** The queue's own limit lets no job start. @param since when the job became available, epoch ms */
export function waitsForQueueLimit(q: StoredQueue, since: number, now: number): WaitingFor | undefined {
  const standstill = queueStandstill(q, now);
  if (!standstill) return undefined;
  const { limits, running, opensAt } = standstill;
  const use = usedUp(limits, running, opensAt !== undefined);
  const detail = `The limit of queue ${q.name} is used up: ${use}.${opensAt === undefined ? '' : WHAT_COUNTS} Raise rate_limit in its settings to run more.`;
  return waiting('queue_limit', detail, since, opensAt);
}

/** Which of the limits are used up. @param byRate the rate of starts is used up */
function usedUp({ concurrency, rate, throttle }: Limits, running: number, byRate: boolean): string {
  const uses: string[] = [];
  if (concurrency !== undefined && running >= concurrency) uses.push(`${running} of ${concurrency} jobs run`);
  if (byRate && rate) uses.push(`${rate.limit} jobs have started within ${formatDuration(rate.period_ms)}`);
  if (byRate && throttle) {
    uses.push(`one job starts every ${formatDuration(Math.ceil(throttle.period_ms / throttle.limit))}`);
  }
  return uses.join(', and ');
}

/** Why a job waits that is gathered; `isReady`: its chunk may start, as far as it is concerned. */
export function waitsForChunk(
  scan: ChunkScan | undefined,
  row: JobRow,
  now: number,
): { why: WaitingFor; isReady: boolean } | undefined {
  const lane = scan?.laneOf(row.key);
  const settings = lane?.jobs.find(({ key }) => key === row.key)?.settings;
  if (!scan || !lane || !settings) return undefined;
  const isReady = scan.ready.has(lane) || lane.moment <= now;
  const count = lane.jobs.length;
  const { size, wait_ms } = settings;
  const oldest = lane.jobs.reduce((first, { since }) => Math.min(first, since), Number.POSITIVE_INFINITY);
  const until = oldest + wait_ms;
  const of = lane.group === undefined ? '' : ' of its group';
  const has =
    count >= size ? `${count} jobs${of} wait for calls of up to ${size}` : `${count} of ${size} jobs${of} wait`;
  const next = isReady ? 'The call is about to start.' : `The call starts with these at ${formatInstant(until)}.`;
  const detail = `Its handler takes many jobs in one call: ${has}. ${next}`;
  return { why: waiting('chunk', detail, availableSince(row), isReady ? undefined : until), isReady };
}
