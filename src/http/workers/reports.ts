/** What workers say about an attempt: acks and nacks, read into what a queue object takes. */
import { MAX_DURATION_MS } from '../../job/duration';
import {
  defined,
  isObject,
  optional,
  type Reader,
  readBoolean,
  readDuration,
  readInteger,
  readList,
  readName,
  readString,
} from '../../job/envelope/fields';
import { MAX_RESULT_BYTES, utf8Bytes } from '../../job/envelope/names';
import { invalidRequest, notFound, payloadTooLarge } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import type { ReportedError } from '../../job/record';
import { parseTimestamp } from '../../job/time';
import type { AckRequest, AttemptName, NackRequest } from '../../rpc/workers';
import type { JsonObject } from '../request/body';

/** Longest name of a worker and of what it says about itself, in characters. */
export const MAX_NAME = 255;
const MAX_ATTEMPT = 2_147_483_647;

/** Header that names the attempt a report is about. */
export const DELIVERY_HEADER = 'X-OJS-Delivery-ID';

/** The worker's name for itself. */
export const readWorkerId = readName(MAX_NAME);

/** Code of a failure whose handler named none. */
const DEFAULT_ERROR_CODE = 'handler_error';

/** Which attempt a report is about, when it says so. `deliveryHeader` stands in for a missing `delivery_id`. */
export function readAttempt(body: JsonObject, deliveryHeader: string | undefined): AttemptName {
  return defined({
    attempt: optional(body, 'attempt', readInteger(1, MAX_ATTEMPT)),
    delivery_id: optional(body, 'delivery_id', readName(MAX_NAME)) ?? deliveryHeader,
    worker_id: optional(body, 'worker_id', readWorkerId),
  });
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
    ...defined({ requeue }),
  };
}

/** A failure: an object, a plain string that is its message, or nothing. */
function readReportedError(value: unknown): ReportedError {
  if (value === undefined || value === null) return { code: DEFAULT_ERROR_CODE, message: '' };
  if (typeof value === 'string') return { code: DEFAULT_ERROR_CODE, message: value };
  if (!isObject(value)) throw invalidRequest('error', 'error must be an object or a string.');
  const read = <T>(name: string, reader: Reader<T>): T | undefined => optional(value, name, reader, 'error.');
  return defined({
    code: read('code', readString) || DEFAULT_ERROR_CODE,
    type: read('type', readString) || undefined,
    message: read('message', readString) ?? '',
    retryable: read('retryable', readBoolean),
    details: value.details ?? undefined,
    classes: read('classes', readList(100, readString)),
    kill: read('kill', readBoolean),
    retry_in: read('retry_in', checked(readDuration)),
    retry_at: read('retry_at', checked(readRunAt)),
  }) as ReportedError;
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
