/** Filters in query parameters. Repeated parameters and comma lists mean the same. */
import { invalidRequest } from '../../../job/errors';
import type { JobFilter, Selection } from '../../../job/filter';
import type { AppContext } from '../../context';
import { listParam, oneOf, queueParam, withPlus } from '../query';
import {
  affordable,
  atMost,
  LISTS,
  MAX_FIELDS,
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
    if (given) LISTS[condition](filter, given, names[0]);
  };
  const value = (name: keyof typeof VALUES, read = (given: string) => given) => {
    const given = text(name);
    if (given !== undefined) VALUES[name](filter, read(given), name, now);
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
  return { filter: affordable(filter), ...(queues && { queues }) };
}

/** A parameter that has one value. @throws {ApiError} 400 when it is repeated, because that is ambiguous */
function singleParam(c: AppContext, name: string): string | undefined {
  const [value, another] = (c.req.queries(name) ?? []).filter((text) => text !== '');
  if (another !== undefined) throw invalidRequest(name, `${name} takes one value.`);
  return value;
}

function fieldsName(c: AppContext): string {
  return Object.keys(c.req.queries()).find(isFieldName) ?? 'args';
}

/** Text of a query parameter as the JSON scalars it can stand for: `42` is a number or a string. */
function jsonTexts(text: string): string[] {
  const texts = [JSON.stringify(text)];
  if (!/^(-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null)$/.test(text)) return texts;
  const value: unknown = JSON.parse(text);
  // JSON has no text for a number that is too large.
  if (typeof value !== 'number' || Number.isFinite(value)) texts.push(JSON.stringify(value));
  return texts;
}
