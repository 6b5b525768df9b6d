/** Jobs that a handler waits for: how it asks for them, and how their ends change its records. Pure. */
import { utf8Bytes } from './bytes';
import { MAX_DURATION_MS } from './duration';
import { isObject, optional, type Reader, readBoolean, readInteger, readList, readObject } from './envelope/fields';
import { MAX_BATCH_SIZE } from './envelope/names';
import { ApiError, type ErrorData, invalidRequest, payloadTooLarge } from './errors';
import { own } from './own';
import { END_BYTES, isFinal, MAX_STEPS, readStepName, type StepBook, type StepRecord, type Steps } from './steps';
import { cut } from './text';
import { refuseOthers } from './unknown-members';
import type { RunEnd, RunError, RunRequest, StepRun } from './wire';

/** How long a handler waits for its runs, unless it says otherwise: 7 days, in ms. */
export const RUN_TIMEOUT_MS = 7 * 24 * 3_600_000;

/** Groups that the jobs above one may hold, at most, and how many of these jobs wait for one another. */
export const MAX_HELD = 16;
export const MAX_RUN_DEPTH = 100;

/** Bytes of the result of each of several jobs, and of all their ends, but for the least that each of them takes. */
export const MAX_LISTED_BYTES = 16 * 1024;
const MAX_LIST_BYTES = 256 * 1024;
/** Bytes of an end for which there is room in any case: what is kept free, but for its place and the job's id. */
const LEAST_BYTES = END_BYTES - 48;
/** Bytes of a code, and characters of a message, where there is no room for all of an error. */
const MAX_BRIEF = 64;

const MEMBERS = ['name', 'jobs', 'timeout_ms', 'all', 'stop', 'detached', 'undo'] as const;
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
  for (const flag of ['all', 'stop', 'detached', 'undo'] as const) {
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
export function runningIn({ id, ids, ends, queue, queues }: StepRun): Jobs {
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

/** The end of a job, with its place where its run has several. */
export interface PlacedEnd extends RunEnd {
  place?: number | undefined;
}

type Jobs = { id: string; queue: string }[];

/**
 * Records ends of jobs of one run; of several jobs, places of their list, which is the result once all have ended, or
 * one has failed and stops the others. The first end counts, but a result takes the place of an error.
 * @param record with its result, however large that is @returns the jobs that are no longer waited for
 */
export function endRun(book: StepBook, name: string, record: StepRecord | undefined, ends: readonly PlacedEnd[]): Jobs {
  const { run } = record ?? {};
  if (!record || !run) return [];
  if (run.jobs !== undefined) return endPlaces(book, name, { ...record, run }, ends);
  const end = ends.find(({ error }) => !error) ?? ends[0];
  if (end && (!isFinal(record) || (record.error !== undefined && !end.error))) endSingle(book, name, run, end);
  return [];
}

function endSingle(book: StepBook, name: string, before: StepRun, { id, error, omitted, result = null }: RunEnd): void {
  const run = { ...before, ...(id !== undefined && { id }) };
  if (error) {
    book.put(name, { error: within({ error }, Math.max(0, book.room) + LEAST_BYTES).error, run }, true);
    return;
  }
  try {
    book.put(name, { result: omitted === undefined ? result : { id, omitted }, run });
  } catch (refused) {
    if (!(refused instanceof ApiError)) throw refused;
    book.put(name, { result: { id, omitted: omitted ?? bytesIn(result) }, run }, true);
  }
}

function endPlaces(
  book: StepBook,
  name: string,
  record: StepRecord & { run: StepRun },
  given: readonly PlacedEnd[],
): Jobs {
  const { run } = record;
  const { ends = [], ids: known = [], jobs = 0, ...rest } = run;
  const isPending = isPendingRun(record);
  const { result } = record;
  // An operator may have answered with something else.
  const list = Array.isArray(result) && result.length === jobs && result.every(isObject) ? (result as RunEnd[]) : [];
  if (!isPending && list.length === 0) return [];
  const all = new Map(isPending ? ends : list.entries());
  const ids = [...known];
  let { ended = 0 } = run;
  let listed = bytesIn([...all.values()]);
  let { room } = book;
  let isOpen = isPending;
  let running: Jobs = [];
  const changed = given.filter(({ place = jobs, ...end }) => {
    const before = all.get(place);
    if (place >= jobs || (before && (!before.error || end.error))) return false;
    const free = before ? bytesIn(before) : LEAST_BYTES;
    const kept = within(end, Math.max(0, Math.min(MAX_LIST_BYTES - listed, room)) + free);
    all.set(place, kept);
    listed += bytesIn(kept) - (before ? free : 0);
    room += free - bytesIn(kept);
    if (end.id !== undefined) ids[place] = end.id;
    if (!isOpen) return true;
    ended = all.size;
    const isStopped = run.stop === true && end.error !== undefined;
    isOpen = ended < jobs && !isStopped;
    if (!isStopped) return true;
    running = runningIn({ ...run, ids, ends: [...all] });
    for (let at = 0; at < jobs; at++) if (!all.has(at)) all.set(at, stopped(ids[at] ?? undefined));
    return true;
  });
  if (changed.length === 0) return [];
  const failed = [...all.values()].filter(({ error }) => error).length;
  const now: StepRun = { ...rest, ids, jobs, ended, failed };
  if (isOpen) book.put(name, { until: record.until as number, run: { ...now, ends: [...all] } }, true);
  else book.put(name, { result: Array.from({ length: jobs }, (_, at) => all.get(at)), run: now }, true);
  return running;
}

const stopped = (id: string | undefined): RunEnd => ({
  ...(id !== undefined && { id }),
  error: { code: 'cancelled', type: 'cancelled', message: 'Another job failed, which stops all.', state: 'cancelled' },
});

const bytesIn = (value: unknown) => utf8Bytes(JSON.stringify(value) ?? '');

/** The end, cut to `most` bytes where it is longer; {@link LEAST_BYTES} always suffice. */
function within(end: RunEnd, most: number): RunEnd {
  if (bytesIn(end) <= most) return end;
  const { result, error, ...rest } = end;
  if (!error) return { ...rest, omitted: bytesIn(result) };
  const { details: _, ...brief } = error;
  const code = bytesIn(error.code) <= MAX_BRIEF ? error.code : 'too_long';
  const least = { code, message: 'There is no room for its error.', ...(error.state && { state: error.state }) };
  const shorter = [brief, { ...brief, message: cut(error.message, MAX_BRIEF) }];
  return { ...rest, error: shorter.find((one) => bytesIn({ ...rest, error: one }) <= most) ?? least };
}
