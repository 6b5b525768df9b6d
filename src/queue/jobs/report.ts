/**
 * Reports of workers and handlers about an attempt: ack and nack, fenced by the attempt they name.
 *
 * A report for an attempt that is over changes nothing (409), with three exceptions that change nothing either: a repeated
 * ack or nack that names its attempt is told the stored outcome, and so is one about a pushed attempt that the dispatcher
 * has recorded moments before. Only one late report counts: the ack of a pushed attempt that timed out, while its job
 * still waits for the next one.
 */
import type { JobView } from '../../job/record';
import type { AckRequest, AttemptName, NackRequest, Reported } from '../../rpc/workers';
import { find, mustFindForReport, viewOf, viewOfArchived, viewOfRow } from '../read/find';
import type { Active } from '../store/active';
import { type Completion, type Completions, complete, runningAttempt } from '../store/attempts';
import { type JobRow, STATE } from '../store/columns';
import { type ArchivedJob, bodyOf, historyOf, idOf, idOfArchived, stateOf } from '../store/rows';
import type { QueueState } from '../store/state';
import { fail, lateAttempt, type Random, requeue, undoClaim } from './end-attempt';
import { fence, isNamed, names, notActive } from './fence';
import type { Notes } from './gathered-notes';
import { snooze, snoozedBy } from './snooze';

/** The attempt succeeded. @throws {ApiError} 404, 409 */
export function ack(q: QueueState, request: AckRequest, now: number): JobView {
  const { archived, completion } = succeeded(q, request, now);
  if (archived) return viewOfArchived(q, archived);
  // What the job looks like then, before its archive chunk is written.
  const { row, attempt, result } = completion;
  const before = viewOfRow(q, row, now);
  complete(q, [completion], now);
  const { error: _error, retry_delay_ms: _delay, ...history } = before.record.history;
  const { due_at: _due, worker_id: _worker, target: _target, ...record } = before.record;
  return {
    ...before,
    record: {
      ...record,
      ...attempt.by,
      state: 'completed',
      attempt: attempt.number,
      history: { ...history, started_at: attempt.startedAt, completed_at: now },
      ...(result !== undefined && { result }),
    },
  };
}

/** The same among others, and where the job stands then. @throws {ApiError} 404, 409 */
export function ackAmong(
  q: QueueState,
  request: AckRequest,
  now: number,
  completions: Completions,
  notes: Notes,
): Reported {
  const { archived, completion } = succeeded(q, request, now);
  if (archived) return { state: 'completed', attempt: archived.n, completed_at: archived.at[3] };
  notes.write(completion.row.key);
  completions.add(completion);
  return { state: 'completed', attempt: completion.attempt.number, completed_at: now };
}

type Success = { archived: ArchivedJob; completion?: undefined } | { archived?: undefined; completion: Completion };

/** The job that completes by this, or has done so. @throws {ApiError} 404, 409 */
function succeeded(q: QueueState, request: AckRequest, now: number): Success {
  const found = mustFindForReport(q, request.job_id);
  const { archived } = found;
  if (archived) {
    if (settledByThis(q, archived, request, now)) return { archived };
    throw notActive(request.job_id, 'completed');
  }
  const { row } = found;
  const active = q.leases.active.get(row.key);
  if (active) {
    fence(q, row, active, request);
    if (request.log) q.logs.add(active, request.log);
    return { completion: { row, attempt: runningAttempt(active), result: request.result } };
  }
  const late =
    request.delivery_id !== undefined && names(request.job_id, request, row.attempt, row.claims)
      ? lateAttempt(q, row, request.delivery_id, now)
      : undefined;
  if (late) return { completion: { row, attempt: late, result: request.result } };
  throw notActive(request.job_id, stateOf(row, false, now));
}

/** Is this the repeated report of the attempt that completed the job? */
function settledByThis(q: QueueState, job: ArchivedJob, name: AttemptName, now: number): boolean {
  const id = idOfArchived(q.route, job);
  if (isNamed(name)) return names(id, name, job.n, job.c);
  return job.push !== undefined && now <= job.at[3] + 2 * job.push;
}

