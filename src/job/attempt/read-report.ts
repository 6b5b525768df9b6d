import {
  defined,
  isObject,
  optional,
  readInteger,
  readName,
  readObject,
  readPathName,
  readWord,
  setDefined,
} from '../envelope/fields';
import { invalidRequest, notFound, type Outcome, outcomeOf, payloadTooLarge } from '../errors';
import { isUuidV7 } from '../ids';
import { readStepName, readStepSaid } from '../steps';
import { refuseOthers } from '../unknown-members';
import { checkpointContent, readProgress } from './notes';
import type { AttemptName, EndReport, Report } from './outcome';
import { readAcked, readNacked } from './read-outcome';

type JsonObject = Record<string, unknown>;

/** Longest name of a worker and of what it says about itself, in characters. */
export const MAX_NAME = 255;
const readAttemptNumber = readInteger(1, 2_147_483_647);

export const readWorkerId = readPathName(MAX_NAME);
const readDeliveryId = readName(MAX_NAME);

export interface ReportNaming {
  pathId?: string | undefined;
  /** What stands in for a missing `delivery_id`. */
  delivery?: string | undefined;
}

/** Members of all reports. */
const NAMES = ['action', 'job_id', 'attempt', 'delivery_id', 'worker_id'] as const;

/** The members of each report besides its attempt, the one that most likely was meant by another name first. */
const MEMBERS = {
  ack: ['result', 'log'],
  nack: ['error', 'requeue', 'attempt_used', 'snooze', 'log'],
  progress: ['progress', 'percentage', 'message', 'data', 'checkpoint'],
  checkpoint: ['state', 'step_index', 'metadata'],
  step: ['result', 'error', 'until', 'timed_out', 'tries', 'failed', 'begun', 'undo', 'name'],
  stream: ['chunks', 'first', 'execution', 'step', 'flush'],
  log: ['lines'],
  removal: [],
} as const;

/** What is reported. `removal`: that the checkpoint is needed no more. */
export type ReportKind = keyof typeof MEMBERS;

/** The attempt of a report. @throws {ApiError} 400: no job, two jobs or an unknown member; 404: it is not a job id */
export function readAttempt(body: JsonObject, { pathId, delivery }: ReportNaming, kind: ReportKind): AttemptName {
  refuseOthers(body, MEMBERS[kind], NAMES);
  const job_id = body.job_id ?? pathId;
  if (typeof job_id !== 'string') throw invalidRequest('job_id', 'job_id is required and must be a string.');
  if (pathId !== undefined && job_id !== pathId) {
    throw invalidRequest('job_id', 'job_id differs from the job named in the path.');
  }
  if (!isUuidV7(job_id)) throw notFound('job', job_id);
  const name: AttemptName = { job_id };
  setDefined(name, 'attempt', optional(body, 'attempt', readAttemptNumber));
  setDefined(name, 'delivery_id', optional(body, 'delivery_id', readDeliveryId) ?? delivery);
  setDefined(name, 'worker_id', optional(body, 'worker_id', readWorkerId));
  return name;
}

/** Reads an ack in a request of its own. @throws {ApiError} 400, 404, or 413 for a result above 1 MiB */
export const readAck = (body: JsonObject, naming: ReportNaming, now: number): EndReport =>
  readAcked(readAttempt(body, naming, 'ack'), body, now, false);

/** Reads a nack. @throws {ApiError} 400 or 404 */
export function readNack(body: JsonObject, naming: ReportNaming, now: number): EndReport {
  const outcome = readNacked(body, now);
  return Object.assign(outcome, readAttempt(body, naming, 'nack'));
}

const MAX_REPORTS = 1000;

const ACTIONS = ['ack', 'nack', 'progress', 'checkpoint', 'step'] as const;
const readAction = readWord(ACTIONS);

/** Reads reports; a wrong one keeps its error. @param workerId where they name none @throws {ApiError} 400, 413 */
export function readReports(
  value: unknown,
  field: string,
  workerId: string | undefined,
  now: number,
): Outcome<Report>[] {
  if (!Array.isArray(value)) throw invalidRequest(field, `${field} must be an array of reports.`);
  if (value.length > MAX_REPORTS) throw payloadTooLarge(field, value.length, MAX_REPORTS, 'reports');
  return value.map((entry: unknown, index) =>
    ofJob(
      entry,
      outcomeOf(() => readReport(readObject(entry, `${field}[${index}]`), workerId, now)),
    ),
  );
}

/** A refusal says which job it is about, as far as its report did. */
function ofJob(entry: unknown, outcome: Outcome<Report>): Outcome<Report> {
  const job_id = isObject(entry) ? entry.job_id : undefined;
  if (outcome.ok || typeof job_id !== 'string' || !isUuidV7(job_id)) return outcome;
  return { ok: false, error: { ...outcome.error, details: { ...outcome.error.details, job_id } } };
}

function readReport(body: JsonObject, workerId: string | undefined, now: number): Report {
  const report = readAs(optional(body, 'action', readAction), body, now);
  if (workerId !== undefined) report.worker_id ??= workerId;
  return report;
}

function readAs(action: (typeof ACTIONS)[number] | undefined, body: JsonObject, now: number): Report {
  // Most reports are acks: nothing of them is copied. A worker that reports many at once lets go of their jobs.
  if (action === 'ack') return readAcked(readAttempt(body, {}, 'ack'), body, now, true);
  if (action === 'nack') return readNack(body, {}, now);
  if (action === undefined)
    throw invalidRequest('action', `action is required and must be one of ${ACTIONS.join(', ')}.`);
  if (action === 'checkpoint') {
    return { ...readAttempt(body, {}, 'checkpoint'), kind: 'checkpoint', content: checkpointContent(body) };
  }
  if (action === 'step') {
    const name = readStepName(body.name, 'name');
    return { ...readAttempt(body, {}, 'step'), kind: 'step', name, record: JSON.stringify(readStepSaid(body)) };
  }
  const progress = readProgress(body);
  if (progress === undefined)
    throw invalidRequest('progress', 'progress (0 to 1) or percentage (0 to 100) is required.');
  const { checkpoint: state = null } = body;
  const checkpoint = state === null ? undefined : checkpointContent({ state }, 'checkpoint');
  return { ...readAttempt(body, {}, 'progress'), kind: 'progress', ...progress, ...defined({ checkpoint }) };
}
