/**
 * Ending an attempt: completed, failed (retried, discarded or kept as a dead letter), or given back.
 *
 * Every way to end an attempt raises `claims`, deletes the row or ends it, so the lease entry is over without being
 * written. A completion costs one row (the delete) plus its share of an archive chunk; a retry two.
 */
import { claimOfDelivery, deliveryId } from '../../job/ids';
import type { JobErrorEntry, JobHistory, ReportedError } from '../../job/record';
import { decideFailure, type Failure } from '../../job/retry/decide';
import type { QueueState } from '../state';
import { type Active, pushedTimeoutMs } from '../store/leases';
import { nowWaits, place, waitsNoMore } from '../store/limits/admit';
import { bodyOf, historyOf, idOf, isInLine, type JobRow, STATE } from '../store/rows';
import { forgetRow } from '../store/unique-keys';
import { end } from './end';
import { noteCompletion } from './endings';
import { keptUntil } from './keep';

/** What is known of a failure: what the handler said, and how the attempt ended where it said nothing. */
export interface FailureReport extends ReportedError {
  crash?: boolean;
  visibility_expired?: boolean;
  no_handler?: boolean;
  target_rejected?: boolean;
  /** The next run must not start earlier than this many ms from now. */
  at_least_ms?: number;
  /** Nobody reported: the queue itself ended the attempt. */
  by_queue?: true;
}

/** Entries of the error history that are kept, and their size in all. A row holds 2 MB with its body. */
const MAX_ERRORS = 1000;
const MAX_HISTORY = 256 * 1024;
const MAX_MESSAGE = 8 * 1024;
const MAX_DETAILS = 16 * 1024;

/** Injected randomness: one number in [0, 1). */
export type Random = () => number;

/** The attempt that a completion is about. */
export interface EndedAttempt {
  /** Epoch ms. */
  startedAt: number;
  /** Attempt number, from 1. */
  number: number;
  claim: number;
  /** Execution limit in ms, when it was pushed. */
  pushedTimeoutMs?: number;
}

/** The attempt that runs, as {@link complete} takes it. */
export function runningAttempt(active: Active): EndedAttempt {
  const pushed = pushedTimeoutMs(active);
  return {
    startedAt: active.startedAt,
    number: active.attempt,
    claim: active.claim,
    ...(pushed !== undefined && { pushedTimeoutMs: pushed }),
  };
}

/**
 * The pushed attempt that a late success still completes: the one this delivery names, if it timed out and the job still
 * waits for the next one.
 */
export function lateAttempt(q: QueueState, row: JobRow, delivery: string, now: number): EndedAttempt | undefined {
  if (row.state !== STATE.waiting || row.due_at === null || row.due_at <= now) return undefined;
  if (!namesClaim(q, row, delivery, row.claims)) return undefined;
  const { error, started_at } = historyOf(row);
  if (error?.code !== 'timeout' || error.attempt !== row.attempt) return undefined;
  return { startedAt: started_at ?? now, number: row.attempt, claim: row.claims };
}

/** The attempt succeeded. `result` is JSON text. */
export function complete(
  q: QueueState,
  row: JobRow,
  attempt: EndedAttempt,
  result: string | undefined,
  now: number,
): void {
  archiveCompleted(q, row, attempt, result, now);
  removeCompleted(q, [row.key]);
}

/** Deletes the rows of completed jobs. Must follow {@link archiveCompleted} in the same operation. */
export function removeCompleted(q: QueueState, keys: readonly number[]): void {
  if (keys.length === 0) return;
  if (keys.length === 1) q.sql.exec('DELETE FROM jobs WHERE key = ?', keys[0]).toArray();
  else q.sql.exec('DELETE FROM jobs WHERE key IN (SELECT value FROM json_each(?))', JSON.stringify(keys)).toArray();
}

