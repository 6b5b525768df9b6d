/** Which attempt a report is about: a report about an attempt that is over changes nothing. */
import { type ApiError, conflict } from '../../job/errors';
import { deliveryId } from '../../job/ids';
import type { AttemptName } from '../../rpc/workers';
import { type Found, mustFindForReport } from '../read/find';
import type { Active } from '../store/active';
import type { JobRow } from '../store/job-row';
import type { Named, Stored } from '../store/parts';
import { idOf, stateOf } from '../store/rows';

export function names(id: string, name: AttemptName, attempt: number, claim: number): boolean {
  if (name.attempt !== undefined && name.attempt !== attempt) return false;
  return name.delivery_id === undefined || name.delivery_id === deliveryId(id, claim);
}

export const isNamed = (name: AttemptName): boolean => name.attempt !== undefined || name.delivery_id !== undefined;

/** 409: no attempt of this job runs that could report. */
export const notActive = (jobId: string, state: string, why = 'the report changes nothing'): ApiError =>
  conflict(`Job ${jobId} is ${state}, not active: ${why}.`, {
    job_id: jobId,
    current_state: state,
    expected_state: 'active',
  });

/** Checks that a report is about the attempt that runs. @throws {ApiError} 409 */
export function fence(q: Named, row: JobRow, active: Active, name: AttemptName): void {
  const id = idOf(q.route, row);
  if (!names(id, name, active.attempt, active.claim)) {
    throw conflict(`The report names another attempt of job ${id}: attempt ${active.attempt} is running.`, {
      job_id: id,
      current_state: 'active',
      current_attempt: active.attempt,
    });
  }
  if (name.worker_id !== undefined && active.workerId !== undefined && name.worker_id !== active.workerId) {
    throw conflict(`Job ${id} is held by another worker.`, { job_id: id, current_state: 'active' });
  }
}

/** The attempt that a report is about. @param why no other report counts @throws {ApiError} 404, 409 */
export function runningFor(q: Named & Stored, request: AttemptName & { job_id: string }, now: number, why?: string) {
  const { row } = mustFindForReport(q, request.job_id);
  const active = row && q.store.leases.active.get(row.key);
  if (!row || !active) throw notActive(request.job_id, row ? stateOf(row, false, now) : 'completed', why);
  fence(q, row, active, request);
  return { row, active };
}

export const keyOfFound = (found: Found): number => (found.row ? found.row.key : found.archived.k);

/** Refuses a report that names an attempt that is over, or another worker's. @throws {ApiError} 409 */
export function fenced(q: Named & Stored, found: Found, request: AttemptName, state: string): void {
  const active = found.row && q.store.leases.active.get(found.row.key);
  if (found.row && active) fence(q, found.row, active, request);
  else if (isNamed(request)) {
    throw conflict(`The attempt of job ${request.job_id} in this report is over: the job is ${state}.`, {
      job_id: request.job_id,
      current_state: state,
      expected_state: 'active',
    });
  }
}

/** The row of a job that has not ended, for a report. @param what cannot change any more @throws {ApiError} 404, 409 */
export function openRow(q: Named & Stored, request: AttemptName, what: string, now: number): JobRow {
  const found = mustFindForReport(q, request.job_id);
  const { row } = found;
  const state = row ? stateOf(row, q.store.leases.active.has(row.key), now) : 'completed';
  if (!row || row.ended_at !== null) {
    throw conflict(`Job ${request.job_id} is ${state}: ${what} can no longer change.`, {
      job_id: request.job_id,
      current_state: state,
      expected_state: 'scheduled, available, pending, active or retryable',
    });
  }
  fenced(q, found, request, state);
  return row;
}
