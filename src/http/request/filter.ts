/**
 * Which jobs a request is about: filters out of query parameters and out of bodies. Bounds are inclusive, repeated
 * parameters and lists mean "any of these" (tags: all of them), and different conditions must all hold.
 */
import { parseDuration } from '../../job/duration';
import { readInteger, readName, readObject, readQueueName, readString } from '../../job/envelope/fields';
import { readTime } from '../../job/envelope/parse';
import { ApiError, invalidRequest } from '../../job/errors';
import { bindingsOf, type FieldCondition, type JobFilter, MAX_BINDINGS, type Range } from '../../job/filter';
import { JOB_STATES, type JobState } from '../../job/states';
import { parseTimestamp } from '../../job/time';
import type { AppContext } from '../context';
import { isFieldName, readFieldPath } from './field-path';
import { listParam, oneOf, queueParam, withPlus } from './query';

/** A filter, and the queues it names. */
export interface Selection {
  filter: JobFilter;
  queues?: string[];
}

const MAX_IDS = 1000;
const MAX_TYPES = 20;
const MAX_TAGS = 10;
const MAX_FIELDS = 10;
const MAX_NAME = 255;

/** Times that jobs can be chosen by; each with `_after` and `_before`. */
const TIMES = ['created', 'enqueued', 'scheduled', 'ended'] as const;

/** What has an upper and a lower bound. */
type Bounded = 'priority' | 'attempt' | (typeof TIMES)[number];

const readPriority = readInteger(-100, 100);
const readCount = readInteger(0, 2_147_483_647);

/** Reads the filter of a list or a count. @throws {ApiError} 400 naming the parameter */
export function filterFromQuery(c: AppContext, now: number): Selection {
  const filter: JobFilter = {};
  const text = (name: string) => singleParam(c, name);
  const ids = listParam(c, 'id', 'ids', 'job_ids');
  if (ids) filter.ids = atMost(ids, MAX_IDS, 'id');
  const types = listParam(c, 'type');
  if (types) filter.types = readTypes(types, 'type');
  const states = oneOf(listParam(c, 'state'), JOB_STATES, 'state');
  if (states) filter.states = states;
  const tags = listParam(c, 'tag', 'tags');
  if (tags) filter.tags = atMost(tags, MAX_TAGS, 'tag');
  const number = (name: string, read: typeof readPriority) => {
    const given = text(name);
    return given === undefined ? undefined : read(/^[+-]?\d+$/.test(given) ? Number(given) : given, name);
  };
  const range = (name: string, read: typeof readPriority) => {
    const exact = number(name, read);
    const min = number(`${name}_min`, read);
    const max = number(`${name}_max`, read);
    if (exact !== undefined) refuseSecond(min ?? max, name);
    return rangeOf(exact ?? min, exact ?? max, name);
  };
  setRange(filter, 'priority', range('priority', readPriority));
  const attempts = range('attempts', readCount);
  const attempt = range('attempt', readCount);
  if (attempts) refuseSecond(attempt, 'attempt');
  setRange(filter, 'attempt', attempts ?? attempt);
  const time = (name: string) => {
    const given = text(name);
    return given === undefined ? undefined : readTime(now)(withPlus(given), name);
  };
  for (const name of TIMES) {
    const end = (usual: string, short: string) => {
      const other = name === 'created' ? time(short) : undefined;
      const given = time(usual);
      if (given !== undefined) refuseSecond(other, short);
      return given ?? other;
    };
    setRange(filter, name, rangeOf(end(`${name}_after`, 'since'), end(`${name}_before`, 'until'), name));
  }
  const olderThan = text('older_than');
  if (olderThan !== undefined) filter.aged = { max: readAge(withPlus(olderThan), 'older_than', now) };
  const errorType = text('error_type');
  if (errorType !== undefined) filter.error_type = errorType;
  const dead = oneOf(listParam(c, 'dead_letter'), ['true', 'false'], 'dead_letter');
  if (dead?.length === 1) filter.dead = dead[0] === 'true';
  const fields = Object.entries(c.req.queries()).flatMap(([name, values]) =>
    isFieldName(name) ? [{ path: readFieldPath(name), values: values.flatMap(jsonTexts) }] : [],
  );
  if (fields.length > 0) filter.fields = atMost(fields, MAX_FIELDS, fieldsName(c));
  const queues = queueParam(c, 'queue');
  return { filter: affordable(filter), ...(queues && { queues }) };
}