/** All of a completion but the delete of the job's row, which the caller does for many at once. */
export function archiveCompleted(
  q: QueueState,
  row: JobRow,
  attempt: EndedAttempt,
  result: string | undefined,
  now: number,
): void {
  const history = historyOf(row);
  const active = q.leases.active.get(row.key);
  if (active) q.leases.release(active);
  q.depth.gone(row);
  q.recordSequence(row.key);
  const progress = q.progress.read(row.key)?.reported;
  if (progress) q.progress.remove(row.key);
  const checkpointed = q.checkpoints.sizeOf(row.key) > 0;
  const own = keptUntil(row, 'completed', now);
  const until = own ?? now + q.retentionMs('completed');
  if (until <= now) q.checkpoints.remove(row.key);
  if (until > now) {
    q.archive.add(
      {
        k: row.key,
        ...(row.alias !== null && { a: row.alias }),
        t: row.type,
        p: row.priority,
        n: attempt.number,
        c: attempt.claim,
        at: [row.created_at, enqueuedAt(row, attempt.startedAt), attempt.startedAt, now],
        ...(history.errors && { e: history.errors }),
        ...(attempt.pushedTimeoutMs !== undefined && { push: attempt.pushedTimeoutMs }),
        ...(progress && { pg: progress }),
        ...(checkpointed && { cp: 1 as const }),
      },
      // A claim has found the body readable; a success that comes later looks again.
      active ? row.body : JSON.stringify(bodyOf(row)),
      result,
      own,
    );
    q.wake(until);
  } else {
    if (row.alias !== null) q.sql.exec('DELETE FROM aliases WHERE id = ?', row.alias).toArray();
    forgetRow(q.sql, row);
  }
  noteCompletion(q, row, result, now);
  q.events.add('job.completed', idOf(q.route, row), now, {
    job_type: row.type,
    attempt: attempt.number,
    duration_ms: now - attempt.startedAt,
    result: null,
  });
}

function enqueuedAt(row: JobRow, startedAt: number): number {
  return row.due_at !== null ? Math.min(Math.max(row.enqueued_at, row.due_at), startedAt) : row.enqueued_at;
}

/** The attempt failed: decides what follows and writes it. */
export function fail(
  q: QueueState,
  row: JobRow,
  active: Active,
  report: FailureReport,
  now: number,
  random: Random,
): void {
  const history = historyOf(row);
  const body = bodyOf(row);
  const policy = q.policyFor(row.type, body);
  const error = errorOf(report);
  const failure: Failure = { ...report, code: error.code, type: error.type };
  const id = idOf(q.route, row);
  const decision = decideFailure(policy, failure, active.attempt, { now, random, jobId: id });
  const retry = decision.outcome === 'retry';
  const entry: JobErrorEntry = {
    attempt: active.attempt,
    occurred_at: now,
    duration_ms: now - active.startedAt,
    ...error,
    backoff_ms: retry ? decision.delay_ms : null,
    reason: retry ? null : decision.reason,
  };
  history.error = entry;
  history.errors = keepNewest([...(history.errors ?? []), entry]);
  history.started_at = active.startedAt;
  const pushed = pushedTimeoutMs(active);
  if (pushed === undefined) delete history.told_until;
  else history.told_until = now + 2 * pushed;
  if (report.by_queue && pushed === undefined) history.unreported = true;
  else delete history.unreported;
  q.leases.release(active);
  const data = {
    job_type: row.type,
    attempt: active.attempt,
    duration_ms: now - active.startedAt,
    error: brief(error),
  };
  if (retry) {
    if (report.visibility_expired) delete history.retry_delay_ms;
    else history.retry_delay_ms = decision.delay_ms;
    requeueAt(q, row, active, history, decision.run_at, now);
    q.events.add('job.failed', id, now, data);
    q.events.add('job.retrying', id, now, {
      job_type: row.type,
      attempt: active.attempt,
      backoff_ms: decision.delay_ms,
      run_at: decision.run_at,
    });
    return;
  }
  const dead = decision.outcome === 'dead_letter';
  Object.assign(history, {
    completed_at: now,
    discarded_at: now,
    reason: decision.reason,
    ...(dead && { dead_letter: true }),
  });
  delete history.retry_delay_ms;
  const ended = { ...row, attempt: active.attempt, claims: active.claim };
  end(q, ended, dead ? STATE.dead : STATE.discarded, history, now);
  q.events.add('job.discarded', id, now, { ...data, reason: decision.reason, dead_letter: dead });
}

/** Puts a job whose attempt is over back in line for `dueAt`. Two rows written. */
function requeueAt(q: QueueState, row: JobRow, active: Active, history: JobHistory, dueAt: number, now: number): void {
  const at = place(q, row, dueAt, now);
  q.sql
    .exec(
      'UPDATE jobs SET attempt = ?, claims = ?, due_at = ?, waits_since = ?, enqueued_at = ?, history = ? WHERE key = ?',
      active.attempt,
      active.claim,
      at.due_at,
      at.waits_since,
      dueAt <= now ? now : row.enqueued_at,
      JSON.stringify(history),
      row.key,
    )
    .toArray();
  backInLine(q, { ...row, attempt: active.attempt, ...at }, now);
}

