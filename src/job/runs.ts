/** Jobs that a handler waits for, as it asks for them at the end of its run. Pure. */
import { MAX_DURATION_MS } from './duration';
import { isObject, optional, type Reader, readBoolean, readInteger, readList, readObject } from './envelope/fields';
import { MAX_BATCH_SIZE } from './envelope/names';
import { invalidRequest, payloadTooLarge } from './errors';
import { MAX_STEPS, readStepName } from './steps';
import { refuseOthers } from './unknown-members';
import type { RunRequest } from './wire';

/** How long a handler waits for its runs, unless it says otherwise: 7 days, in ms. */
export const RUN_TIMEOUT_MS = 7 * 24 * 3_600_000;

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
