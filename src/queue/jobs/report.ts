/**
 * Reports that end an attempt, fenced by the attempt they name: 409 when it is over. A repeated report, and one that
 * the dispatcher has just recorded, get the stored outcome. One late report counts: the success of a timed-out pushed
 * attempt while its job waits for the next.
 */
import { type EndReport, isEnd, type NoteReport } from '../../job/attempt/outcome';
import { utf8Bytes } from '../../job/bytes';
import { type Outcome, outcomeOf } from '../../job/errors';
import { decodeId } from '../../job/ids';
import type { JobView } from '../../job/record';
import type { StepRecord } from '../../job/steps';
import type { AttemptName, Report, Reported } from '../../rpc/workers';
import { find, mustFindForReport, viewOf, viewOfArchived, viewOfRow } from '../read/find';
import { type Active, ranBy } from '../store/active';
import type { EndedAttempt } from '../store/attempts';
import { historyOf, type JobRow, STATE } from '../store/job-row';
import type { Named, QueueParts, Stored } from '../store/parts';
import { withRows } from '../store/row-lookup';
import { type ArchivedJob, idOf, idOfArchived, stateOf } from '../store/rows';
import { lateAttempt, type Random, undoClaim } from './end-attempt';
import { fence, isNamed, names, notActive, openRow } from './fence';
import { refuseLocked } from './lock';
import { reportProgress } from './progress';
import { Settlement } from './settle';
import { snoozedBy } from './snooze';

/** The attempt that a report is about: it runs; it timed out and succeeds late; or (neither) this report ended it. */
interface Meant {
  row: JobRow;
  active?: Active;
  late?: EndedAttempt;
  archived?: undefined;
}

/** @returns for the repeated report of a success: the job that it has completed. @throws {ApiError} 404, 409 */
function meantBy(q: Named & Stored, report: EndReport, now: number): Meant | { archived: ArchivedJob } {
  const { job_id, kind } = report;
  const { row, archived } = mustFindForReport(q, job_id);
  if (archived) {
    if (kind === 'completed' && completedByThis(q, archived, report, now)) return { archived };
    throw notActive(job_id, 'completed');
  }
  const active = q.store.leases.active.get(row.key);
  if (active) {
    fence(q, row, active, report);
    return { row, active };
  }
  if (kind !== 'completed') {
    if (endedByThis(q, row, report, now)) return { row };
  } else if (report.delivery_id !== undefined && names(job_id, report, row.attempt, row.claims)) {
    const late = lateAttempt(q, row, report.delivery_id, now);
    if (late) return { row, late };
  }
  throw notActive(job_id, stateOf(row, false, now));
}

/** @returns the job as it is now; of one that has completed, as it was. @throws {ApiError} 413 */
function settleMeant(settlement: Settlement, { row, active, late }: Meant, report: EndReport): JobRow {
  if (active) return settlement.settle(row, active, report);
  if (late && report.kind === 'completed') settlement.completeLate(row, late, report.result);
  return row;
}

/** Ends an attempt as its worker reports. @returns the job afterwards. @throws {ApiError} 404, 409, 413 */
export function settleReport(q: QueueParts, report: EndReport, now: number, random: Random): JobView {
  const meant = meantBy(q, report, now);
  if (meant.archived) return viewOfArchived(q, meant.archived);
  const settlement = new Settlement(q, now, random);
  if (report.kind !== 'completed') {
    const after = settleMeant(settlement, meant, report);
    settlement.end();
    return viewOfRow(q, after, now);
  }
  // The job afterwards, before its archive chunk is written.
  const before = viewOfRow(q, meant.row, now);
  settleMeant(settlement, meant, report);
  settlement.end();
  const { active, late } = meant;
  const { error: _error, retry_delay_ms: _delay, ...history } = before.record.history;
  const { due_at: _due, worker_id: _worker, target: _target, ...record } = before.record;
  const { startedAt } = (active ?? late) as { startedAt: number };
  return {
    ...before,
    record: {
      ...record,
      ...(active && ranBy(active, {})),
      state: 'completed',
      attempt: numberOf(meant),
      history: { ...history, started_at: startedAt, completed_at: now },
      ...(report.result !== undefined && { result: report.result }),
    },
  };
}

/** {@link settleReport} among other reports. @returns where the job stands. @throws {ApiError} 404, 409, 413 */
function settleAmong(settlement: Settlement, report: EndReport): Reported {
  const { q, now } = settlement;
  const meant = meantBy(q, report, now);
  if (meant.archived) return { state: 'completed', attempt: meant.archived.n, completed_at: meant.archived.at[3] };
  const after = settleMeant(settlement, meant, report);
  if (report.kind === 'completed') return { state: 'completed', attempt: numberOf(meant), completed_at: now };
  return reportedOf(viewOfRow(q, after, now));
}

const numberOf = ({ row, active, late }: Meant): number => active?.attempt ?? late?.number ?? row.attempt;

function reportedOf({ record }: JobView): Reported {
  const { state, attempt, due_at, history } = record;
  const { retry_delay_ms, completed_at, discarded_at } = history;
  const waits = state === 'retryable' || state === 'scheduled';
  const receipt: Reported = { state, attempt };
  if (waits && due_at !== undefined) receipt.due_at = due_at;
  if (state === 'retryable' && retry_delay_ms !== undefined) receipt.retry_delay_ms = retry_delay_ms;
  if (completed_at !== undefined) receipt.completed_at = completed_at;
  if (discarded_at !== undefined) receipt.discarded_at = discarded_at;
  return receipt;
}