function backInLine(q: QueueState, row: JobRow, now: number): void {
  if (row.expires_at !== null) {
    q.nextExpiry = Math.min(q.nextExpiry, row.expires_at);
    q.wake(row.expires_at);
  }
  nowWaits(q, row, now);
}

/** Gives the job back without an error (`requeue: true`): available at once, the attempt stays counted. */
export function requeue(q: QueueState, row: JobRow, active: Active, now: number): void {
  const history = historyOf(row);
  history.started_at = active.startedAt;
  delete history.retry_delay_ms;
  q.leases.release(active);
  requeueAt(q, row, active, history, now, now);
}

/**
 * Takes a claim back because the handler was certainly never called (its Worker is not running). The attempt is not used
 * up; the claim number is, so that the old lease entry is over.
 */
export function undoClaim(q: QueueState, row: JobRow, active: Active, now: number): void {
  q.leases.release(active);
  // A job that was in the due index keeps its place there; one from the line goes to where it would have stood.
  const dueAt = row.due_at ?? row.enqueued_at;
  q.sql.exec('UPDATE jobs SET claims = ?, due_at = ? WHERE key = ?', active.claim, dueAt, row.key).toArray();
  backInLine(q, { ...row, due_at: dueAt }, now);
  // It is as available as before, and pushing it is up to its target: no new work to announce.
}

/** A row that cannot be read becomes a dead letter, so that it stops nobody and a human can look at it. */
export function quarantine(q: QueueState, row: JobRow, now: number): void {
  const entry: JobErrorEntry = {
    attempt: row.attempt,
    occurred_at: now,
    duration_ms: null,
    code: 'unreadable_record',
    type: 'tocsin.unreadable_record',
    message: 'The stored job cannot be read.',
    backoff_ms: null,
    reason: 'crash',
  };
  const history: JobHistory = { error: entry, errors: [entry], discarded_at: now, reason: 'crash', dead_letter: true };
  if (isInLine(row) && q.lineLength !== null) q.lineLength--;
  waitsNoMore(q, row);
  end(q, row, STATE.dead, history, now);
  q.events.add('job.discarded', idOf(q.route, row), now, {
    job_type: row.type,
    attempt: row.attempt,
    reason: 'crash',
    dead_letter: true,
  });
}

/** What an error history says of a report. */
function errorOf(report: FailureReport): Pick<JobErrorEntry, 'code' | 'type' | 'message' | 'retryable' | 'details'> {
  if (report.visibility_expired) {
    return {
      code: 'visibility_timeout',
      type: 'tocsin.visibility_timeout',
      message: 'The lease ran out before the attempt was reported.',
    };
  }
  if (report.no_handler) {
    return { code: 'handler_not_found', type: 'tocsin.no_handler', message: report.message ?? 'no handler registered' };
  }
  const code = report.code ?? 'handler_error';
  const details = trimDetails(report.details);
  return {
    code,
    type: report.crash ? 'tocsin.crash' : (report.type ?? report.classes?.[0] ?? errorClass(report.details) ?? code),
    message: (report.message ?? '').slice(0, MAX_MESSAGE),
    ...(report.retryable !== undefined && { retryable: report.retryable }),
    ...(details !== undefined && { details }),
  };
}

function errorClass(details: unknown): string | undefined {
  const name =
    typeof details === 'object' && details !== null ? (details as Record<string, unknown>).error_class : null;
  return typeof name === 'string' && name !== '' ? name : undefined;
}

function trimDetails(details: unknown): unknown {
  if (details === undefined) return undefined;
  const size = JSON.stringify(details)?.length ?? 0;
  return size > MAX_DETAILS ? { truncated: true, original_length: size } : details;
}

function brief(error: { code: string; type: string; message: string }): Record<string, string> {
  return { code: error.code, type: error.type, message: error.message };
}

/** The newest entries, within count and size. */
function keepNewest(errors: JobErrorEntry[]): JobErrorEntry[] {
  let kept = errors.slice(-MAX_ERRORS);
  let size = JSON.stringify(kept).length;
  while (size > MAX_HISTORY && kept.length > 1) {
    const drop = Math.ceil(kept.length / 10);
    kept = kept.slice(drop);
    size = JSON.stringify(kept).length;
  }
  return kept;
}

/** Does a delivery id name this claim of the job? */
export function namesClaim(q: QueueState, row: JobRow, delivery: string, claim: number): boolean {
  return claimOfDelivery(idOf(q.route, row), delivery) === claim;
}

/** The delivery id of a running attempt. */
export function deliveryOf(q: QueueState, row: JobRow, active: Active): string {
  return deliveryId(idOf(q.route, row), active.claim);
}
