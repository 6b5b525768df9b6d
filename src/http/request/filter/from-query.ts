/** Filters in query parameters. Repeated parameters and comma lists mean the same. */
import { invalidRequest } from '../../../job/errors';
import type { JobFilter, Selection } from '../../../job/filter';
import { JOB_STATES } from '../../../job/states';
import type { AppContext } from '../../context';
import { listParam, oneOf, queueParam, withPlus } from '../query';
import {
  affordable,
  atMost,
  MAX_FIELDS,
  MAX_IDS,
  MAX_TAGS,
  rangeOf,
  readAge,
  readCount,
  readFingerprints,
  readMoment,
  readPriority,
  readTypes,
  readWords,
  refuseSecond,
  setRange,
  setSearch,
  TIMES,
} from './conditions';
import { isFieldName, readFieldPath } from './field-path';

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
  const olderThan = text('older_than');
  if (olderThan !== undefined) filter.aged = { max: readAge(withPlus(olderThan), 'older_than', now) };
  const errorType = text('error_type');
  if (errorType !== undefined) filter.error_type = errorType;
  const error = text('error');
  if (error !== undefined) filter.error_words = readWords(error, 'error');
  const fingerprints = listParam(c, 'fingerprint');
  if (fingerprints) filter.fingerprints = readFingerprints(fingerprints, 'fingerprint');
  const search = text('q');
  if (search !== undefined) setSearch(filter, search, 'q');
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
