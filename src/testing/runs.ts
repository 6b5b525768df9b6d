/** Ends of jobs that a handler waits for, as a test gives them. */
import { failureOf } from '../handler/failure';
import type { RunRecord, StepRecord } from '../handler/step-rules';
import { jsonCopy } from '../handler/text';
import { DEFAULT_QUEUE } from '../job/options';
import { own } from '../job/own';
import { isError } from '../job/thrown';
import type { RunEnd, RunError, RunRequest, StepRun } from '../job/wire';

/** The ids of jobs: always the same, so that a test may compare what was made of them. */
export const idOf = (at: number): string => `01900000-0000-7000-8000-${String(at + 1).padStart(12, '0')}`;

/** How a job ended: its result, or its error. What `runHandler` returns is one, too. */
export interface PlayedEnd {
  result?: unknown;
  error?: Error | (Partial<Omit<RunError, 'message'>> & { message: string }) | undefined;
}

/** How awaited jobs ended, by the names of the calls; or a function of each job. Others are still waited for. */
export type PlayedRuns =
  | Readonly<Record<string, PlayedEnd | readonly PlayedEnd[]>>
  | ((type: string, args: readonly unknown[], name: string) => PlayedEnd | undefined | Promise<PlayedEnd>);

/** The record of jobs that have begun. */
export function pendingRun({ jobs = [], timeout_ms = 0, ...asked }: RunRequest, now: number): RunRecord {
  const { type = '', options } = jobs[0] ?? {};
  const run: StepRun = { queue: options?.queue ?? DEFAULT_QUEUE, type };
  if (asked.all) Object.assign(run, { jobs: jobs.length, ended: 0, failed: 0 });
  else run.id = idOf(1);
  return { until: now + timeout_ms, run };
}

/** The record of jobs that a test plays; undefined: they have not ended. @throws {TypeError} for a list that is none */
export function playedRun(asked: RunRequest, runs: PlayedRuns, now: number): Promise<RunRecord> | undefined {
  const { name, jobs = [] } = asked;
  const pending = pendingRun(asked, now);
  if (typeof runs !== 'function') {
    const ended = endedRun(name, pending, runs, now);
    return ended && Promise.resolve(ended);
  }
  const ends = jobs.map(({ type, args }) => runs(type, args, name));
  const given = ends.filter((end) => end !== undefined);
  if (given.length < ends.length) return undefined;
  return Promise.all(given).then((all) => recordOf(pending, all, now));
}

/** The records of a job, with the ends that have come since. */
export function withEnds(
  steps: Readonly<Record<string, StepRecord>>,
  runs: PlayedRuns,
  now: number,
): Record<string, StepRecord> {
  if (typeof runs === 'function') return { ...steps };
  const ended = Object.entries(steps).map(([name, record]) => {
    const isPending = record.run !== undefined && 'until' in record;
    return [name, (isPending && endedRun(name, record as RunRecord, runs, now)) || record] as const;
  });
  return Object.fromEntries(ended);
}

function endedRun(
  name: string,
  pending: RunRecord,
  runs: Exclude<PlayedRuns, (...args: never[]) => unknown>,
  now: number,
): RunRecord | undefined {
  const given = own(runs, name);
  if (given === undefined) return undefined;
  const expected = pending.run.jobs;
  if (expected === undefined ? Array.isArray(given) : !Array.isArray(given) || given.length !== expected) {
    const wanted = expected === undefined ? '{ result } or { error }' : `a list of ${expected} ends`;
    throw new TypeError(`runHandler: runs.${name} must be ${wanted}`);
  }
  return recordOf(pending, [given].flat() as PlayedEnd[], now);
}

function recordOf({ run }: RunRecord, ends: readonly PlayedEnd[], at: number): RunRecord {
  const all = ends.map((end, index): RunEnd => ({ id: idOf(index + 1), ...endOf(end) }));
  if (run.jobs !== undefined) {
    const failed = all.filter(({ error }) => error).length;
    const ids = all.map(({ id = null }) => id);
    return { result: all, run: { ...run, ids, ended: all.length, failed }, at };
  }
  const [{ error, result } = { result: null }] = all;
  return error ? { error, run, at } : { result, run, at };
}

function endOf({ result, error }: PlayedEnd): { result: unknown } | { error: RunError } {
  if (error === undefined) return { result: jsonCopy(result, 'runHandler: a result in runs') ?? null };
  const { code = 'handler_error', type, message, details } = isError(error) ? failureOf(error) : error;
  const state = isError(error) ? undefined : error.state;
  const known = { code, type, message, details, state: state ?? 'discarded' };
  return { error: jsonCopy(known, 'runHandler: an error in runs') as RunError };
}