/** A parameter that has one value. @throws {ApiError} 400 when it is repeated: which one counts cannot be known */
function singleParam(c: AppContext, name: string): string | undefined {
  const [value, another] = (c.req.queries(name) ?? []).filter((text) => text !== '');
  if (another !== undefined) throw invalidRequest(name, `${name} takes one value.`);
  return value;
}

/** Two conditions on the same thing: one of them would be overlooked. @throws {ApiError} 400 */
function refuseSecond(taken: unknown, field: string): void {
  if (taken === undefined) return;
  throw invalidRequest(field, `${field} is about what another condition of the filter is about; name it once.`);
}

function fieldsName(c: AppContext): string {
  return Object.keys(c.req.queries()).find(isFieldName) ?? 'args';
}

/** Text of a query parameter as the JSON scalars it can stand for: `42` is a number or a string. */
function jsonTexts(text: string): string[] {
  const texts = [JSON.stringify(text)];
  if (/^(-?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|null)$/.test(text)) texts.push(JSON.stringify(JSON.parse(text)));
  return texts;
}

type Member = (filter: JobFilter, value: unknown, field: string, now: number) => void;

const readIds: Member = (filter, value, field) => {
  refuseSecond(filter.ids, field);
  filter.ids = atMost(texts(value, field), MAX_IDS, field);
};

const readTags: Member = (filter, value, field) => {
  refuseSecond(filter.tags, field);
  filter.tags = atMost(texts(value, field), MAX_TAGS, field);
};

/** A number, or `{min, max}`. */
function rangeMember(name: 'priority' | 'attempt', read: typeof readPriority): Member {
  return (filter, value, field) => {
    refuseSecond(filter[name], field);
    setRange(filter, name, readRange(value, field, read));
  };
}

/** One end of a range. */
function endMember(
  name: Bounded,
  end: 'min' | 'max',
  read: (value: unknown, field: string, now: number) => number,
): Member {
  return (filter, value, field, now) => {
    refuseSecond(filter[name]?.[end], field);
    const range = { ...filter[name], [end]: read(value, field, now) };
    setRange(filter, name, rangeOf(range.min, range.max, field));
  };
}

const readMoment = (value: unknown, field: string, now: number) => readTime(now)(value, field);

/** Members of a filter in a body. What a query can say is said by the same names; `where` is for members of the payload. */
const MEMBERS: Record<string, Member> = {
  id: readIds,
  ids: readIds,
  type: (filter, value, field) => {
    filter.types = readTypes(texts(value, field), field);
  },
  state: (filter, value, field) => {
    filter.states = oneOf(texts(value, field), JOB_STATES, field) as JobState[];
  },
  tag: readTags,
  tags: readTags,
  priority: rangeMember('priority', readPriority),
  priority_min: endMember('priority', 'min', readPriority),
  priority_max: endMember('priority', 'max', readPriority),
  attempts: rangeMember('attempt', readCount),
  attempts_min: endMember('attempt', 'min', readCount),
  attempts_max: endMember('attempt', 'max', readCount),
  since: endMember('created', 'min', readMoment),
  until: endMember('created', 'max', readMoment),
  older_than: (filter, value, field, now) => {
    filter.aged = { max: readAge(value, field, now) };
  },
  error_type: (filter, value, field) => {
    filter.error_type = readName(MAX_NAME)(value, field);
  },
  dead_letter: (filter, value, field) => {
    if (typeof value !== 'boolean') throw invalidRequest(field, `${field} must be true or false.`);
    filter.dead = value;
  },
  meta: (filter, value, field) => {
    for (const [name, wanted] of Object.entries(readObject(value, field))) {
      addField(filter, `meta[${JSON.stringify(name)}]`, wanted, `${field}.${name}`);
    }
  },
  where: (filter, value, field) => {
    for (const [name, wanted] of Object.entries(readObject(value, field))) {
      if (!isFieldName(name)) {
        throw invalidRequest(`${field}.${name}`, `${field}.${name} must begin with "args" or "meta".`);
      }
      addField(filter, name, wanted, `${field}.${name}`);
    }
  },
  ...Object.fromEntries(
    TIMES.flatMap((name) => [
      [`${name}_after`, endMember(name, 'min', readMoment)],
      [`${name}_before`, endMember(name, 'max', readMoment)],
    ]),
  ),
};

