/** Filters in bodies and query parameters: the same names. In a body, `where` is for members of the payload. */
import { readBoolean, readName, readObject, readQueueName, readString } from '../../../job/envelope/fields';
import { invalidRequest } from '../../../job/errors';
import type { FieldCondition, JobFilter, Range, Selection } from '../../../job/filter';
import type { AppContext } from '../../context';
import { within } from '../bounds';
import { unknownName } from '../members';
import { listParam, oneOf, queueParam, withPlus } from '../query';
import {
  add,
  affordable,
  atMost,
  type Bounded,
  type Condition,
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

/** Reads the filter of a list or a count. @throws {ApiError} 400 naming the parameter */
export function filterFromQuery(c: AppContext, now: number): Selection {
  const filter: JobFilter = {};
  const text = (name: string) => singleParam(c, name);
  const list = (condition: keyof typeof LISTS, ...names: [string, ...string[]]) => {
    const given = listParam(c, ...names);
    if (given) add(filter, LISTS[condition](given, names[0]), names[0]);
  };
  const value = (name: keyof typeof VALUES, read = (given: string) => given) => {
    const given = text(name);
    if (given !== undefined) add(filter, VALUES[name](read(given), name, now), name);
  };
  list('ids', 'id', 'ids', 'job_ids');
  list('type', 'type');
  list('state', 'state');
  list('tags', 'tag', 'tags');
  value('group');
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
  for (const name of TIMES) {
    const time = (parameter: string) => {
      const given = text(parameter);
      return given === undefined ? undefined : readMoment(name, withPlus(given), parameter, now);
    };
    const end = (usual: string, short: string) => {
      const other = name === 'created' ? time(short) : undefined;
      const given = time(usual);
      if (given !== undefined) refuseSecond(other, short);
      return given ?? other;
    };
    setRange(filter, name, rangeOf(end(`${name}_after`, 'since'), end(`${name}_before`, 'until'), name));
  }
  value('older_than', withPlus);
  const errorType = text('error_type');
  if (errorType !== undefined) filter.error_type = errorType;
  value('error');
  list('fingerprint', 'fingerprint');
  value('q');
  const dead = oneOf(listParam(c, 'dead_letter'), ['true', 'false'], 'dead_letter');
  if (dead?.length === 1) filter.dead = dead[0] === 'true';
  const fields = Object.entries(c.req.queries()).flatMap(([name, values]) =>
    isFieldName(name) ? [{ path: readFieldPath(name), values: values.flatMap(jsonTexts) }] : [],
  );
  const parent = text('parent');
  if (parent !== undefined) fields.push({ path: readFieldPath('meta.parent_id'), values: [JSON.stringify(parent)] });
  if (fields.length > 0) filter.fields = atMost(fields, MAX_FIELDS, fieldsName(c));
  const queues = queueParam(c, 'queue');
  const selection = within(c, { filter, ...(queues && { queues }) });
  affordable(selection.filter);
  return selection;
}

/** A parameter that has one value. @throws {ApiError} 400 when it is repeated, because that is ambiguous */
function singleParam(c: AppContext, name: string): string | undefined {
  const [value, another] = (c.req.queries(name) ?? []).filter((text) => text !== '');
  if (another !== undefined) throw invalidRequest(name, `${name} takes one value.`);
  return value;
}

const fieldsName = (c: AppContext): string => Object.keys(c.req.queries()).find(isFieldName) ?? 'args';

/** Text of a query parameter as the JSON scalars it can stand for: `42` is a number or a string. */
function jsonTexts(text: string): string[] {
  const texts = [JSON.stringify(text)];
  if (!/^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null)$/.test(text)) return texts;
  const value: unknown = JSON.parse(text);
  // JSON has no text for a number that is too large.
  if (typeof value !== 'number' || Number.isFinite(value)) texts.push(JSON.stringify(value));
  return texts;
}

type Member = (filter: JobFilter, value: unknown, field: string, now: number) => void;

/** A condition that stands alone: it repeats no other one. */
const once =
  (condition: Condition): Member =>
  (filter, value, field, now) =>
    add(filter, condition(value, field, now), field);

const list = (name: keyof typeof LISTS) => once((value, field) => LISTS[name](texts(value, field), field));

const endMember =
  (name: Bounded, end: 'min' | 'max', read: (value: unknown, field: string, now: number) => number): Member =>
  (filter, value, field, now) => {
    refuseSecond(filter[name]?.[end], field);
    const range = { ...filter[name], [end]: read(value, field, now) };
    setRange(filter, name, rangeOf(range.min, range.max, field));
  };

const momentOf = (name: Bounded) => (value: unknown, field: string, now: number) => readMoment(name, value, field, now);

/** Members of a filter in a body. They have the names of a query; `where` is for members of the payload. */
const MEMBERS: Record<string, Member> = {
  id: list('ids'),
  ids: list('ids'),
  type: list('type'),
  state: list('state'),
  tag: list('tags'),
  tags: list('tags'),
  group: once(VALUES.group),
  priority: once((value, field) => ({ priority: readRange(value, field, readPriority) })),
  priority_min: endMember('priority', 'min', readPriority),
  priority_max: endMember('priority', 'max', readPriority),
  attempts: once((value, field) => ({ attempt: readRange(value, field, readCount) })),
  attempts_min: endMember('attempt', 'min', readCount),
  attempts_max: endMember('attempt', 'max', readCount),
  since: endMember('created', 'min', momentOf('created')),
  until: endMember('created', 'max', momentOf('created')),
  older_than: once(VALUES.older_than),
  error_type: once((value, field) => ({ error_type: readName(MAX_NAME)(value, field) })),
  error: once(VALUES.error),
  fingerprint: list('fingerprint'),
  q: once(VALUES.q),
  dead_letter: once((value, field) => ({ dead: readBoolean(value, field) })),
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