/** Is this the repeated report of the attempt that completed the job? */
function completedByThis(q: Named, job: ArchivedJob, name: AttemptName, now: number): boolean {
  if (isNamed(name)) return names(idOfArchived(q.route, job), name, job.n, job.c);
  return job.push !== undefined && now <= job.at[3] + 2 * job.push;
}

/** Is this the repeated report of the attempt that ended last? */
function endedByThis(q: Named, row: JobRow, report: EndReport, now: number): boolean {
  if (givenBackByThis(q, row, report)) return true;
  if (row.attempt === 0 || row.state === STATE.cancelled) return false;
  const history = historyOf(row);
  // A handler that itself reports what the dispatcher has just recorded names no attempt.
  if (!isNamed(report) && !(history.told_until !== undefined && now <= history.told_until)) return false;
  if (!names(idOf(q.route, row), report, row.attempt, row.claims)) return false;
  const last = history.error;
  // An attempt that left no error was given back.
  if (last?.attempt !== row.attempt) return report.kind !== 'failed' && row.state === STATE.waiting;
  return last.code !== 'visibility_timeout' && !history.unreported;
}

/** Is this the repeated report of a worker that gave the job back unused, or of a handler that snoozed it? */
function givenBackByThis(q: Named, row: JobRow, report: EndReport): boolean {
  const isSnoozed = report.kind === 'snoozed';
  if (!isSnoozed && !(report.kind === 'released' && report.release.attempt === 'unused')) return false;
  if (row.state !== STATE.waiting || !isNamed(report)) return false;
  const isUnused = historyOf(row).unused?.claim === row.claims;
  if (!isUnused && !(isSnoozed && snoozedBy(row, row.claims))) return false;
  return names(idOf(q.route, row), report, row.attempt + 1, row.claims);
}

export function takeBack(q: QueueParts, claims: readonly AttemptName[], now: number): void {
  for (const claim of claims) {
    const row = find(q, claim.job_id)?.row;
    const active = row && q.store.leases.active.get(row.key);
    if (!row || !active || active.target !== undefined) continue;
    if (names(claim.job_id, claim, active.attempt, active.claim) && active.workerId === claim.worker_id) {
      undoClaim(q, row, now);
    }
  }
}

/** Work of one transaction, in characters of rows: further reports wait for the next one. */
const MAX_WORK = 4 * 1024 * 1024;

/** How much of an answer is left for records of steps, in bytes. It shrinks. */
export interface AnswerRoom {
  bytes: number;
}

/**
 * Takes each report in turn; a refusal leaves nothing behind. Rows, completions, checkpoints and steps are batched.
 * @param room for steps on record @returns outcomes of the first reports, at least one: the rest exceeds one
 * transaction
 */
export function reportEach(
  q: QueueParts,
  reports: readonly Report[],
  now: number,
  random: Random,
  room: AnswerRoom,
): Outcome<Reported>[] {
  const keys = reports.map(({ job_id }) => decodeId(job_id).key);
  const settlement = new Settlement(q, now, random);
  const completed = new Set<number>();
  const takeOne = (report: Report, key: number): Reported => {
    refuseLocked(q, report.job_id);
    // A further report about the job finds it in the archive.
    if (completed.has(key)) settlement.endCompletions();
    if (!isEnd(report)) return takeNote(settlement, report, room);
    if (report.kind === 'completed') completed.add(key);
    return settleAmong(settlement, report);
  };
  const running = keys.filter((key) => q.store.leases.active.has(key));
  const most = q.store.written.work + MAX_WORK;
  return withRows(q.store, running, () => {
    const outcomes: Outcome<Reported>[] = [];
    for (const [index, report] of reports.entries()) {
      if (index > 0 && q.store.written.work > most) break;
      const { changes } = q.observed.logs;
      const outcome = outcomeOf(() => takeOne(report, keys[index] as number));
      if (!outcome.ok) q.observed.logs.rollback(changes);
      outcomes.push(outcome);
    }
    settlement.end();
    return outcomes;
  });
}

/** Notes what a running attempt reports. @returns where its job stands, and what else its worker is sent */
function takeNote(settlement: Settlement, report: NoteReport, room: AnswerRoom): Reported {
  const { q, now } = settlement;
  const told = noted(settlement, report, room);
  return { ...reportedOf(viewOf(q, mustFindForReport(q, report.job_id), now)), ...told };
}

function noted({ q, now, notes }: Settlement, report: NoteReport, room: AnswerRoom): Partial<Reported> {
  if (report.kind === 'progress') {
    const { progress } = reportProgress(q, report, now, notes);
    return progress === undefined ? {} : { progress };
  }
  if (report.kind === 'checkpoint') {
    notes.saveCheckpoint(openRow(q, report, 'its checkpoint', now).key, report.content);
    return {};
  }
  const row = openRow(q, report, 'its steps', now);
  const earlier = notes.recordStep(row, report.name, JSON.parse(report.record) as StepRecord);
  return earlier === undefined ? {} : told(JSON.stringify(earlier), room);
}

function told(step: string, room: AnswerRoom): Pick<Reported, 'step' | 'step_omitted'> {
  const bytes = utf8Bytes(step);
  if (bytes > room.bytes) return { step_omitted: true };
  room.bytes -= bytes;
  return { step };
}
