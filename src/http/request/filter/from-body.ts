/** Filters in bodies: same names as in a query; `where` is for members of the payload. */
import { readName, readObject, readQueueName, readString } from '../../../job/envelope/fields';
import { invalidRequest } from '../../../job/errors';
import type { FieldCondition, JobFilter, Range, Selection } from '../../../job/filter';
import { unknownName } from '../members';
import {
  affordable,
  atMost,
  type Bounded,
  LISTS,
  MAX_FIELDS,
  MAX_NAME,
  rangeOf,
  readCount,
  readMoment,
  readPriority,
  refuseSecond,
  setRange,
  TIMES,
  VALUES,
} from './conditions';
import { isFieldName, readFieldPath } from './field-path';

type Member = (filter: JobFilter, value: unknown, field: string, now: number) => void;

/** A list, or its only entry. */
const listMember =
  (name: Exclude<keyof typeof LISTS, 'ids' | 'tags'>): Member =>
  (filter, value, field) =>
    LISTS[name](filter, texts(value, field), field);

/** A list that has two names. */
const namedTwice =
  (name: 'ids' | 'tags'): Member =>
  (filter, value, field) => {
    refuseSecond(filter[name], field);
    LISTS[name](filter, texts(value, field), field);
  };

/** A number, or `{min, max}`. */
function rangeMember(name: 'priority' | 'attempt', read: typeof readPriority): Member {
  return (filter, value, field) => {
    refuseSecond(filter[name], field);
    setRange(filter, name, readRange(value, field, read));
  };
}

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

const momentOf = (name: Bounded) => (value: unknown, field: string, now: number) => readMoment(name, value, field, now);

/** Members of a filter in a body. They have the names of a query; `where` is for members of the payload. */
const MEMBERS: Record<string, Member> = {
  id: namedTwice('ids'),
  ids: namedTwice('ids'),
  type: listMember('type'),
  state: listMember('state'),
  tag: namedTwice('tags'),
  tags: namedTwice('tags'),
  group: VALUES.group,
  priority: rangeMember('priority', readPriority),
  priority_min: endMember('priority', 'min', readPriority),
  priority_max: endMember('priority', 'max', readPriority),
  attempts: rangeMember('attempt', readCount),
  attempts_min: endMember('attempt', 'min', readCount),
  attempts_max: endMember('attempt', 'max', readCount),
  since: endMember('created', 'min', momentOf('created')),
  until: endMember('created', 'max', momentOf('created')),
  older_than: VALUES.older_than,
  error_type: (filter, value, field) => {
    filter.error_type = readName(MAX_NAME)(value, field);
  },
  error: (filter, value, field) => VALUES.error(filter, readString(value, field), field),
  fingerprint: listMember('fingerprint'),
  q: (filter, value, field) => VALUES.q(filter, readString(value, field), field),
  dead_letter: (filter, value, field) => {
    if (typeof value !== 'boolean') throw invalidRequest(field, `${field} must be true or false.`);
    filter.dead = value;
  },
  meta: (filter, value, field) => {
    for (const [name, wanted] of conditionsIn(value, field)) {
      addField(filter, `meta[${JSON.stringify(name)}]`, wanted, `${field}.${name}`);
    }
  },
  where: (filter, value, field) => {
    for (const [name, wanted] of conditionsIn(value, field)) {
      if (!isFieldName(name)) {
        throw invalidRequest(`${field}.${name}`, `${field}.${name} must begin with "args" or "meta".`);
      }
      addField(filter, name, wanted, `${field}.${name}`);
    }
  },
  ...Object.fromEntries(
    TIMES.flatMap((name) => [
      [`${name}_after`, endMember(name, 'min', momentOf(name))],
      [`${name}_before`, endMember(name, 'max', momentOf(name))],
    ]),
  ),
};

/** Reads the filter of an operation. Unknown members, or none, could widen it. @throws {ApiError} 400 naming one */
export function filterFromBody(value: unknown, now: number, field = 'filter'): Selection {
  const filter: JobFilter = {};
  const given = Object.entries(readObject(value, field));
  if (given.length === 0) {
    throw invalidRequest(field, `${field} must name at least one condition; for all jobs of a queue, name the queue.`);
  }
  let queues: string[] | undefined;
  for (const [name, member] of given) {
    const path = `${field}.${name}`;
    if (member === null) throw invalidRequest(path, `${path} must not be null: leave it out, or name a value.`);
    if (name === 'queue') queues = texts(member, path).map((queue) => readQueueName(queue, path));
    else if (Object.hasOwn(MEMBERS, name)) MEMBERS[name]?.(filter, member, path, now);
    else if (isFieldName(name)) addField(filter, name, member, path);
    else throw unknownName(name, 'is not a condition', ['queue', ...Object.keys(MEMBERS)], `${field}.`);
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

/** The members of a condition. An empty one would match everything. @throws {ApiError} 400 */
function conditionsIn(value: unknown, field: string): [string, unknown][] {
  const given = Object.entries(readObject(value, field));
  if (given.length === 0) throw invalidRequest(field, `${field} must not be empty.`);
  return given;
}

function texts(value: unknown, field: string): string[] {
  const list = (Array.isArray(value) ? value : [value]).map((item: unknown) => readString(item, field));
  if (list.length === 0) throw invalidRequest(field, `${field} must not be empty.`);
  return list;
}

function readRange(value: unknown, field: string, read: typeof readPriority): Range {
  if (typeof value === 'number') return { min: read(value, field), max: read(value, field) };
  const { min, max, ...others } = readObject(value, field);
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw invalidRequest(`${field}.${unknown}`, `${field} takes min and max only.`);
  const end = (given: unknown, name: string) => (given === undefined ? undefined : read(given, `${field}.${name}`));
  const range = rangeOf(end(min, 'min'), end(max, 'max'), field);
  if (!range) throw invalidRequest(field, `${field} needs min or max.`);
  return range;
}
