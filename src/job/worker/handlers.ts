/** What a worker that pulls says about its handlers: the retry layer of their job types. */
import { readChunk } from '../chunk';
import { defined, type Reader, readInteger, readList, readObject, readText, withinBytes } from '../envelope/fields';
import { isJobType, TYPE_RULE } from '../envelope/names';
import type { AnnouncedType } from '../record';
import { MAX_ATTEMPTS } from '../retry/layer';
import { checkRetryLayer } from '../retry/validate';

/** Most handlers with settings, and bytes of all of them as JSON. */
const MAX_HANDLERS = 1_000;
const MAX_BYTES = 64 * 1024;

const readType = readText((type) => type === '*' || isJobType(type), `${TYPE_RULE}, or "*" for all others`);
const readAttempts = readInteger(0, MAX_ATTEMPTS);

const readHandler: Reader<AnnouncedType> = (value, field) => {
  const given = readObject(value, field);
  const path = (name: string) => `${field}.${name}`;
  const { retry = null, max_attempts = null, batch = null } = given;
  return {
    type: readType(given.type, path('type')),
    ...defined({
      retry: retry === null ? undefined : checkRetryLayer(retry, path('retry')),
      max_attempts: max_attempts === null ? undefined : readAttempts(max_attempts, path('max_attempts')),
      batch: batch === null ? undefined : readChunk(batch, path('batch')),
    }),
  };
};

const readAll = readList(MAX_HANDLERS, readHandler);

/** Reads the handlers of a worker. @throws {ApiError} 400; 413; 422 for a retry policy that cannot be */
export const readHandlers: Reader<AnnouncedType[]> = (value, field) => {
  const handlers = readAll(value, field);
  withinBytes(JSON.stringify(handlers), MAX_BYTES, field);
  return handlers;
};
