/** Reads a request's body: media type, size, encoding, JSON, and that it is an object. */
import { isObject } from '../../job/envelope/fields';
import { notAnObject, parseJson } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { invalidPayload, invalidRequest, payloadTooLarge } from '../../job/errors';
import { quote } from '../../job/text';
import { type AppContext, MEDIA_TYPE } from '../context';
import { hold, holdSoon, noRoom } from './held';

/** Largest body of a request that carries many jobs, in bytes. */
export const MAX_BATCH_BYTES = 16 * MAX_ENVELOPE_BYTES;

/** Largest body that is read to its end only to refuse it, in bytes. */
const MAX_DRAINED_BYTES = 8 * MAX_BATCH_BYTES;

const JSON_TYPES = [MEDIA_TYPE, 'application/json'];

/** Turns the text of a body into a value: `parsePayloads` where it holds jobs or reports. */
type ReadText = (text: string) => unknown;

export type JsonObject = Record<string, unknown>;

/**
 * The body as a JSON object.
 * @param maxBytes largest body accepted, default 1 MiB
 * @throws {ApiError} 400 for another media type, bad UTF-8, bad JSON, too much nesting; 413 above `maxBytes`;
 *   503 while other requests take the room
 */
export async function readBody(
  c: AppContext,
  maxBytes: number = MAX_ENVELOPE_BYTES,
  read?: ReadText,
): Promise<JsonObject> {
  const body = await readOptionalBody(c, maxBytes, read);
  if (body === undefined) throw invalidPayload('The body is empty; a JSON object is expected.');
  return body;
}

/** As {@link readBody}, but undefined when there is no body at all. */
export async function readOptionalBody(
  c: AppContext,
  maxBytes: number = MAX_ENVELOPE_BYTES,
  read?: ReadText,
): Promise<JsonObject | undefined> {
  const value = await readJson(c, maxBytes, JSON_TYPES, read);
  if (value === undefined || isObject(value)) return value;
  throw notAnObject();
}

/** The media type of a request, lower case and without parameters; empty when it names none. */
export function mediaTypeOf(c: AppContext): string {
  return c.req.header('Content-Type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/**
 * Whatever JSON the body is; undefined when there is none.
 * @param types media types that it may have
 * @throws {ApiError} as {@link readBody}
 */
export async function readJson(
  c: AppContext,
  maxBytes: number,
  types: readonly string[],
  read?: ReadText,
): Promise<unknown> {
  const bytes = await readBytes(c, maxBytes);
  if (bytes.byteLength === 0) return undefined;
  const type = mediaTypeOf(c);
  if (type !== '' && !types.includes(type)) {
    throw invalidRequest('Content-Type', `Content-Type ${quote(type)} is not accepted; send ${types.join(' or ')}.`);
  }
  const value = parseJson(decode(bytes), read);
  c.set('sent', value);
  return value;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw invalidPayload('The body is not valid UTF-8.');
  }
}

/**
 * Collects the body but never holds more than `maxBytes` of it, whatever Content-Length says. One that is too large, or for
 * which there is no room now, is read to its end and dropped: answering while the client still sends breaks its connection,
 * and the answer with it.
 * @throws {ApiError} 413, 503
 */
async function readBytes(c: AppContext, maxBytes: number): Promise<Uint8Array> {
  const request = c.req.raw;
  const declared = Number(request.headers.get('Content-Length') ?? Number.NaN);
  // The runtime holds a client to the length it declares; reading it at once spares a turn for each chunk.
  if (declared <= maxBytes && (await holdSoon(c, declared))) {
    const whole = new Uint8Array(await request.arrayBuffer());
    if (whole.byteLength > maxBytes) throw payloadTooLarge('body', whole.byteLength, maxBytes);
    return whole;
  }
  if (request.body === null) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let total = 0;
  let fits = true;
  const reader = (request.body as ReadableStream<Uint8Array>).getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    total += next.value.byteLength;
    fits &&= total <= maxBytes && hold(c, next.value.byteLength);
    if (fits) chunks.push(next.value);
    else chunks.length = 0;
    if (total > MAX_DRAINED_BYTES) {
      await reader.cancel();
      break;
    }
  }
  if (total > maxBytes) throw payloadTooLarge('body', total, maxBytes);
  if (!fits) throw noRoom();
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}
