/** Jobs that a handler waits for: how it asks for them, and how their ends change its records. Pure. */
import { utf8Bytes } from './bytes';
import { MAX_DURATION_MS } from './duration';
import { isObject, optional, type Reader, readBoolean, readInteger, readList, readObject } from './envelope/fields';
import { MAX_BATCH_SIZE } from './envelope/names';
import { ApiError, type ErrorData, invalidRequest, payloadTooLarge } from './errors';
import { own } from './own';
import { isFinal, MAX_STEPS, readStepName, type StepBook, type StepRecord, type Steps } from './steps';
import { refuseOthers } from './unknown-members';
import type { RunEnd, RunError, RunRequest, StepRun } from './wire';

/** How long a handler waits for its runs, unless it says otherwise: 7 days, in ms. */
export const RUN_TIMEOUT_MS = 7 * 24 * 3_600_000;

/** Groups that the jobs above one may hold, at most, and how many of these jobs wait for one another. */
export const MAX_HELD = 16;
export const MAX_RUN_DEPTH = 100;

/** Bytes of results in a record: of one job, of each of several, and of all of these. */
export const MAX_RESULT_BYTES = 64 * 1024;
export const MAX_LISTED_BYTES = 16 * 1024;
const MAX_LIST_BYTES = 256 * 1024;

const MEMBERS = ['name', 'jobs', 'timeout_ms', 'all', 'stop', 'detached'] as const;
const readTimeout = readInteger(0, MAX_DURATION_MS);
const readJobs = readList(Number.POSITIVE_INFINITY, readObject);

function readRun(value: unknown, field: string): RunRequest {
  if (!isObject(value)) throw invalidRequest(field, `${field} must be an object.`);
  refuseOthers(value, MEMBERS);
  const path = `${field}.`;
  const run: RunRequest = { name: readStepName(value.name, `${path}name`) };
  const jobs = optional(value, 'jobs', readJobs, path);
  const timeout = optional(value, 'timeout_ms', readTimeout, path);
  if (jobs) run.jobs = jobs as NonNullable<RunRequest['jobs']>;
  if (timeout !== undefined) run.timeout_ms = timeout;
  for (const flag of ['all', 'stop', 'detached'] as const) {
    if (optional(value, flag, readBoolean, path)) run[flag] = true;
  }
  if (jobs && (run.all ? jobs.length === 0 : jobs.length !== 1)) {
    throw invalidRequest(`${path}jobs`, `${path}jobs must have one job, or several together with "all": true.`);
  }
  return run;
}

/** Runs by different names, with 1,000 jobs in all at most. @throws {ApiError} 400, 413 */
export const readRuns: Reader<RunRequest[]> = (value, field) => {
  if (!Array.isArray(value)) throw invalidRequest(field, `${field} must be an array of runs.`);
  if (value.length > MAX_STEPS) throw payloadTooLarge(field, value.length, MAX_STEPS, 'runs');
  const runs = value.map((run, index) => readRun(run, `${field}[${index}]`));
  const jobs = runs.reduce((sum, run) => sum + (run.jobs?.length ?? 0), 0);
  if (jobs > MAX_BATCH_SIZE) throw payloadTooLarge(field, jobs, MAX_BATCH_SIZE, 'jobs');
  const names = new Set<string>();
  for (const [index, { name }] of runs.entries()) {
    if (names.has(name)) throw invalidRequest(`${field}[${index}].name`, `${field}[${index}].name is used twice.`);
    names.add(name);
  }
  return runs;
};

export type Pending = StepRecord & { until: number; run: StepRun };

export const isPendingRun = (record: StepRecord | undefined): record is Pending =>
  record?.run !== undefined && record.until !== undefined;

/** Why a job could not be started. */
export function runErrorOf({ code, type = code, message, details }: ErrorData): RunError {
  return { code, type, message, ...(details !== undefined && { details }) };
}

/** The jobs of a record that may still run, with their queues, but for those without an id. */
export function runningIn({ id, ids, ends, queue, queues }: StepRun): { id: string; queue: string }[] {
  if (ids === undefined) return id === undefined ? [] : [{ id, queue }];
  const ended = new Set(ends?.map(([place]) => place));
  return ids.flatMap((one, place) =>
    one === null || ended.has(place) ? [] : [{ id: one, queue: queues?.[place] ?? queue }],
  );
}

