/**
 * Durable steps: recorded work that the next run does not repeat. Stored with the checkpoint, which a handler saves for
 * the next run. Both outlive retries and redrives, and go with the job.
 */
import { own } from '../../job/own';
import { isPendingRun } from '../../job/runs';
import {
  lost,
  MAX_INLINE_BYTES,
  noStep,
  parseSteps,
  StepBook,
  type StepPart,
  type StepRecord,
  type Steps,
  stepsBefore,
  withoutFailures,
} from '../../job/steps';
import { eventOfStep } from '../../job/timeline';
import { forRestart } from '../../job/undo';
import type { AttemptName, CheckpointRequest, StepReceipt, StepRequest, StoredCheckpoint } from '../../rpc/workers';
import { mustFindForReport } from '../read/find';
import type { JobRow } from '../store/job-row';
import type { Named, Observed, Stored } from '../store/parts';
import { idOf, stateOf } from '../store/rows';
import { fenced, keyOfFound, openRow } from './fence';

type Parts = Named & Stored & Observed;

export const recordedSteps = (q: Stored, key: number): Steps => parseSteps(q.store.checkpoints.steps(key));

/**
 * Records steps; one row, none if known. @returns whether any was new, and all on record
 * @throws {ApiError} 413 when that would be too much; then nothing has changed
 */
export const recordSteps = (q: Parts, row: JobRow, said: Steps, now: number): { steps: Steps; isNew: boolean } =>
  inBook(q, row, now, MAX_INLINE_BYTES, (book) => {
    for (const [name, record] of Object.entries(said)) book.add(name, record);
    return { steps: book.steps, isNew: book.isChanged };
  });

/** Reads the records of a job, and writes them if `change` has changed them. */
function inBook<T>(q: Parts, row: JobRow, now: number, most: number | undefined, change: (book: StepBook) => T): T {
  const book = new StepBook(q.store.checkpoints.steps(row.key), now, most);
  const changed = change(book);
  recordBook(q, row, book, now);
  return changed;
}

/** {@link saveBook}, with an event for each record that is new. */
export function recordBook(q: Parts, row: JobRow, book: StepBook, now: number): void {
  saveBook(q, row.key, book, now);
  for (const name of book.changed) emitStep(q, row, name, own(book.steps, name) as StepRecord, now);
}

function emitStep(q: Parts, row: JobRow, name: string, record: StepRecord, now: number): void {
  const attempt = q.store.leases.active.get(row.key)?.attempt ?? row.attempt;
  const { type, data } = eventOfStep(name, record);
  q.observed.events.add(type, idOf(q.route, row), now, { job_type: row.type, attempt, ...data });
}

/** Writes the records of a job if they have changed. Runs that its handler waits for no longer are cancelled. */
function saveBook({ store: { checkpoints, runs } }: Stored, key: number, book: StepBook, now: number): void {
  if (book.isChanged) checkpoints.saveSteps(key, book.text, now, book.parts);
  for (const run of book.abandoned) runs.abandon(run);
}

/** A record with its result, however large that is; with an error where that cannot be read. */
export function whole(q: Stored, key: number, name: string, record: StepRecord | undefined): StepRecord | undefined {
  if (record?.result_bytes === undefined) return record;
  const { result_bytes: _, ...others } = record;
  const value = q.store.checkpoints.values.read(key, name);
  return value ? { ...others, result: value[0] } : { ...record, ...lost(name) };
}

/**
 * What a job that begins again keeps on record: its failed steps are tried again. @param from also this step, and all
 * that began after it @param isUndone nothing holds any more; with `from`, what was not undone. Undefined: everything.
 * @throws {ApiError} 404 when nothing is on record under this name
 */
export function keptSteps(q: Stored, key: number, from: string | undefined, isUndone: boolean): Steps | undefined {
  const steps = recordedSteps(q, key);
  if (from !== undefined) return forRestart(steps, stepsBefore(steps, from), isUndone);
  return isUndone ? {} : withoutFailures(steps);
}

/** Keeps only these records of a job that begins again; runs among the others are cancelled. One row. */
export function forgetOthers(q: Stored, key: number, kept: Steps, now: number): void {
  for (const [name, record] of Object.entries(recordedSteps(q, key))) {
    if (own(kept, name) === undefined && isPendingRun(record)) q.store.runs.abandon(record.run);
  }
  q.store.checkpoints.saveSteps(key, JSON.stringify(kept), now);
}

/** Records a step in the place of what was on record of it. One row. @throws {ApiError} 413 */
export function replaceStep(q: Parts, row: JobRow, name: string, record: StepRecord, now: number): void {
  inBook(q, row, now, undefined, (book) => book.replace(name, record));
}

