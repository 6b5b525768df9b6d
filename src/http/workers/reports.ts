/** What workers say about an attempt: ack, nack and heartbeat bodies, read into what a queue object takes. */

import { MAX_DURATION_MS } from '../../job/duration';
import {
  isObject,
  optional,
  type Reader,
  readBoolean,
  readDuration,
  readInteger,
  readList,
  readMilliseconds,
  readName,
  readString,
} from '../../job/envelope/fields';
import { MAX_RESULT_BYTES, utf8Bytes } from '../../job/envelope/names';
import { invalidRequest, notFound, payloadTooLarge } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import type { ReportedError } from '../../job/record';
import { parseTimestamp } from '../../job/time';
import type { WorkerBeat } from '../../rpc/directory';
import type { AckRequest, AttemptName, HeartbeatRequest, NackRequest } from '../../rpc/workers';
import type { JsonObject } from '../request/body';

const MAX_NAME = 255;
const MAX_ATTEMPT = 2_147_483_647;
/** Most jobs one heartbeat may name. */
const MAX_HELD = 10_000;

/** Header that names the attempt a report is about. */
export const DELIVERY_HEADER = 'X-OJS-Delivery-ID';

/** The worker's name for itself. */
export const readWorkerId = readName(MAX_NAME);

/** Code of a failure whose handler named none. */
const DEFAULT_ERROR_CODE = 'handler_error';

/** Which attempt a report is about, when it says so. `deliveryHeader` stands in for a missing `delivery_id`. */
export function readAttempt(body: JsonObject, deliveryHeader: string | undefined): AttemptName {
  const attempt = optional(body, 'attempt', readInteger(1, MAX_ATTEMPT));
  const delivery = optional(body, 'delivery_id', readName(MAX_NAME)) ?? deliveryHeader;
  const worker = optional(body, 'worker_id', readWorkerId);
  return {
    ...(attempt !== undefined && { attempt }),
    ...(delivery !== undefined && { delivery_id: delivery }),
    ...(worker !== undefined && { worker_id: worker }),
  };
}

/**
 * The job a report is about: from the path, else from the body.
 * @throws {ApiError} 400 when neither names one or both name different ones, 404 when it is no job id
 */
export function readJobId(body: JsonObject, pathId: string | undefined): string {
  const named = pathId === undefined ? body.job_id : (body.job_id ?? pathId);
  if (typeof named !== 'string') throw invalidRequest('job_id', 'job_id is required and must be a string.');
  if (pathId !== undefined && named !== pathId) {
    throw invalidRequest('job_id', 'job_id differs from the job named in the path.');
  }
  if (!isUuidV7(named)) throw notFound('job', named);
  return named;
}

/** Reads an ack. @throws {ApiError} 400, 404, or 413 for a result above 1 MiB */
export function readAck(body: JsonObject, pathId: string | undefined, deliveryHeader: string | undefined): AckRequest {
  const request: AckRequest = { job_id: readJobId(body, pathId), ...readAttempt(body, deliveryHeader) };
  if (body.result === undefined || body.result === null) return request;
  const result = JSON.stringify(body.result);
  const bytes = utf8Bytes(result, MAX_RESULT_BYTES);
  if (bytes > MAX_RESULT_BYTES) throw payloadTooLarge('result', bytes, MAX_RESULT_BYTES);
  return { ...request, result };
}

/** Reads a nack. @throws {ApiError} 400 or 404 */
export function readNack(
  body: JsonObject,
  pathId: string | undefined,
  deliveryHeader: string | undefined,
): NackRequest {
  const requeue = optional(body, 'requeue', readBoolean);
  return {
    job_id: readJobId(body, pathId),
    ...readAttempt(body, deliveryHeader),
    error: readReportedError(body.error),
    ...(requeue !== undefined && { requeue }),
  };
}

