/** A CloudEvent 1.0, an object of its attributes and data, as a job (`docs/guides/cloudevents.md`). */
import { optional, reader, readInteger, readName, readQueueName } from './envelope/fields';
import { isJobType, TYPE_RULE } from './envelope/names';
import { type ParseContext, type ParsedJob, parseJob, readTime } from './envelope/parse';
import { invalidRequest } from './errors';
import { quote } from './text';
import { parseTimestamp } from './time';
import { isTraceparent } from './trace';

type Event = Record<string, unknown>;

const MAX_TEXT = 8192;

const OWN_PREFIX = 'tocsin';
const OWN = ['tocsinqueue', 'tocsindelay', 'tocsinpriority'];

/** Members of an event that do not go to `meta.ce_…`. */
const ELSEWHERE: ReadonlySet<string> = new Set(['specversion', 'type', 'data', 'traceparent', 'tracestate', ...OWN]);

const readText = readName(MAX_TEXT);

const readSpecversion = reader((value) => (value === '1.0' ? value : undefined), 'must be "1.0"');

const readTimeText = reader(
  (value) => (parseTimestamp(value) === undefined ? undefined : (value as string)),
  'must be an RFC 3339 time with a zone',
);

const readTraceparent = reader(
  (value) => (typeof value === 'string' && isTraceparent(value) ? value : undefined),
  'must be a traceparent as in W3C Trace Context',
);

/** A number may come as text: in headers everything does. */
const readPriority = reader(
  (value) => (typeof value === 'string' && /^-?\d{1,3}$/.test(value) ? Number(value) : value),
  '',
);

/** Reads an event as a job. @throws {ApiError} 400 naming the attribute that no job can have; 413 if too large */
export function parseEvent(event: Event, ctx: ParseContext): ParsedJob {
  const prefix = ctx.path === undefined ? '' : `${ctx.path}.`;
  const at = (name: string) => prefix + name;
  readSpecversion(event.specversion, at('specversion'));
  for (const name of ['id', 'source'] as const) readText(event[name], at(name));
  for (const name of Object.keys(event)) checkName(name, at(name));
  const job = {
    type: readType(event.type, at('type')),
    args: event.data === undefined ? [] : [event.data],
    meta: metaOf(event, prefix),
    queue: optional(event, 'tocsinqueue', readQueueName, prefix),
    delay_until: optional(event, 'tocsindelay', (value, field) => readTime(ctx.now)(value, field) && value, prefix),
    priority: optional(
      event,
      'tocsinpriority',
      (value, field) => readInteger(-100, 100)(readPriority(value, field), field),
      prefix,
    ),
  };
  return parseJob(job, ctx);
}

function readType(value: unknown, field: string): string {
  const type = readText(value, field);
  if (isJobType(type)) return type;
  throw invalidRequest(
    field,
    `${field} ${quote(JSON.stringify(type))} cannot be the type of a job, which ${TYPE_RULE}.`,
  );
}

function checkName(name: string, field: string): void {
  if (name === 'data_base64') {
    throw invalidRequest(field, `${field} is not accepted: the arguments of a job are JSON. Send it in data, as text.`);
  }
  if (!/^[a-z0-9]{1,64}$/.test(name)) {
    throw invalidRequest(field, `${quote(field)} is not an attribute name: use lower-case letters and digits.`);
  }
  if (name.startsWith(OWN_PREFIX) && !OWN.includes(name)) {
    throw invalidRequest(field, `${field} is unknown; there are ${OWN.join(', ')}.`);
  }
}

function metaOf(event: Event, prefix: string): Record<string, unknown> {
  const traceparent = optional(event, 'traceparent', readTraceparent, prefix);
  const tracestate = optional(event, 'tracestate', readText, prefix);
  optional(event, 'time', readTimeText, prefix);
  const rest = Object.entries(event).filter(([name, value]) => !ELSEWHERE.has(name) && value !== null);
  const attributes = rest.map(([name, value]) => [`ce_${name}`, readAttribute(value, prefix + name)] as const);
  return {
    ...Object.fromEntries(attributes),
    ...(traceparent !== undefined && { traceparent, ...(tracestate !== undefined && { tracestate }) }),
  };
}

/** Attributes have no structure. */
const readAttribute = (value: unknown, field: string): unknown =>
  typeof value === 'boolean' || Number.isInteger(value) ? value : readText(value, field);
