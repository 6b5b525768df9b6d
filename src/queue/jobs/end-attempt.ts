/**
 * Ends of attempts that did not succeed: retried, discarded, dead letter, given back. Each raises `claims` or ends
 * the row, so the lease entry is over without being written.
 *
 * In a strict group a chunk has an order: once a job must run again, those behind it count as not run. It follows from
 * the lease, which has the jobs in order, and from where they are now, so the order of reports does not matter.
 */
import { boundedError, MAX_ERROR_NAME } from '../../job/attempt/bounded-error';
import type { AttemptFailure } from '../../job/attempt/outcome';
import { fitsBytes } from '../../job/bytes';
import { deliveryId } from '../../job/ids';
import type { JobErrorEntry, JobHistory } from '../../job/record';
import { decideFailure } from '../../job/retry/decide';
import type { Move } from '../../job/states';
import { cut } from '../../job/text';
import { type Active, pushedTimeoutMs, ranBy } from '../store/active';
import type { EndedAttempt } from '../store/attempts';
import { bodyOf, historyOf, type JobRow, STATE } from '../store/job-row';
import { type Change, move } from '../store/jobs';
import type { Named, QueueParts, Stored } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { idOf, placeOf } from '../store/rows';

/** Entries of the error history that are kept, and their bytes in all. A row holds 2 MB with its body. */
const MAX_ERRORS = 1000;
const MAX_HISTORY_BYTES = 256 * 1024;

/** Injected randomness: one number in [0, 1). */
export type Random = () => number;

/** The pushed attempt that a late success completes: this delivery's, if it timed out and the job waits for a retry. */
export function lateAttempt(q: Named, row: JobRow, delivery: string, now: number): EndedAttempt | undefined {
  if (row.state !== STATE.waiting || row.due_at === null || row.due_at <= now) return undefined;
  if (!namesClaim(q, row, delivery, row.claims)) return undefined;
  const { error, started_at, unreported, snoozed, unused } = historyOf(row);
  // This run ended otherwise: it gave its number back to the attempt before, which is the one that timed out.
  if (snoozed?.claim === row.claims || unused?.claim === row.claims) return undefined;
  // A worker that pulls extends its lease while it works.
  if (error?.code !== 'timeout' || error.attempt !== row.attempt || unreported) return undefined;
  return { startedAt: started_at ?? now, number: row.attempt, claim: row.claims };
}

/** The attempt failed: decides what follows and writes it. @returns the job as it is now; it may not be kept */
export function fail(
  q: QueueParts,
  row: JobRow,
  active: Active,
  reported: AttemptFailure,
  now: number,
  random: Random,
): JobRow {
  if (isOutOfTurn(q, active)) return giveBackToChunk(q, row, active, now);
  const report = boundedError(reported);
  const history = historyOf(row);
  const policy = q.config.policyFor(row.type, bodyOf(row));
  // Details that are too long lose their content: the class that they name is read first.
  const error = errorOf(report, errorClass(reported.details));
  const failure: AttemptFailure = { ...report, code: error.code, type: error.type };
  const decision = decideFailure(policy, failure, active.attempt, { now, random, jobId: idOf(q.route, row) });
  const retry = decision.outcome === 'retry';
  const entry: JobErrorEntry = {
    attempt: active.attempt,
    occurred_at: now,
    duration_ms: now - active.startedAt,
    ...error,
    backoff_ms: retry ? decision.delay_ms : null,
    reason: retry ? null : decision.reason,
    ...ranBy(active, {}),
  };
  history.error = entry;
  history.errors = keepNewest([...(history.errors ?? []), entry]);
  history.started_at = active.startedAt;
  const pushed = pushedTimeoutMs(active);
  if (pushed === undefined) delete history.told_until;
  else history.told_until = now + 2 * pushed;
  if (report.by_queue && pushed === undefined) history.unreported = true;
  else delete history.unreported;
  if (retry) {
    if (report.visibility_expired) delete history.retry_delay_ms;
    else history.retry_delay_ms = decision.delay_ms;
    return backInLine(q, row, 'retry', history, decision.run_at, now);
  }
  const dead = decision.outcome === 'dead_letter';
  Object.assign(history, {
    completed_at: now,
    discarded_at: now,
    reason: decision.reason,
    ...(dead && { dead_letter: true }),
  });
  delete history.retry_delay_ms;
  return move(q, row, 'discard', { state: dead ? STATE.dead : STATE.discarded, history }, now);
}

/** The attempt is over and the job waits for the next one, from `availableAt` (epoch ms) on. */
function backInLine(
  q: QueueParts,
  row: JobRow,
  kind: 'retry' | 'giveBack',
  history: JobHistory,
  availableAt: number,
  now: number,
): JobRow {
  const enqueued_at = availableAt <= now ? now : row.enqueued_at;
  return goBack(q, row, kind, { enqueued_at, history, availableAt }, now);
}

export function requeue(q: QueueParts, row: JobRow, active: Active, now: number): JobRow {
  if (isOutOfTurn(q, active)) return giveBackToChunk(q, row, active, now);
  const history = historyOf(row);
  history.started_at = active.startedAt;
  delete history.retry_delay_ms;
  return backInLine(q, row, 'giveBack', history, now, now);
}

/**
 * Takes back a claim whose handler was certainly not called: the attempt is unused, the claim number is not.
 * @param change what to note with it, and until when to wait (epoch ms)
 */
