/** Output streams of a job: what a writer says, and places in a stream. Pure. */
import { storableText } from './attempt/notes';
import { utf8Bytes } from './bytes';
import { defined, isObject, optional, readBoolean, readInteger, readPathName, withinBytes } from './envelope/fields';
import { conflict, invalidRequest, notFound, payloadTooLarge, refusal } from './errors';

/** Streams of a job, and the bytes of all their chunks. */
export const MAX_STREAMS = 16;
export const MAX_STREAM_BYTES = 10 * 1024 * 1024;
const MAX_CHUNK_BYTES = 256 * 1024;
/** Chunks of one message, and their bytes. */
const MAX_CHUNKS = 10_000;
const MAX_MESSAGE_BYTES = 1024 * 1024;

/** Executions of a writer in one claim of its job. */
const MAX_EXECUTIONS = 1024;

/** Chunks of a stream, as its writer numbers them from 0. */
export interface StreamSaid {
  name: string;
  /** Which execution of the writer this is within its claim, from 0. */
  execution: number;
  /** The number of the first of these chunks. */
  first: number;
  /** JSON texts. */
  chunks: string[];
  /** The step that writes; absent: the handler, outside of steps. */
  step?: string;
  /** Write now, rather than within a second. */
  flush?: boolean;
}

/** A chunk of a stream: one after it is next. */
export interface StreamPlace {
  run: number;
  n: number;
}

export const readStreamName = readPathName(128);
const readCount = readInteger(0, Number.MAX_SAFE_INTEGER);
const readExecution = readInteger(0, MAX_EXECUTIONS - 1);

/** The run of an execution: it rises with each, over all attempts of the job. */
export const runOf = (claim: number, execution: number): number => claim * MAX_EXECUTIONS + execution;

/** The members of a message besides the name of the stream. @throws {ApiError} 400, 413 */
export function readStreamSaid(body: Record<string, unknown>, name: string, path = ''): StreamSaid {
  const { chunks } = body;
  if (!Array.isArray(chunks)) throw invalidRequest(`${path}chunks`, `${path}chunks must be an array of JSON values.`);
  if (chunks.length > MAX_CHUNKS) throw payloadTooLarge(`${path}chunks`, chunks.length, MAX_CHUNKS, 'chunks');
  const texts = chunks.map((chunk: unknown, at) => {
    const field = `${path}chunks[${at}]`;
    return withinBytes(storableText(chunk, field), MAX_CHUNK_BYTES, field);
  });
  const bytes = bytesOfChunks(texts);
  if (bytes > MAX_MESSAGE_BYTES) throw payloadTooLarge(`${path}chunks`, bytes, MAX_MESSAGE_BYTES);
  return {
    name,
    execution: optional(body, 'execution', readExecution, path) ?? 0,
    first: readCount(body.first, `${path}first`),
    chunks: texts,
    ...defined({
      step: optional(body, 'step', readStreamName, path),
      flush: optional(body, 'flush', readBoolean, path),
    }),
  };
}

/** @param value of the member `stream` of a handler's message. @throws {ApiError} 400, 413 */
export function readNamedStream(value: unknown): StreamSaid {
  if (!isObject(value)) throw invalidRequest('stream', 'stream must be an object with name, first and chunks.');
  return readStreamSaid(value, readStreamName(value.name, 'stream.name'), 'stream.');
}

/** Bytes of chunks as they are stored: with a comma each. */
export const bytesOfChunks = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + utf8Bytes(text) + 1, 0);

export const placeText = ({ run, n }: StreamPlace): string => `${run}.${n}`;

/** The place that a reader has come to; undefined: the beginning. @throws {ApiError} 400 */
export function readStreamPlace(text: string | undefined, field: string): StreamPlace | undefined {
  if (text === undefined || text === '0') return undefined;
  const [, run, n] = /^(\d{1,15})\.(\d{1,15})$/.exec(text) ?? [];
  if (n !== undefined) return { run: Number(run), n: Number(n) };
  throw invalidRequest(field, `${field} must be the id of a chunk, such as 1024.7, or 0 for the beginning.`);
}

export const noStream = (name: string) =>
  notFound('stream', name, 'A job that has ended has only the streams that its handler wrote.');

/** 413: the job has as many streams, or as many bytes in them, as it may have. */
export function streamFull(what: 'streams' | 'bytes', name: string, actual: number, most: number) {
  const message = `Stream ${JSON.stringify(name)} cannot be written: its job may have ${most} ${what} of streams.`;
  const details = { stream: name, limit: what, actual, max: most };
  return refusal(413, 'payload_too_large', message, { type: 'stream_full', details });
}

/** 409: the queue does not have the chunks before these, and needs them first. */
export const streamGap = (name: string, next: number) =>
  conflict(
    `Stream ${JSON.stringify(name)} has ${next} chunks; send those from number ${next} on.`,
    { stream: name, next },
    'Send all chunks that are not confirmed again, under the same numbers.',
  );

/** 409: another step, or the handler itself, writes it. @param writer null: the handler */
export const otherWriter = (name: string, writer: string | null) =>
  conflict(
    `Stream ${JSON.stringify(name)} belongs to ${writer === null ? 'the handler, outside of steps' : `the step ${JSON.stringify(writer)}`}.`,
    { stream: name, writer },
    'Each writer needs a stream of its own.',
  );

/** 409: a later execution writes it. */
export const laterRun = (name: string, run: number) =>
  conflict(`Stream ${JSON.stringify(name)} is written by a later execution.`, { stream: name, run });
