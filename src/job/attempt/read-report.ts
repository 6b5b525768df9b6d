/** What workers say about an attempt: acks and nacks, read into what a queue object takes. */
import { MAX_DURATION_MS } from '../duration';
import {
  defined,
  given,
  isObject,
  optional,
  type Reader,
  readBoolean,
  readDuration,
  readInteger,
  readList,
  readName,
  readObject,
  readString,
  readWord,
  setDefined,
  withinBytes,
} from '../envelope/fields';
import { MAX_RESULT_BYTES } from '../envelope/names';
import { invalidRequest, notFound, type Outcome, outcomeOf, payloadTooLarge } from '../errors';
import { isUuidV7 } from '../ids';
import { type LogLine, readLines } from '../log';
import type { ReportedError, Snooze } from '../record';
import { readStepName, readStepSaid, readSteps, stepsText } from '../steps';
import { parseTimestamp } from '../time';
import { boundedError } from './bounded-error';
import { checkpointContent, type Progress, readProgress } from './notes';

type JsonObject = Record<string, unknown>;

/** Names the attempt that a report is about; absent members are not checked. */
export interface AttemptName {
  job_id: string;
  attempt?: number;
  delivery_id?: string;
  worker_id?: string;
}

export interface AckRequest extends AttemptName {
  /** JSON text of the result, if one was given. */
  result?: string;
  /** What the attempt has logged. */
  log?: LogLine[];
}

export interface NackRequest extends AttemptName {
  error: ReportedError;
  /** Give the job back without an error; the attempt stays counted… */
  requeue?: boolean;
  /** …unless this is false: the handler was never called. */
  attempt_used?: boolean;
  /** The handler goes on later. */
  snooze?: Snooze;
  /** What the attempt has logged. */
  log?: LogLine[];
}

/** One of many reports: how an attempt ended, or what it says while it goes on. Contents and records are JSON texts. */
export type Report =
  | ({ action: 'ack' } & AckRequest)
  | ({ action: 'nack' } & NackRequest)
  | ({ action: 'progress' } & AttemptName & Progress & { checkpoint?: string })
  | ({ action: 'checkpoint' } & AttemptName & { content: string })
  | ({ action: 'step' } & AttemptName & { name: string; record: string });

/** Longest name of a worker and of what it says about itself, in characters. */
export const MAX_NAME = 255;
const readAttemptNumber = readInteger(1, 2_147_483_647);

/** The worker's name for itself. */
export const readWorkerId = readName(MAX_NAME);
const readDeliveryId = readName(MAX_NAME);

/** Most classes of an error that are read; of these the first ones count. */
const MAX_CLASSES = 10_000;

/** Code of a failure whose handler named none. */
const DEFAULT_ERROR_CODE = 'handler_error';

/** What a request says of its report outside of its body. */
export interface ReportNaming {
  /** The job that its path names. */
  pathId?: string | undefined;
  /** What stands in for a missing `delivery_id`. */
  delivery?: string | undefined;
}

/**
 * The attempt that a report is about. The path names the job, or else the body.
 * @throws {ApiError} 400 when neither names the job or both name different ones, 404 when it is no job id
 */