/** A failure: an object, a plain string that is its message, or nothing. */
function readReportedError(value: unknown): ReportedError {
  if (value === undefined || value === null) return { code: DEFAULT_ERROR_CODE, message: '' };
  if (typeof value === 'string') return { code: DEFAULT_ERROR_CODE, message: value };
  if (!isObject(value)) throw invalidRequest('error', 'error must be an object or a string.');
  const read = <T>(name: string, reader: Reader<T>): T | undefined => optional(value, name, reader, 'error.');
  const error: ReportedError = {
    code: read('code', readString) || DEFAULT_ERROR_CODE,
    type: read('type', readString) || undefined,
    message: read('message', readString) ?? '',
    retryable: read('retryable', readBoolean),
    details: value.details ?? undefined,
    classes: read('classes', readList(100, readString)),
    kill: read('kill', readBoolean),
    retry_in: read('retry_in', checked(readDuration)),
    retry_at: read('retry_at', checked(readRunAt)),
  } as ReportedError;
  return Object.fromEntries(Object.entries(error).filter(([, member]) => member !== undefined));
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

/** A heartbeat: who, what it holds, and which queues it works on. */
export interface Heartbeat {
  worker_id: string;
  /** What the worker says about itself. */
  beat: WorkerBeat;
  /** The jobs to extend; absent: whatever the worker holds. */
  job_ids?: string[];
  visibility_timeout_ms?: number;
  queues?: string[];
}

/** Reads a heartbeat. `active_jobs` may be the ids or only their number. @throws {ApiError} 400 */
export function readHeartbeat(body: JsonObject, readQueues: Reader<string[]>): Heartbeat {
  const worker_id = readWorkerId(body.worker_id, 'worker_id');
  const visibility = optional(body, 'visibility_timeout_ms', readMilliseconds);
  const queues = optional(body, 'queues', readQueues);
  const ids = optional(body, 'active_job_ids', readList(MAX_HELD, readString));
  const active = optional(body, 'active_jobs', readActiveJobs);
  const named =
    Array.isArray(active) || ids ? [...new Set([...(Array.isArray(active) ? active : []), ...(ids ?? [])])] : undefined;
  return {
    worker_id,
    beat: readBeat(body, worker_id, queues, typeof active === 'number' ? active : named?.length),
    // A worker that counts zero jobs holds none, the same as an empty list.
    ...((named ?? (active === 0 ? [] : undefined)) && { job_ids: named ?? [] }),
    ...(visibility !== undefined && { visibility_timeout_ms: visibility }),
    ...(queues !== undefined && { queues }),
  };
}

/** Words that workers use for what they are doing, and what each means here. */
const STATES: Readonly<Record<string, WorkerBeat['state']>> = {
  running: 'running',
  active: 'running',
  idle: 'running',
  busy: 'running',
  quiet: 'quiet',
  drain: 'draining',
  draining: 'draining',
  terminate: 'shutting_down',
  terminating: 'shutting_down',
  shutting_down: 'shutting_down',
  terminated: 'stopped',
  stopped: 'stopped',
};

const readState: Reader<WorkerBeat['state']> = (value, field) => {
  const known = typeof value === 'string' && Object.hasOwn(STATES, value) ? STATES[value] : undefined;
  if (known !== undefined) return known;
  throw invalidRequest(field, `${field} must be one of ${Object.keys(STATES).join(', ')}.`);
};

const MAX_CONCURRENCY = 1_000_000;
const MAX_LABEL_BYTES = 4096;

const readLabels: Reader<unknown> = (value, field) => {
  if (!Array.isArray(value) && !isObject(value)) throw invalidRequest(field, `${field} must be an array or an object.`);
  const bytes = utf8Bytes(JSON.stringify(value), MAX_LABEL_BYTES);
  if (bytes > MAX_LABEL_BYTES) throw payloadTooLarge(field, bytes, MAX_LABEL_BYTES);
  return value;
};

function readBeat(
  body: JsonObject,
  worker_id: string,
  queues: string[] | undefined,
  activeJobs: number | undefined,
): WorkerBeat {
  const said = optional(body, 'state', readState) ?? 'running';
  const leaves = optional(body, 'shutdown', readBoolean) === true && said !== 'stopped';
  const hostname = optional(body, 'hostname', readName(MAX_NAME));
  const pid = optional(body, 'pid', readInteger(0, Number.MAX_SAFE_INTEGER));
  const concurrency = optional(body, 'concurrency', readInteger(0, MAX_CONCURRENCY));
  const labels = optional(body, 'labels', readLabels);
  const version = optional(body, 'version', readName(MAX_NAME));
  return {
    worker_id,
    state: leaves ? 'shutting_down' : said,
    facts: {
      ...(hostname !== undefined && { hostname }),
      // Where there is no process id, clients send 0.
      ...(pid !== undefined && pid > 0 && { pid }),
      ...(queues !== undefined && { queues }),
      ...(concurrency !== undefined && { concurrency }),
      ...(labels !== undefined && { labels }),
      ...(version !== undefined && { version }),
    },
    ...(activeJobs !== undefined && { active_jobs: activeJobs }),
  };
}

const readActiveJobs: Reader<string[] | number> = (value, field) =>
  typeof value === 'number' ? readInteger(0, MAX_HELD)(value, field) : readList(MAX_HELD, readString)(value, field);

/** The part of a heartbeat that one queue needs. */
export function forQueue(beat: Heartbeat, jobIds: string[] | undefined): HeartbeatRequest {
  return {
    worker_id: beat.worker_id,
    ...(jobIds && { job_ids: jobIds }),
    ...(beat.visibility_timeout_ms !== undefined && { visibility_timeout_ms: beat.visibility_timeout_ms }),
  };
}
