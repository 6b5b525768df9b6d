/**
 * Durable steps: recorded work that the next run does not repeat. Stored with the checkpoint; they outlive retries
 * and redrives.
 */
import { own } from '../../job/own';
import { parseSteps, StepBook, type StepRecord, type Steps, withoutFailures } from '../../job/steps';
import type { StepReceipt, StepRequest } from '../../rpc/workers';
import { mustFindForReport } from '../read/find';
import type { Named, Stored } from '../store/parts';
import { keyOfFound, openRow } from './fence';

export function recordedSteps(q: Stored, key: number): Steps {
  return parseSteps(q.store.checkpoints.steps(key));
}

/**
 * Records steps; one row, none if known. @returns whether any was new, and all on record
 * @throws {ApiError} 413 when that would be too much; then nothing has changed
 */
export function recordSteps(q: Stored, key: number, said: Steps, now: number): { steps: Steps; isNew: boolean } {
  const book = new StepBook(q.store.checkpoints.steps(key));
  for (const [name, record] of Object.entries(said)) book.add(name, record);
  if (book.isChanged) q.store.checkpoints.saveSteps(key, book.text, now);
  return { steps: book.steps, isNew: book.isChanged };
}

/** A job that begins again tries its failed steps again. One row if there are any. */
export function forgetFailures(q: Stored, key: number, now: number): void {
  const kept = withoutFailures(recordedSteps(q, key));
  if (kept) q.store.checkpoints.saveSteps(key, JSON.stringify(kept), now);
}

/** Records one step. @param record JSON text @returns the earlier record, which wins. @throws {ApiError} 413 */
export function noteStep(
  q: Stored,
  key: number,
  { name, record }: Pick<StepRequest, 'name' | 'record'>,
  now: number,
): StepRecord | undefined {
  const { steps, isNew } = recordSteps(q, key, { [name]: JSON.parse(record) as StepRecord }, now);
  return isNew ? undefined : own(steps, name);
}

/** {@link noteStep} for a worker's report. @throws {ApiError} 404; 409 fenced as a checkpoint is; 413 */
export function recordStep(q: Named & Stored, request: StepRequest, now: number): StepReceipt {
  const earlier = noteStep(q, openRow(q, request, 'its steps', now).key, request, now);
  return earlier === undefined ? {} : { earlier: JSON.stringify(earlier) };
}

/** JSON text of the job's recorded steps. @throws {ApiError} 404 */
export function stepsOf(q: Named & Stored, id: string): string {
  return q.store.checkpoints.steps(keyOfFound(mustFindForReport(q, id))) ?? '{}';
}
