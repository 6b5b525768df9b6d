/** Reads a request's body: media type, size, encoding, JSON, and that it is an object. */
import { isObject } from '../../job/envelope/fields';
import { notAnObject, parseJson } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { type ApiError, invalidPayload, invalidRequest, payloadTooLarge, refusal } from '../../job/errors';
import { quote } from '../../job/text';
import { type AppContext, MEDIA_TYPE } from '../context';
import { dropBody, holdSoon, noRoom } from './held';
import { refuseMembers } from './members';

/** Time for any body, ms. */
const FIRST_MS = 10_000;
/** A second more for each this many bytes that have arrived. */
const BYTES_A_SECOND = 64 * 1024;
/** Time for the largest, ms: less than a holder of room counts as alive (`room.ts`). */
const LONGEST_MS = 90_000;
/** Interval between looks at the clock, ms. */
const LOOK_MS = 1_000;

/** Watches a body arrive. Close it when the body has arrived, or is no longer wanted. */
class Arrival {
  private readonly begun = Date.now();
  private waited = 0;
  private bytes = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private readonly late: Promise<never>;

  constructor() {
    this.late = new Promise((_, refuse) => this.watch(refuse));
    // Absent while nothing is awaited.
    this.late.catch(() => undefined);
  }

  /** The result of `read`. @throws {ApiError} 408: the body takes too long */
  next<T>(read: Promise<T>): Promise<T> {
    return Promise.race([read, this.late]);
  }

  /** Further bytes have arrived. */
  add(bytes: number): void {
    this.bytes += bytes;
  }