export function undoClaim(
  q: QueueParts,
  row: JobRow,
  now: number,
  change: { history?: JobHistory; availableAt?: number } = {},
): JobRow {
  const { history, availableAt } = change;
  const active = q.store.leases.active.get(row.key);
  const isBehind = active !== undefined && isOutOfTurn(q, active);
  // A job of the due index keeps its place; one of the line gets an equivalent place.
  const place = availableAt === undefined || isBehind ? { due_at: placeOf(row) } : { availableAt };
  return goBack(q, row, 'undoClaim', { ...place, ...(history && { history }), isBehind }, now);
}

export function quarantine(q: QueueParts, row: JobRow, now: number): void {
  const active = q.store.leases.active.get(row.key);
  const entry: JobErrorEntry = {
    attempt: active?.attempt ?? row.attempt,
    occurred_at: now,
    duration_ms: null,
    code: 'unreadable_record',
    type: 'tocsin.unreadable_record',
    message: 'The stored job cannot be read.',
    backoff_ms: null,
    reason: 'crash',
  };
  const history: JobHistory = { error: entry, errors: [entry], discarded_at: now, reason: 'crash', dead_letter: true };
  if (active) history.unreported = true;
  move(q, row, 'quarantine', { state: STATE.dead, history }, now);
}

/** A report as an entry of the error history. @param className the class that its details name */
function errorOf(
  report: AttemptFailure,
  className: string | undefined,
): Pick<JobErrorEntry, 'code' | 'type' | 'message' | 'retryable' | 'details' | 'stack'> {
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
  const { details, stack } = report;
  return {
    code,
    type: report.crash ? 'tocsin.crash' : (report.type ?? report.classes?.[0] ?? className ?? code),
    message: report.message ?? '',
    ...(report.retryable !== undefined && { retryable: report.retryable }),
    ...(details !== undefined && { details }),
    ...(stack !== undefined && { stack }),
  };
}

function errorClass(details: unknown): string | undefined {
  const name =
    typeof details === 'object' && details !== null ? (details as Record<string, unknown>).error_class : null;
  return typeof name === 'string' && name !== '' ? cut(name, MAX_ERROR_NAME) : undefined;
}

function keepNewest(errors: JobErrorEntry[]): JobErrorEntry[] {
  let kept = errors.slice(-MAX_ERRORS);
  while (kept.length > 1 && !fitsHistory(kept)) kept = kept.slice(Math.ceil(kept.length / 10));
  return kept;
}

const fitsHistory = (errors: readonly JobErrorEntry[]): boolean => fitsBytes(JSON.stringify(errors), MAX_HISTORY_BYTES);

/** Does a delivery id name this claim of the job? */
const namesClaim = (q: Named, row: JobRow, delivery: string, claim: number): boolean =>
  delivery === deliveryId(idOf(q.route, row), claim);

/** Must an earlier job of its chunk run again? Then it was not the turn of this one. */
export function isOutOfTurn({ store }: Stored, active: Active): boolean {
  const { place } = active;
  if (place === undefined || !store.gates.isStrict) return false;
  return store.leases.isBehind(active, ({ key }) => {
    const row = rowByKey(store, key);
    if (row?.ended_at !== null || (row.state !== STATE.waiting && row.state !== STATE.held)) return false;
    return row.holds_group !== null || placeOf(row) <= place;
  });
}

/** The attempt of a job ends, and it waits again: so do those behind it in its chunk that failed before. */
export function goBack(q: QueueParts, row: JobRow, kind: Move, change: Change, now: number): JobRow {
  const { leases, gates } = q.store;
  const active = leases.active.get(row.key);
  const holders = active?.group === undefined || active.place === undefined ? [] : gates.holdersOf(active.group);
  // The lease may be over with this attempt.
  const later = holders.flatMap((key) => leases.behind(active as Active, key) ?? []);
  const after = move(q, row, kind, change, now);
  for (const mate of later) makeUnused(q, mate, now);
  return after;
}

/** Its failure does not count, and it returns to its place. Two rows written. */
function makeUnused(q: QueueParts, mate: Active, now: number): void {
  const row = q.store.leases.active.has(mate.key) ? undefined : rowByKey(q.store, mate.key);
  if (row?.state !== STATE.waiting || row.claims !== mate.claim) return;
  const { error, errors = [], snoozed: _, ...rest } = historyOf(row);
  const history: JobHistory = { ...rest };
  const kept = error?.attempt === mate.attempt ? errors.slice(0, -1) : errors;
  const last = kept.at(-1);
  if (last) Object.assign(history, { error: last, errors: kept });
  const attempt = Math.min(row.attempt, mate.attempt - 1);
  delete history.retry_delay_ms;
  move(
    q,
    row,
    'undoClaim',
    {
      attempt,
      due_at: mate.place ?? row.enqueued_at,
      history: withUnused(history, mate, attempt, now),
      isBehind: true,
    },
    now,
  );
}

/** An earlier job of its chunk runs before it: no attempt is used up, whatever this one reports. */
export function giveBackToChunk(q: QueueParts, row: JobRow, active: Active, now: number): JobRow {
  const history = withUnused(historyOf(row), active, row.attempt, now);
  return goBack(q, row, 'undoClaim', { due_at: placeOf(row), history, isBehind: true }, now);
}

function withUnused(history: JobHistory, { claim, workerId }: Active, attempt: number, now: number): JobHistory {
  const by = workerId !== undefined && { worker_id: workerId };
  return { ...history, unused: { attempt, claim, count: 0, at: now, ...by } };
}