export function readAttempt(body: JsonObject, { pathId, delivery }: ReportNaming): AttemptName {
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

/** Reads an ack. @throws {ApiError} 400, 404, or 413 for a result above 1 MiB */
export function readAck(body: JsonObject, naming: ReportNaming, now: number): AckRequest {
  const ack: AckRequest = readAttempt(body, naming);
  const { result = null } = body;
  setDefined(ack, 'log', optional(body, 'log', readLines(now)));
  if (result !== null) ack.result = withinBytes(JSON.stringify(result), MAX_RESULT_BYTES, 'result');
  return ack;
}

/** Reads a nack. @throws {ApiError} 400 or 404 */
export function readNack(body: JsonObject, naming: ReportNaming, now: number): NackRequest {
  const requeue = optional(body, 'requeue', readBoolean);
  const attempt_used = optional(body, 'attempt_used', readBoolean);
  if (attempt_used === false && requeue !== true) {
    throw invalidRequest('attempt_used', 'attempt_used may be false only together with "requeue": true.');
  }
  const snooze = optional(body, 'snooze', readSnooze(now));
  if (snooze && (requeue !== true || attempt_used !== false)) {
    throw invalidRequest('snooze', 'snooze goes together with "requeue": true and "attempt_used": false.');
  }
  const log = optional(body, 'log', readLines(now));
  const error = readReportedError(body.error, now);
  return { ...readAttempt(body, naming), error, ...defined({ requeue, attempt_used, snooze, log }) };
}

/** Most reports in one request. */
const MAX_REPORTS = 1000;

const ACTIONS = ['ack', 'nack', 'progress', 'checkpoint', 'step'] as const;
const readAction = readWord(ACTIONS);

/**
 * Reads many reports; a wrong one keeps its error. Fields in errors are named as in a request of their own.
 * @param workerId of those that name none
 * @throws {ApiError} 400 when it is no list; 413 when it is too long
 */
export function readReports(
  value: unknown,
  field: string,
  workerId: string | undefined,
  now: number,
): Outcome<Report>[] {
  if (!Array.isArray(value)) throw invalidRequest(field, `${field} must be an array of reports.`);
  if (value.length > MAX_REPORTS) throw payloadTooLarge(field, value.length, MAX_REPORTS, 'reports');
  return value.map((entry: unknown, index) =>
    outcomeOf(() => readReport(readObject(entry, `${field}[${index}]`), workerId, now)),
  );
}

function readReport(body: JsonObject, workerId: string | undefined, now: number): Report {
  const report = readAs(optional(body, 'action', readAction), body, now);
  if (workerId !== undefined) report.worker_id ??= workerId;
  return report;
}

function readAs(action: Report['action'] | undefined, body: JsonObject, now: number): Report {
  // Most reports are acks: nothing of them is copied.
  if (action === 'ack') return Object.assign(readAck(body, {}, now), { action });
  if (action === 'nack') return { action, ...readNack(body, {}, now) };
  if (action === undefined)
    throw invalidRequest('action', `action is required and must be one of ${ACTIONS.join(', ')}.`);
  if (action === 'checkpoint') return { action, ...readAttempt(body, {}), content: checkpointContent(body) };
  if (action === 'step') {
    const name = readStepName(body.name, 'name');
    return { action, ...readAttempt(body, {}), name, record: JSON.stringify(readStepSaid(body)) };
  }
  const progress = readProgress(body);
  if (progress === undefined)
    throw invalidRequest('progress', 'progress (0 to 1) or percentage (0 to 100) is required.');
  const { checkpoint: state = null } = body;
  const checkpoint = state === null ? undefined : checkpointContent({ state }, 'checkpoint');
  return { action, ...readAttempt(body, {}), ...progress, ...defined({ checkpoint }) };
}

/** When the job goes on: `in` (a duration), `until` (a time), `signal`; and the steps so far. */
const readSnooze =
  (now: number): Reader<Snooze> =>
  (value, field) => {
    if (!isObject(value)) throw invalidRequest(field, `${field} must be an object.`);
    const path = `${field}.`;
    const after = optional(value, 'in', readDuration, path);
    const until = given(optional(value, 'until', readRunAt(now), path), momentOf);
    const signal = optional(value, 'signal', readStepName, path);
    if (after !== undefined && until !== undefined)
      throw invalidRequest(`${path}until`, `Name ${path}in or ${path}until.`);
    if (after === undefined && until === undefined && signal === undefined) {
      throw invalidRequest(field, `${field} must name in, until or signal.`);
    }
    const steps = given(optional(value, 'steps', readSteps, path), stepsText);
    return defined({ in: after, until, signal, steps });
  };

const momentOf = (at: unknown): number => (typeof at === 'number' ? at : (parseTimestamp(at) as number));

/** A failure: an object, a plain string that is its message, or nothing. Texts that are too long are cut. */
function readReportedError(value: unknown, now: number): ReportedError {
  if (value === undefined || value === null) return { code: DEFAULT_ERROR_CODE, message: '' };
  if (typeof value === 'string') return boundedError({ code: DEFAULT_ERROR_CODE, message: value });
  if (!isObject(value)) throw invalidRequest('error', 'error must be an object or a string.');
  const read = <T>(name: string, reader: Reader<T>): T | undefined => optional(value, name, reader, 'error.');
  return boundedError<ReportedError>(
    defined({
      code: read('code', readString) || DEFAULT_ERROR_CODE,
      type: read('type', readString) || undefined,
      message: read('message', readString) ?? '',
      retryable: read('retryable', readBoolean),
      details: value.details ?? undefined,
      classes: read('classes', readList(MAX_CLASSES, readString)),
      kill: read('kill', readBoolean),
      retry_in: read('retry_in', checked(readDuration)),
      retry_at: read('retry_at', checked(readRunAt(now))),
      stack: read('stack', readString) || undefined,
    }),
  );
}

/** Checks a value but keeps it as written: the queue object reads it with its own clock. */
function checked(reader: Reader<unknown>): Reader<unknown> {
  return (value, field) => {
    reader(value, field);
    return value;
  };
}

/** A moment to run again at. One in the past means now; one that no duration reaches comes from a broken clock. */
const readRunAt =
  (now: number): Reader<unknown> =>
  (value, field) => {
    const isEpoch = Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 8.64e15;
    const at = isEpoch ? (value as number) : parseTimestamp(value);
    if (at === undefined) {
      throw invalidRequest(field, `${field} must be an RFC 3339 time with a zone, or epoch milliseconds.`);
    }
    if (at - now > MAX_DURATION_MS) throw invalidRequest(field, `${field} must be within 36500 days from now.`);
    return value;
  };
