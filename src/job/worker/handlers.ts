/** What a worker that pulls says about its handlers: the retry layer of their job types. */
import { readWorkerId } from '../attempt/read-report';
import { readChunk } from '../chunk';
import { type Reader, readInteger, readList, readMilliseconds, readText, withinBytes } from '../envelope/fields';
import { readMembers, required } from '../envelope/members';
import { isJobType, TYPE_RULE } from '../envelope/names';
import { invalidRequest } from '../errors';
import type { AnnouncedType } from '../record';
import { MAX_ATTEMPTS } from '../retry/layer';
import { checkRetryLayer } from '../retry/validate';

/** Most handlers with settings, and bytes of all of them as JSON. */
const MAX_HANDLERS = 1_000;
const MAX_BYTES = 64 * 1024;

const readType = readText((type) => type === '*' || isJobType(type), `${TYPE_RULE}, or "*" for all others`);

const readHandler: Reader<AnnouncedType> = readMembers({
  type: required(readType),
  retry: checkRetryLayer,
  max_attempts: readInteger(0, MAX_ATTEMPTS),
  batch: readChunk,
});

const readAll = readList(MAX_HANDLERS, readHandler);

/** Reads the handlers of a worker. @throws {ApiError} 400; 413; 422 for a retry policy that cannot be */
export const readHandlers: Reader<AnnouncedType[]> = (value, field) => {
  const handlers = readAll(value, field);
  withinBytes(JSON.stringify(handlers), MAX_BYTES, field);
  return handlers;
};

const MAX_TYPES = 1000;

const readTypes: Reader<string[]> = (value, field) => {
  const types = readList(MAX_TYPES, readText(isJobType, TYPE_RULE))(value, field);
  if (types.length === 0)
    throw invalidRequest(field, `${field} must name at least one job type; leave it out for all.`);
  return [...new Set(types)];
};

/** What a worker that pulls says of the jobs that it wants, whichever way it asks. */
export const CLAIM_MEMBERS = {
  worker_id: readWorkerId,
  /** Only jobs of these types; absent: any. */
  types: readTypes,
  /** What its handlers of these types say of themselves; absent: what they said before holds. */
  handlers: readHandlers,
  /** Length of a lease; absent: the job's, else the queue's, else the next, else 30 minutes. */
  visibility_timeout_ms: readMilliseconds,
  default_visibility_timeout_ms: readMilliseconds,
};
