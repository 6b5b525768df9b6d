/**
 * The common parts of filters in queries and in bodies. Bounds are inclusive, lists mean "any of these" (tags: all of
 * them), and different conditions must all hold.
 */
import { parseDuration } from '../../../job/duration';
import { defined, readInteger, readName, readString } from '../../../job/envelope/fields';
import { invalidRequest } from '../../../job/errors';
import { isFingerprint } from '../../../job/failures/fingerprint';
import { bindingsOf, type JobFilter, MAX_BINDINGS, type Range } from '../../../job/filter';
import { MAX_GROUP_LENGTH } from '../../../job/group';
import { idIn, MAX_SEARCH, MAX_WORDS, wordsOf } from '../../../job/search';
import { JOB_STATES, type JobState } from '../../../job/states';
import { parseInstant, parsePast, parseTimestamp } from '../../../job/time';
import { oneOf } from '../query';

const MAX_IDS = 1000;
const MAX_TYPES = 20;
const MAX_TAGS = 10;
export const MAX_FIELDS = 10;
export const MAX_NAME = 255;

/** Times that jobs can be chosen by; each with `_after` and `_before`. */
export const TIMES = ['created', 'enqueued', 'scheduled', 'ended'] as const;

/** What has an upper and a lower bound. */
export type Bounded = 'priority' | 'attempt' | (typeof TIMES)[number];

export const readPriority = readInteger(-100, 100);
export const readCount = readInteger(0, 2_147_483_647);

/** Two conditions on the same thing: one of them would be overlooked. @throws {ApiError} 400 */
export function refuseSecond(taken: unknown, field: string): void {
  if (taken === undefined) return;
  throw invalidRequest(field, `${field} repeats another condition of the filter; use one of them.`);
}

/** Adds what a condition makes. @throws {ApiError} 400 where it repeats another one */
export function add(filter: JobFilter, part: JobFilter, field: string): void {
  for (const name in part) refuseSecond(filter[name as keyof JobFilter], field);
  Object.assign(filter, part);
}

/** Job types, in which `*` stands for anything. @throws {ApiError} 400 */
export function readTypes(types: string[], field: string): string[] {
  for (const type of atMost(types, MAX_TYPES, field)) {
    if (type === '' || type.length > MAX_NAME || !/^[a-z0-9_.*-]+$/.test(type)) {
      throw invalidRequest(field, `${field} must be a job type, in which "*" matches anything.`);
    }
  }
  return types;
}

/** @returns undefined without bounds. @throws {ApiError} 400 when the bounds cross */
export function rangeOf(min: number | undefined, max: number | undefined, field: string): Range | undefined {
  if (min === undefined && max === undefined) return undefined;
  if (min !== undefined && max !== undefined && min > max) {
    throw invalidRequest(field, `${field}: the lower bound is above the upper one.`);
  }
  return defined({ min, max });
}

export function setRange(filter: JobFilter, name: Bounded, range: Range | undefined): void {
  if (range) filter[name] = range;
}

/** An age, or the latest time of something that old. @returns that time, epoch ms */
export function readAge(value: unknown, field: string, now: number): number {
  const age = parseDuration(value);
  if (age !== undefined) return now - age;
  const time = parseTimestamp(value);
  if (time !== undefined) return time;
  throw invalidRequest(field, `${field} must be a duration such as "P7D" or "12h", or an RFC 3339 time with a zone.`);
}

/** A time to choose jobs by, epoch ms. A bare duration counts back; with `+`, or for due times, from now on. */
export function readMoment(name: Bounded, value: unknown, field: string, now: number): number {
  const moment = (name === 'scheduled' ? parseInstant : parsePast)(value, now);
  if (moment !== undefined) return moment;
  throw invalidRequest(
    field,
    `${field} must be an RFC 3339 time with a zone, or a duration: "PT10S" or "24h" ${name === 'scheduled' ? 'from now' : 'ago, "+PT10S" from now'}.`,
  );
}

/** The words of a search, all of which must be found. @throws {ApiError} 400 */
function readWords(text: string, field: string): string[] {
  if (text.length > MAX_SEARCH) {
    throw invalidRequest(field, `${field} has ${text.length} characters, at most ${MAX_SEARCH} are accepted.`);
  }
  const words = wordsOf(text);
  if (words.length === 0) throw invalidRequest(field, `${field} must not be blank.`);
  return atMost(words, MAX_WORDS, field);
}

/** The groups of failures that are meant. @throws {ApiError} 400 */
export function readFingerprints(texts: string[], field: string): string[] {
  const wrong = atMost(texts, MAX_TYPES, field).find((text) => !isFingerprint(text));
  if (wrong === undefined) return texts;
  throw invalidRequest(
    field,
    `${field} must be the fingerprint of a group of failures: GET /admin/failures lists them.`,
  );
}

/** The part of a filter that a condition makes. @throws {ApiError} 400 naming `field` */
export type Condition<Value = unknown> = (value: Value, field: string, now: number) => JobFilter;

/** The conditions that are said alike in queries and in bodies: of lists, and of single values. */
export const LISTS = {
  ids: (ids, field) => ({ ids: atMost(ids, MAX_IDS, field) }),
  type: (types, field) => ({ types: readTypes(types, field) }),
  state: (states, field) => ({ states: oneOf(states, JOB_STATES, field) as JobState[] }),
  tags: (tags, field) => ({ tags: atMost(tags, MAX_TAGS, field) }),
  fingerprint: (fingerprints, field) => ({ fingerprints: readFingerprints(fingerprints, field) }),
} satisfies Record<string, (list: string[], field: string) => JobFilter>;

export const VALUES = {
  group: (value, field) => ({ group: readName(MAX_GROUP_LENGTH)(value, field) }),
  older_than: (value, field, now) => ({ aged: { max: readAge(value, field, now) } }),
  error: (value, field) => ({ error_words: readWords(readString(value, field), field) }),
  /** An id means the job with it, not those that mention it. */
  q: (value, field) => {
    const text = readString(value, field);
    const id = idIn(text);
    return id === undefined ? { words: readWords(text, field) } : { ids: [id] };
  },
} satisfies Record<string, Condition>;

export function atMost<T>(list: T[], max: number, field: string): T[] {
  if (list.length <= max) return list;
  throw invalidRequest(field, `${field} has ${list.length} values, at most ${max} are accepted.`);
}

/** The values in one statement of SQLite are bounded. @throws {ApiError} 400 */
export function affordable(filter: JobFilter): JobFilter {
  const values = bindingsOf(filter);
  if (values <= MAX_BINDINGS) return filter;
  throw invalidRequest('filter', `The filter names ${values} values, at most ${MAX_BINDINGS} are accepted.`);
}
