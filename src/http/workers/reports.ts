/** What workers say about an attempt: acks and nacks, read into what a queue object takes. */
import { MAX_DURATION_MS } from '../../job/duration';
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
  withinBytes,
} from '../../job/envelope/fields';
import { MAX_RESULT_BYTES } from '../../job/envelope/names';
import { invalidRequest, notFound, type Outcome, outcomeOf, payloadTooLarge } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import { readLines } from '../../job/log';
import type { ReportedError, Snooze } from '../../job/record';
import { boundedError } from '../../job/reported-error';
import { readStepName, readSteps, stepsText } from '../../job/steps';
import { parseTimestamp } from '../../job/time';
import type { AckRequest, AttemptName, NackRequest, Report } from '../../rpc/workers';
import type { AppContext } from '../context';
import type { JsonObject } from '../request/body';

/** Longest name of a worker and of what it says about itself, in characters. */
export const MAX_NAME = 255;
const MAX_ATTEMPT = 2_147_483_647;

/** Header that names the attempt a report is about. */
const DELIVERY_HEADER = 'X-OJS-Delivery-ID';

/** The worker's name for itself. */
export const readWorkerId = readName(MAX_NAME);

/** Most classes of an error that are read; of these the first ones count. */
const MAX_CLASSES = 10_000;

/** Code of a failure whose handler named none. */
const DEFAULT_ERROR_CODE = 'handler_error';

/** What a request says of its report outside of its body. */
export interface ReportNaming {
  /** The job that its path names. */
  pathId?: string | undefined;
  /** The {@link DELIVERY_HEADER}, which stands in for a missing `delivery_id`. */
  delivery?: string | undefined;
}

/** What the request says of the only report that it brings. */
const namingOf = (c: AppContext): ReportNaming => ({
  pathId: c.req.param('id'),
  delivery: c.req.header(DELIVERY_HEADER),
});

/**
 * The attempt that a report is about. The path names the job, or else the body.
 * @throws {ApiError} 400 when neither names the job or both name different ones, 404 when it is no job id
 */
export function readAttempt(c: AppContext, body: JsonObject): AttemptName {
  return attemptIn(body, namingOf(c));
}

function attemptIn(body: JsonObject, { pathId, delivery }: ReportNaming): AttemptName {
  const job_id = body.job_id ?? pathId;
  if (typeof job_id !== 'string') throw invalidRequest('job_id', 'job_id is required and must be a string.');
  if (pathId !== undefined && job_id !== pathId) {
    throw invalidRequest('job_id', 'job_id differs from the job named in the path.');
  }
  if (!isUuidV7(job_id)) throw notFound('job', job_id);
  return defined({
    job_id,
    attempt: optional(body, 'attempt', readInteger(1, MAX_ATTEMPT)),
    delivery_id: optional(body, 'delivery_id', readName(MAX_NAME)) ?? delivery,
    worker_id: optional(body, 'worker_id', readWorkerId),
  });
}

/** Reads an ack. @throws {ApiError} 400, 404, or 413 for a result above 1 MiB */
export const readAck = (c: AppContext, body: JsonObject): AckRequest => ackIn(body, namingOf(c));

/** Reads a nack. @throws {ApiError} 400 or 404 */
export const readNack = (c: AppContext, body: JsonObject): NackRequest => nackIn(body, namingOf(c));

function ackIn(body: JsonObject, naming: ReportNaming): AckRequest {
  const attempt = attemptIn(body, naming);
  const log = optional(body, 'log', readLines(Date.now()));
  if (body.result === undefined || body.result === null) return { ...attempt, ...defined({ log }) };
  return {
    ...attempt,
    ...defined({ log }),
    result: withinBytes(JSON.stringify(body.result), MAX_RESULT_BYTES, 'result'),
  };
}

function nackIn(body: JsonObject, naming: ReportNaming): NackRequest {
  const requeue = optional(body, 'requeue', readBoolean);
  const attempt_used = optional(body, 'attempt_used', readBoolean);
  if (attempt_used === false && requeue !== true) {
    throw invalidRequest('attempt_used', 'attempt_used may be false only together with "requeue": true.');
  }
  const snooze = optional(body, 'snooze', readSnooze);
  if (snooze && (requeue !== true || attempt_used !== false)) {
    throw invalidRequest('snooze', 'snooze goes together with "requeue": true and "attempt_used": false.');
  }
  const log = optional(body, 'log', readLines(Date.now()));
  const error = readReportedError(body.error);
  return { ...attemptIn(body, naming), error, ...defined({ requeue, attempt_used, snooze, log }) };
}

/** Most reports in one request. */
const MAX_REPORTS = 1000;

const readAction = readWord(['ack', 'nack'] as const);

/**
 * Reads many reports; a wrong one keeps its error. Fields in errors are named as in a request of their own.
 * @param workerId of those that name none
 * @throws {ApiError} 400 when it is no list; 413 when it is too long
 */
export function readReports(value: unknown, field: string, workerId: string | undefined): Outcome<Report>[] {
  if (!Array.isArray(value)) throw invalidRequest(field, `${field} must be an array of acks and nacks.`);
  if (value.length > MAX_REPORTS) throw payloadTooLarge(field, value.length, MAX_REPORTS, 'reports');
  return value.map((entry: unknown, index) =>
    outcomeOf(() => readReport(readObject(entry, `${field}[${index}]`), workerId)),
  );
}

function readReport(body: JsonObject, workerId: string | undefined): Report {
  const action = optional(body, 'action', readAction);
  if (action === undefined) throw invalidRequest('action', 'action is required and must be ack or nack.');
  const report: Report = action === 'ack' ? { action, ...ackIn(body, {}) } : { action, ...nackIn(body, {}) };
  if (workerId !== undefined) report.worker_id ??= workerId;
  return report;
}

/** When the job goes on: `in` (a duration), `until` (a time), `signal`; and the steps so far. */
const readSnooze: Reader<Snooze> = (value, field) => {
  if (!isObject(value)) throw invalidRequest(field, `${field} must be an object.`);
  const path = `${field}.`;
  const after = optional(value, 'in', readDuration, path);
  const until = given(optional(value, 'until', readRunAt, path), momentOf);
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
function readReportedError(value: unknown): ReportedError {
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
      retry_at: read('retry_at', checked(readRunAt)),
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
const readRunAt: Reader<unknown> = (value, field) => {
  const isEpoch = Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 8.64e15;
  const at = isEpoch ? (value as number) : parseTimestamp(value);
  if (at === undefined) {
    throw invalidRequest(field, `${field} must be an RFC 3339 time with a zone, or epoch milliseconds.`);
  }
  if (at - Date.now() > MAX_DURATION_MS) throw invalidRequest(field, `${field} must be within 36500 days from now.`);
  return value;
};
