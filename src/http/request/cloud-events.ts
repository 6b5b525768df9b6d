/**
 * CloudEvents in a request, in each form of their HTTP binding: one as a JSON object (structured), many as a JSON array
 * (batched), one whose attributes are headers (binary).
 */
import { isObject } from '../../job/envelope/fields';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { invalidPayload, invalidRequest } from '../../job/errors';
import { quote } from '../../job/text';
import { orThrow } from '../../job/thrown';
import type { AppContext } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, mediaTypeOf, readJson } from './body';

const FAMILY = 'application/cloudevents';
const STRUCTURED = `${FAMILY}+json`;
const BATCHED = `${FAMILY}-batch+json`;

const HEADER_PREFIX = 'ce-';

/** The attributes that every event must have: their headers identify one. */
const REQUIRED = ['specversion', 'type', 'source', 'id'].map((name) => HEADER_PREFIX + name);

/** The form of a request's events; undefined when it has none. */
export type EventForm = 'structured' | 'binary' | 'batched';

/** @throws {ApiError} 400 for a form of CloudEvents that is not JSON */
export function eventFormOf(c: AppContext): EventForm | undefined {
  const type = mediaTypeOf(c);
  if (type === STRUCTURED) return 'structured';
  if (type === BATCHED) return 'batched';
  if (type.startsWith(FAMILY)) {
    throw invalidRequest(
      'Content-Type',
      `Content-Type ${quote(type)} is not accepted; send ${STRUCTURED} or ${BATCHED}.`,
    );
  }
  return REQUIRED.some((name) => c.req.raw.headers.has(name)) ? 'binary' : undefined;
}

/** The one event of a request. @throws {ApiError} 400, 413 */
export async function readEvent(c: AppContext, form: 'structured' | 'binary'): Promise<JsonObject> {
  if (form === 'binary') return readBinary(c);
  const event = await readJson(c, MAX_ENVELOPE_BYTES, [STRUCTURED]);
  if (isObject(event)) return event;
  throw invalidPayload('The body must be a CloudEvent: a JSON object.');
}

/** The events of a batch. @throws {ApiError} 400, 413 */
export async function readEvents(c: AppContext): Promise<unknown[]> {
  const events = await readJson(c, MAX_BATCH_BYTES, [BATCHED]);
  if (Array.isArray(events)) return events;
  throw invalidPayload('The body must be a JSON array of CloudEvents.');
}

async function readBinary(c: AppContext): Promise<JsonObject> {
  const event: JsonObject = {};
  for (const [header, value] of c.req.raw.headers) {
    if (header.startsWith(HEADER_PREFIX)) event[header.slice(HEADER_PREFIX.length)] = decode(header, value);
  }
  if ('data' in event)
    throw invalidRequest('ce-data', 'ce-data is not an attribute: the data of an event is the body.');
  const type = mediaTypeOf(c);
  if (type !== '' && type !== 'application/json' && !/^[\w.-]+\/[\w.-]+\+json$/.test(type)) {
    throw invalidRequest('Content-Type', `Data of the type ${quote(type)} is not accepted; send application/json.`);
  }
  const data = await readJson(c, MAX_ENVELOPE_BYTES, [type]);
  return { ...event, ...(data !== undefined && { data }), ...(type !== '' && { datacontenttype: type }) };
}

/** Characters beyond ASCII are percent-encoded in headers. */
const decode = (header: string, value: string): string =>
  orThrow(
    () => decodeURIComponent(value.replaceAll(/%(?![0-9a-fA-F]{2})/g, '%25')),
    () => invalidRequest(header, `${header} is not valid percent-encoded UTF-8.`),
  );