/** Is this what a condition of a filter is called? */
export function isCondition(name: string): boolean {
  return name === 'queue' || Object.hasOwn(MEMBERS, name) || isFieldName(name);
}

/**
 * Reads the filter of an operation. What is misspelt must not widen it, so unknown members are refused, and so is a filter
 * that says nothing.
 * @throws {ApiError} 400 naming the member
 */
export function filterFromBody(value: unknown, now: number, field = 'filter'): Selection {
  const filter: JobFilter = {};
  const given = Object.entries(readObject(value, field)).filter(([, member]) => member !== null);
  if (given.length === 0) {
    throw invalidRequest(field, `${field} must name at least one condition; for all jobs of a queue, name the queue.`);
  }
  let queues: string[] | undefined;
  for (const [name, member] of given) {
    const path = `${field}.${name}`;
    if (name === 'queue') queues = texts(member, path).map((queue) => readQueueName(queue, path));
    else if (Object.hasOwn(MEMBERS, name)) MEMBERS[name]?.(filter, member, path, now);
    else if (isFieldName(name)) addField(filter, name, member, path);
    else throw invalidRequest(path, `${path} is not a condition; use queue, ${Object.keys(MEMBERS).join(', ')}.`);
  }
  return { filter: affordable(filter), ...(queues && { queues }) };
}

function addField(filter: JobFilter, name: string, value: unknown, field: string): void {
  const values = Array.isArray(value) ? value : [value];
  const scalar = (item: unknown) => item === null || ['string', 'number', 'boolean'].includes(typeof item);
  if (values.length === 0 || !values.every(scalar)) {
    throw invalidRequest(field, `${field} must be a string, a number, a boolean or null, or a list of these.`);
  }
  const condition: FieldCondition = { path: readFieldPath(name), values: values.map((item) => JSON.stringify(item)) };
  filter.fields = atMost([...(filter.fields ?? []), condition], MAX_FIELDS, field);
}

function texts(value: unknown, field: string): string[] {
  const list = (Array.isArray(value) ? value : [value]).map((item: unknown) => readString(item, field));
  if (list.length === 0) throw invalidRequest(field, `${field} must not be empty.`);
  return list;
}

function readTypes(types: string[], field: string): string[] {
  for (const type of atMost(types, MAX_TYPES, field)) {
    if (type === '' || type.length > MAX_NAME || !/^[a-z0-9_.*-]+$/.test(type)) {
      throw invalidRequest(field, `${field} must be a job type, in which "*" stands for anything.`);
    }
  }
  return types;
}

function readRange(value: unknown, field: string, read: typeof readPriority): Range {
  if (typeof value === 'number') return { min: read(value, field), max: read(value, field) };
  const { min, max, ...others } = readObject(value, field);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalidRequest(`${field}.${unknown}`, `${field} takes min and max only.`);
  const end = (given: unknown, name: string) => (given === undefined ? undefined : read(given, `${field}.${name}`));
  return rangeOf(end(min, 'min'), end(max, 'max'), field) ?? {};
}

function rangeOf(min: number | undefined, max: number | undefined, field: string): Range | undefined {
  if (min === undefined && max === undefined) return undefined;
  if (min !== undefined && max !== undefined && min > max) {
    throw invalidRequest(field, `${field}: the lower bound lies above the upper one.`);
  }
  return { ...(min !== undefined && { min }), ...(max !== undefined && { max }) };
}

function setRange(filter: JobFilter, name: Bounded, range: Range | undefined): void {
  if (range) filter[name] = range;
}

/** An age, or the time up to which something is old. @returns that time, epoch ms */
export function readAge(value: unknown, field: string, now: number): number {
  const age = parseDuration(value);
  if (age !== undefined) return now - age;
  const time = parseTimestamp(value);
  if (time !== undefined) return time;
  throw invalidRequest(field, `${field} must be a duration such as "P7D" or "12h", or an RFC 3339 time with a zone.`);
}

function atMost<T>(list: T[], max: number, field: string): T[] {
  if (list.length <= max) return list;
  throw invalidRequest(field, `${field} has ${list.length} values, at most ${max} are accepted.`);
}

/** SQLite takes so many values in one statement. @throws {ApiError} 400 */
function affordable(filter: JobFilter): JobFilter {
  const values = bindingsOf(filter);
  if (values <= MAX_BINDINGS) return filter;
  throw new ApiError(
    invalidRequest('filter', `The filter names ${values} values, at most ${MAX_BINDINGS} are accepted.`).data,
  );
}
