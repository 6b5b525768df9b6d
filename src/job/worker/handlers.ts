/** What a worker that pulls says about its handlers: the retry layer of their job types. */
import { readChunk } from '../chunk';
import { type Reader, readInteger, readList, readText, withinBytes } from '../envelope/fields';
import { readMembers, required } from '../envelope/members';
import { isJobType, TYPE_RULE } from '../envelope/names';
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