  /** Waits for something here. The time that it takes is not the client's fault. */
  async pause<T>(waiting: Promise<T>): Promise<T> {
    const since = Date.now();
    const value = await waiting;
    this.waited += Date.now() - since;
    return value;
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private watch(refuse: (error: ApiError) => void): void {
    this.timer = setTimeout(() => {
      const allowed = Math.min(FIRST_MS + (this.bytes / BYTES_A_SECOND) * 1_000, LONGEST_MS);
      if (Date.now() - this.begun - this.waited < allowed) this.watch(refuse);
      else refuse(tooSlow(this.bytes, Math.round(allowed)));
    }, LOOK_MS);
  }
}

function tooSlow(bytes: number, allowed: number): ApiError {
  const message = `The body took too long: after ${allowed} ms only ${bytes} bytes of it had arrived.`;
  return refusal(408, 'timeout', message, {
    retryable: true,
    details: { received_bytes: bytes, allowed_ms: allowed },
    hint: `Send the body at once: it has ${FIRST_MS} ms, and a second for each ${BYTES_A_SECOND} bytes, at most ${LONGEST_MS} ms.`,
  });
}

/** Largest body of a request that carries many jobs, in bytes. */
export const MAX_BATCH_BYTES = 16 * MAX_ENVELOPE_BYTES;

/** Largest body that is read to its end only to refuse it, in bytes. */
const MAX_DRAINED_BYTES = 8 * MAX_BATCH_BYTES;

/** A body that declares at most this length is read whole, and counts on arrival. Others begin with this buffer. */
const SMALL_BYTES = 16_384;

const LARGEST_READ = 8 * SMALL_BYTES;

const JSON_TYPES = [MEDIA_TYPE, 'application/json'];

export type JsonObject = Record<string, unknown>;

/** Turns the text of a body into a value. @throws {ApiError} 400 */
export type Parse = (text: string) => unknown;

/**
 * The body as a JSON object.
 * @param maxBytes largest body accepted, default 1 MiB
 * @param parse judges it; by default as a whole
 * @throws {ApiError} 400 for another media type, bad UTF-8, bad JSON, too much nesting; 413 above `maxBytes`; 415 for
 *   a compressed one; 408 when it takes too long; 503 while other requests take the room
 */
export async function readBody(
  c: AppContext,
  maxBytes: number = MAX_ENVELOPE_BYTES,
  parse?: Parse,
): Promise<JsonObject> {
  const body = await readOptionalBody(c, maxBytes, parse);
  if (body === undefined) throw invalidPayload('The body is empty; a JSON object is expected.');
  return body;
}

/** As {@link readBody}, but undefined when there is no body at all. */
export async function readOptionalBody(
  c: AppContext,
  maxBytes: number = MAX_ENVELOPE_BYTES,
  parse?: Parse,
): Promise<JsonObject | undefined> {
  const value = await readJson(c, maxBytes, JSON_TYPES, parse);
  if (value === undefined || isObject(value)) return value;
  throw notAnObject();
}

/** The media type of a request, lower case and without parameters; empty when it names none. */
export const mediaTypeOf = (c: AppContext): string =>
  c.req.header('Content-Type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';

/** Any JSON body; undefined without one. @param types its media types @throws {ApiError} as {@link readBody} */
export async function readJson(
  c: AppContext,
  maxBytes: number,
  types: readonly string[],
  parse: Parse = parseJson,
): Promise<unknown> {
  const { bytes, text } = await readText(c, maxBytes);
  if (bytes === 0) return undefined;
  refuseCoding(c);
  const type = mediaTypeOf(c);
  if (type !== '' && !types.includes(type)) {
    throw invalidRequest('Content-Type', `Content-Type ${quote(type)} is not accepted; send ${types.join(' or ')}.`);
  }
  if (text === undefined) throw invalidPayload('The body is not valid UTF-8.');
  const value = parse(text);
  c.set('sent', value);
  const members = c.get('members');
  if (members && isObject(value)) refuseMembers(value, members);
  return value;
}

/** Refuses a compressed body: it would be read as malformed text. @throws {ApiError} 415 */
export function refuseCoding(c: AppContext): void {
  const coding = c.req.header('Content-Encoding')?.trim().toLowerCase() ?? '';
  if (coding === '' || coding === 'identity') return;
  const message = `Content-Encoding ${quote(coding)} is not accepted; send the body as it is, without a content coding.`;
  throw refusal(415, 'unsupported', message, {
    details: { field: 'Content-Encoding' },
    hint: 'Send the body uncompressed, without the header Content-Encoding.',
    headers: { 'Accept-Encoding': 'identity' },
  });
}

interface Arrived {
  bytes: number;
  /** Undefined: it is not UTF-8. */
  text: string | undefined;
}

/**
 * Collects the body but never holds more than `maxBytes` of it, whatever Content-Length says. Only arrived bytes count:
 * a declared length that is never sent takes no room. A body that is too large, or has no room now, is read to its end
 * and dropped. An answer while the client still sends would break its connection, and be lost.
 * @throws {ApiError} 408, 413, 503
 */
async function readText(c: AppContext, maxBytes: number): Promise<Arrived> {
  const request = c.req.raw;
  if (request.body === null) return { bytes: 0, text: '' };
  const declared = Number(request.headers.get('Content-Length') ?? Number.NaN);
  const arrival = new Arrival();
  try {
    // The runtime holds a client to its declared length; reading a small body at once saves turns.
    if (declared > Math.min(maxBytes, SMALL_BYTES) || Number.isNaN(declared)) {
      return await collect(c, request.body, arrival, maxBytes);
    }
    const whole = new Uint8Array(await arrival.next(request.arrayBuffer()));
    if (await holdSoon(c, whole.byteLength)) return { bytes: whole.byteLength, text: new Decoder(WHOLE).end(whole) };
    throw noRoom();
  } finally {
    arrival.close();
  }
}

type Read = ReadableStreamReadResult<Uint8Array<ArrayBuffer>>;

async function collect(c: AppContext, body: ReadableStream, arrival: Arrival, maxBytes: number): Promise<Arrived> {
  const reader = bytesOf(body).getReader({ mode: 'byob' });
  const mostRead = c.get('from') ? MAX_DRAINED_BYTES : MAX_ENVELOPE_BYTES;
  const decoder = new Decoder();
  let buffer = new Uint8Array(SMALL_BYTES);
  let filled = 0;
  let total = 0;
  let fits = true;
  for (;;) {
    const next: Read = await arrival.next(reader.read(buffer.subarray(filled)));
    // The buffer was transferred, even if nothing arrived.
    if (next.value) buffer = new Uint8Array(next.value.buffer);
    if (next.done) break;
    const byteLength: number = next.value.byteLength;
    total += byteLength;
    arrival.add(byteLength);
    fits &&= total <= maxBytes && (await arrival.pause(holdSoon(c, byteLength)));
    filled = fits ? filled + byteLength : 0;
    if (!fits) dropBody(c);
    else if (filled === buffer.byteLength) {
      decoder.add(buffer);
      filled = 0;
      // Never larger than what has arrived.
      if (buffer.byteLength < LARGEST_READ) buffer = new Uint8Array(2 * buffer.byteLength);
    }
    if (total > mostRead) {
      await reader.cancel();
      break;
    }
  }
  if (total > maxBytes) throw payloadTooLarge('body', total, maxBytes);
  if (!fits) throw noRoom();
  return { bytes: total, text: decoder.end(buffer.subarray(0, filled)) };
}

const utf8Decoder = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: false });

/** Keeps nothing between two bodies that are decoded whole. */
const WHOLE = utf8Decoder();

/** Turns a body into text, part by part: the bytes of a large one are never together. */
class Decoder {
  private text: string | undefined = '';

  constructor(private readonly utf8 = utf8Decoder()) {}

  /** The next bytes, which may end inside of a character. */
  add(bytes: Uint8Array, stream = true): void {
    try {
      if (this.text !== undefined) this.text += this.utf8.decode(bytes, { stream });
    } catch {
      this.text = undefined;
    }
  }

  /** The last bytes. @returns undefined when they are not UTF-8, all of them together */
  end(bytes: Uint8Array): string | undefined {
    this.add(bytes, false);
    return this.text;
  }
}

/** A stream that can be read into a buffer: one that JavaScript has made may not be. */
function bytesOf(body: ReadableStream): ReadableStream {
  try {
    body.getReader({ mode: 'byob' }).releaseLock();
    return body;
  } catch {
    return body.pipeThrough(new IdentityTransformStream());
  }
}
