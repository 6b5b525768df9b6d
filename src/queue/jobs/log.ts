import { shown } from '../../job/envelope/nesting';
import { conflict } from '../../job/errors';
import type { LogLine } from '../../job/log';
import type { LogRequest } from '../../rpc/workers';
import { mustFindForReport } from '../read/find';
import type { Active } from '../store/active';
import type { JobRow } from '../store/job-row';
import type { Named, Observed, Stored } from '../store/parts';
import { historyOf } from '../store/row-texts';
import { idOf, stateOf } from '../store/rows';
import { fence } from './fence';

/** Adds lines of the running attempt, written with its end. @throws {ApiError} 404, 409 */
export function addLog(q: Named & Stored & Observed, request: LogRequest, now: number): { accepted: number } {
  const { job_id, lines } = request;
  const { row } = mustFindForReport(q, job_id);
  const active = row && q.store.leases.active.get(row.key);
  if (!row || !active) {
    const current_state = row ? stateOf(row, false, now) : 'completed';
    throw conflict(`Job ${job_id} is ${current_state}, not active: no attempt runs that could log.`, {
      job_id,
      current_state,
      expected_state: 'active',
    });
  }
  fence(q, row, active, request);
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