/** The attempt failed, or the worker gives the job back. @param notes of the same message. @throws {ApiError} 404, 409 */
export function nack(q: QueueState, request: NackRequest, now: number, random: Random, notes?: Notes): JobView {
  const found = mustFindForReport(q, request.job_id);
  if (found.archived) throw notActive(request.job_id, 'completed');
  const { row } = found;
  const active = q.leases.active.get(row.key);
  if (!active) {
    if (endedByThis(q, row, request, now)) return viewOf(q, found, now);
    throw notActive(request.job_id, stateOf(row, false, now));
  }
  fence(q, row, active, request);
  if (request.log) q.logs.add(active, request.log);
  notes?.write(row.key);
  const after = ended(q, row, active, request, now, random);
  return viewOfRow(q, after, now);
}

function ended(q: QueueState, row: JobRow, active: Active, request: NackRequest, now: number, random: Random): JobRow {
  if (request.snooze) return snooze(q, row, active, request.snooze, now);
  if (request.requeue && request.attempt_used === false) return giveBackUnused(q, row, active, now);
  const again = request.requeue && active.attempt < Math.max(1, q.policyFor(row.type, bodyOf(row)).max_attempts);
  return again ? requeue(q, row, active, now) : fail(q, row, active, request.error, now, random);
}

/** Pauses after a job was given back unused for the second time and more, ms: no two workers may hand it to and fro. */
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * No handler was called: the attempt does not count, and the job goes back to where it stood. Each further time in a row it
 * pauses, twice as long as the time before, because the worker that cannot run it may be the only one there is.
 */
function giveBackUnused(q: QueueState, row: JobRow, active: Active, now: number): JobRow {
  const history = historyOf(row);
  const before = history.unused?.attempt === row.attempt ? history.unused.count : 0;
  history.unused = {
    attempt: row.attempt,
    claim: active.claim,
    count: before + 1,
    at: now,
    ...(active.workerId !== undefined && { worker_id: active.workerId }),
  };
  const pause = before === 0 ? undefined : Math.min(FIRST_PAUSE_MS * 2 ** Math.min(before - 1, 10), LONGEST_PAUSE_MS);
  return undoClaim(q, row, now, { history, ...(pause !== undefined && { availableAt: now + pause }) });
}

/** Is this the repeated report of a worker that has given the job back unused? */
function givenBackByThis(q: QueueState, row: JobRow, request: NackRequest): boolean {
  const { unused } = historyOf(row);
  if (!request.requeue || request.attempt_used !== false || row.state !== STATE.waiting || !isNamed(request))
    return false;
  if (unused?.claim !== row.claims) return false;
  return names(idOf(q.route, row), request, row.attempt + 1, row.claims);
}

/** Is this the repeated report of a handler that goes on later? */
function snoozedByThis(q: QueueState, row: JobRow, request: NackRequest): boolean {
  if (!request.snooze || row.state !== STATE.waiting || !isNamed(request)) return false;
  return snoozedBy(row, row.claims) && names(idOf(q.route, row), request, row.attempt + 1, row.claims);
}

/** Takes back claims whose jobs never reached their worker: nobody has tried anything. */
export function takeBack(q: QueueState, claims: readonly AttemptName[], now: number): void {
  for (const claim of claims) {
    const row = find(q, claim.job_id)?.row;
    const active = row && q.leases.active.get(row.key);
    if (!row || !active || active.target !== undefined) continue;
    if (names(claim.job_id, claim, active.attempt, active.claim) && active.workerId === claim.worker_id) {
      undoClaim(q, row, now);
    }
  }
}

/** Is this the repeated report of the attempt that ended last? */
function endedByThis(q: QueueState, row: JobRow, request: NackRequest, now: number): boolean {
  if (givenBackByThis(q, row, request) || snoozedByThis(q, row, request)) return true;
  if (row.attempt === 0 || row.state === STATE.cancelled) return false;
  const history = historyOf(row);
  // A handler that reports by itself what the dispatcher has just recorded names nothing.
  if (!isNamed(request) && !(history.told_until !== undefined && now <= history.told_until)) return false;
  if (!names(idOf(q.route, row), request, row.attempt, row.claims)) return false;
  const last = history.error;
  // An attempt that left no error was given back.
  if (last?.attempt !== row.attempt) return request.requeue === true && row.state === STATE.waiting;
  return last.code !== 'visibility_timeout' && !history.unreported;
}