/** Records one step. @param record JSON text @returns the earlier record, which wins. @throws {ApiError} 413 */
export function noteStep(
  q: Parts,
  row: JobRow,
  { name, record }: Pick<StepRequest, 'name' | 'record'>,
  now: number,
): StepRecord | undefined {
  const earlier = inBook(q, row, now, undefined, (book) => book.add(name, JSON.parse(record) as StepRecord));
  // A step on record does not run again: what it wrote must be there.
  q.store.streams.flush(row.key);
  return whole(q, row.key, name, earlier);
}

/** {@link noteStep} for a worker's report. @throws {ApiError} 404; 409 fenced as a checkpoint is; 413 */
export function recordStep(q: Parts, request: StepRequest, now: number): StepReceipt {
  const earlier = noteStep(q, openRow(q, request, 'its steps', now), request, now);
  return earlier === undefined ? {} : { earlier: JSON.stringify(earlier) };
}

/** What a runner asks for that got a record without its large result. @throws {ApiError} 404 */
export function recall(q: Stored, key: number, name: string): StepRecord | undefined {
  const record = own(recordedSteps(q, key), name);
  if (!record) throw noStep(name);
  return whole(q, key, name, record);
}

/** The large values of these steps. @throws {ApiError} 404 */
export const stepPartsOf = (q: Named & Stored, id: string, names: readonly string[]): StepPart[] =>
  q.store.checkpoints.values.copy(keyOfFound(mustFindForReport(q, id)), names);

/** JSON text of the job's recorded steps. @throws {ApiError} 404 */
export const stepsOf = (q: Named & Stored, id: string): string =>
  q.store.checkpoints.steps(keyOfFound(mustFindForReport(q, id))) ?? '{}';

/** Replaces the job's checkpoint, in any state but a terminal one. One row written. @throws {ApiError} 404, 409 */
export const saveCheckpoint = (q: Named & Stored, request: CheckpointRequest, now: number): StoredCheckpoint =>
  q.store.checkpoints.save(openRow(q, request, 'its checkpoint', now).key, request.content, now);

/** The job's checkpoint, or null. @throws {ApiError} 404 when there is no such job */
export const checkpointOf = (q: Named & Stored, id: string): StoredCheckpoint | null =>
  q.store.checkpoints.read(keyOfFound(mustFindForReport(q, id))) ?? null;

/** Deletes the job's checkpoint, if it has one; the next one starts again at 1. @throws {ApiError} 404, 409 */
export function deleteCheckpoint(q: Named & Stored, request: AttemptName, now: number): { job_id: string } {
  const found = mustFindForReport(q, request.job_id);
  const { row } = found;
  fenced(q, found, request, row ? stateOf(row, q.store.leases.active.has(row.key), now) : 'completed');
  q.store.checkpoints.removeOwn(keyOfFound(found));
  return { job_id: request.job_id };
}

interface JobNotes {
  steps?: StepBook;
  checkpoint?: { content: string; saves: number };
}

/** Checkpoints and steps in one message's reports: a row may have 1.7 MB, so it is read and written once. */
export class GatheredNotes {
  private readonly said = new Map<number, JobNotes>();

  /** @param now epoch ms */
  constructor(
    private readonly q: Named & Stored & Observed,
    private readonly now: number,
  ) {}

  private of(key: number): JobNotes {
    const said = this.said.get(key) ?? {};
    this.said.set(key, said);
    return said;
  }

  saveCheckpoint(key: number, content: string): void {
    const said = this.of(key);
    said.checkpoint = { content, saves: (said.checkpoint?.saves ?? 0) + 1 };
    this.q.store.written.spend(content.length);
  }

  /** The job records a step. @returns the earlier record, which wins. @throws {ApiError} as `StepBook.add` */
  recordStep(row: JobRow, name: string, record: StepRecord): StepRecord | undefined {
    const { key } = row;
    const said = this.of(key);
    said.steps ??= new StepBook(this.q.store.checkpoints.steps(key), this.now);
    const earlier = said.steps.add(name, record);
    if (!earlier) emitStep(this.q, row, name, record, this.now);
    // The result may be of this very message.
    if (earlier?.result_bytes !== undefined) this.write(key);
    return whole(this.q, key, name, earlier);
  }

  write(key: number): void {
    const { q, now } = this;
    const { steps, checkpoint } = this.said.get(key) ?? {};
    this.said.delete(key);
    if (checkpoint) q.store.checkpoints.save(key, checkpoint.content, now, checkpoint.saves);
    if (steps) saveBook(q, key, steps, now);
  }

  end(): void {
    for (const key of [...this.said.keys()]) this.write(key);
  }
}
