/** What running attempts report while they run: their progress, and lines of their logs. */
import type { Progress } from '../../job/attempt/notes';
import { shown } from '../../job/envelope/nesting';
import type { LogLine } from '../../job/log';
import type { LogRequest, ProgressReport, ProgressRequest } from '../../rpc/workers';
import { mustFindForReport, viewOf } from '../read/find';
import type { Active } from '../store/active';
import { historyOf, type JobRow } from '../store/job-row';
import type { Named, Observed, QueueParts, Stored, StoredQueue, Woken } from '../store/parts';
import type { ReportedProgress } from '../store/progress';
import { idOf } from '../store/rows';
import { fence, runningFor } from './fence';
import type { GatheredNotes } from './steps';

/**
 * Records progress, which never goes down within an attempt, and extends the lease: one row. Ignored if the job does
 * not run.
 * @param notes takes its checkpoint; absent: it is saved at once @throws {ApiError} 404; 409 for another attempt or
 * worker
 */
export function reportProgress(
  q: QueueParts,
  request: ProgressRequest,
  now: number,
  notes?: GatheredNotes,
): ProgressReport {
  const { row } = mustFindForReport(q, request.job_id);
  const active = row && q.store.leases.active.get(row.key);
  if (!row || !active) return progressOf(q, request.job_id, now);
  fence(q, row, active, request);
  noteProgress(q, row, active, request, now);
  const { checkpoint } = request;
  if (checkpoint !== undefined && notes) notes.saveCheckpoint(row.key, checkpoint);
  const saved = checkpoint === undefined || notes ? undefined : q.store.checkpoints.save(row.key, checkpoint, now);
  return {
    ...progressOf(q, request.job_id, now),
    ...(saved && { checkpoint: { sequence: saved.sequence, created_at: saved.created_at } }),
  };
}

/** Writes the progress of the running attempt. The lease of a pushed one ends when its handler must have answered. */
export function noteProgress(
  q: Named & Stored & Observed & Woken,
  row: JobRow,
  active: Active,
  said: Progress,
  now: number,
): void {
  const before = q.store.progress.read(row.key);
  const floor = before?.claim === active.claim ? before.reported.progress : 0;
  const reported: ReportedProgress = {
    progress: Math.max(floor, said.progress),
    ...(said.message !== undefined && { message: said.message }),
    ...(said.data !== undefined && { data: said.data }),
    at: now,
  };
  if (active.target === undefined) {
    active.expiresAt = now + active.visibilityMs;
    q.store.leases.earliest = Math.min(q.store.leases.earliest, active.expiresAt);
    q.wake.at(q.store.leases.earliest);
  }
  q.store.progress.write(row.key, active.claim, active.expiresAt, reported);
  q.observed.events.add('job.progress', idOf(q.route, row), now, {
    job_type: row.type,
    attempt: active.attempt,
    // Events count to 100, everything else to 1.
    progress: Math.round(reported.progress * 10_000) / 100,
    ...(reported.message !== undefined && { message: reported.message }),
    ...(reported.data !== undefined && { data: reported.data }),
  });
}

/** What was last reported about a job; a completed job is at 1. @throws {ApiError} 404 */
export function progressOf(q: StoredQueue, id: string, now: number): ProgressReport {
  const found = mustFindForReport(q, id);
  const { state } = viewOf(q, found, now).record;
  if (found.archived) {
    const { pg } = found.archived;
    return { job_id: id, state, ...pg, progress: 1, at: pg?.at ?? found.archived.at[3] };
  }
  return { job_id: id, state, ...q.store.progress.read(found.row.key)?.reported };
}

/** Adds lines of the running attempt, written with its end. @throws {ApiError} 404, 409 */
export function addLog(q: Named & Stored & Observed, request: LogRequest, now: number): { accepted: number } {
  const { lines } = request;
  const { row, active } = runningFor(q, request, now, 'no attempt runs that could log');
  q.observed.logs.add(active, lines);
  tellLog(q, row, active, lines.length, now);
  return { accepted: lines.length };
}

export function tellLog(q: Named & Observed, row: JobRow, { attempt }: Active, lines: number, now: number): void {
  if (lines > 0) q.observed.events.add('job.log', idOf(q.route, row), now, { job_type: row.type, attempt, lines });
}

/** The newest lines of a job, of the attempt that runs too. @throws {ApiError} 404 */
export function logOf(q: Named & Stored & Observed, id: string): LogLine[] {
  const { row, archived } = mustFindForReport(q, id);
  if (archived) return shown(archived.l ?? []);
  return q.observed.logs.with(historyOf(row).log, q.store.leases.active.get(row.key)) ?? [];
}