/** May the handler continue that waits for these? All have ended, or one of them has failed. */
export function mayContinue(steps: Steps, names: readonly string[]): boolean {
  const records = names.map((name) => own(steps, name));
  const hasFailed = (record: StepRecord | undefined) => record?.error !== undefined || (record?.run?.failed ?? 0) > 0;
  return !records.some(isPendingRun) || records.some((record) => !isPendingRun(record) && hasFailed(record));
}

/**
 * Records the end of a job; of several, one place of their list, which is the result once all have ended, or one has
 * failed and stops the others. The first end counts, but a result takes the place of an error.
 * @returns the jobs that are no longer waited for
 */
export function endRun(
  book: StepBook,
  name: string,
  end: RunEnd,
  place: number | undefined,
): { id: string; queue: string }[] {
  const record = own(book.steps, name);
  if (!record?.run) return [];
  const { run } = record;
  if (run.jobs === undefined) {
    if (isFinal(record) && !(record.error !== undefined && end.error === undefined)) return [];
    const ended = { ...run, ...(end.id !== undefined && { id: end.id }) };
    const { id: _, omitted, error, result = null } = end;
    const kept = omitted === undefined ? result : { id: end.id, omitted };
    keep(book, name, error ? { error, run: ended } : { result: kept, run: ended }, {
      result: { id: end.id, omitted: bytesIn(kept) },
      run: ended,
    });
    return [];
  }
  if (place === undefined || place >= run.jobs) return [];
  if (isPendingRun(record)) return endPlace(book, name, record, end, place);
  const list = record.result;
  if (end.error !== undefined || !Array.isArray(list) || (list[place] as RunEnd | undefined)?.error === undefined)
    return [];
  const changed = list.with(place, within(end, bytesIn(list)));
  book.put(name, { result: changed, run: { ...run, failed: Math.max(0, (run.failed ?? 0) - 1) } }, true);
  return [];
}

function endPlace(
  book: StepBook,
  name: string,
  record: Pending,
  end: RunEnd,
  place: number,
): { id: string; queue: string }[] {
  const { until, run } = record;
  const { ends = [], ids = [], jobs = 0, ended = 0, failed = 0, ...rest } = run;
  if (ends.some(([other]) => other === place)) return [];
  const now: StepRun = {
    ...rest,
    ids: end.id === undefined ? ids : ids.with(place, end.id),
    ...{ jobs, ended: ended + 1, failed: failed + (end.error ? 1 : 0) },
    ends: [...ends, [place, within(end, bytesIn(ends))]],
  };
  const isStopped = now.stop === true && end.error !== undefined;
  if (now.ended !== jobs && !isStopped) {
    book.put(name, { until, run: now }, true);
    return [];
  }
  const { ends: all = [], ...over } = now;
  const byPlace = new Map(all);
  const list = Array.from({ length: jobs }, (_, at) => byPlace.get(at) ?? stopped(over.ids?.[at] ?? undefined));
  book.put(name, { result: list, run: over }, true);
  return isStopped ? runningIn(now) : [];
}

const stopped = (id: string | undefined): RunEnd => ({
  ...(id !== undefined && { id }),
  error: { code: 'cancelled', type: 'cancelled', message: 'Another job failed, which stops all.', state: 'cancelled' },
});

const bytesIn = (value: unknown) => utf8Bytes(JSON.stringify(value) ?? '');

/** The end with its result, if the list has room for it. @param taken bytes of the list so far */
function within(end: RunEnd, taken: number): RunEnd {
  if (end.result === undefined) return end;
  const bytes = bytesIn(end.result);
  const { result: _, ...rest } = end;
  return bytes <= MAX_LISTED_BYTES && taken + bytes <= MAX_LIST_BYTES ? end : { ...rest, omitted: bytes };
}

/** Records the end, without its result where the records have no room for that. */
function keep(book: StepBook, name: string, record: StepRecord, brief: StepRecord): void {
  try {
    book.put(name, record);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    book.put(name, record.error === undefined ? brief : record, true);
  }
}
