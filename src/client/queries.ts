/** Queries over many jobs as a producer writes them: as query parameters, and as the filter of an operation. */

import { own } from '../job/own';
import type { JobState } from '../job/states';
import type { Duration } from '../producer/envelope';
import { type Moment, momentText } from '../producer/job';
import { wireName } from '../producer/names';
import { checked, invalid } from './requests';

export type Scalar = string | number | boolean | null;

/** Numbers from `min` to `max`, both included, or exactly one. */
export type Range = number | { min?: number; max?: number };

/** Conditions must all hold; of a list any value may match (of `tags` all must). Times are inclusive. */
export interface JobQuery {
  queue?: string | readonly string[];
  ids?: readonly string[];
  /** `*` stands for anything. */
  type?: string | readonly string[];
  state?: JobState | readonly JobState[];
  tags?: readonly string[];
  group?: string;
  priority?: Range;
  attempts?: Range;
  createdAfter?: Moment;
  createdBefore?: Moment;
  enqueuedAfter?: Moment;
  enqueuedBefore?: Moment;
  scheduledAfter?: Moment;
  scheduledBefore?: Moment;
  endedAfter?: Moment;
  endedBefore?: Moment;
  /** An age, `"P7D"` or `"12h"`, since the end, else since the enqueue. */
  olderThan?: Duration;
  /** Type of the last error. */
  errorType?: string;
  /** Words and quoted phrases in the last error. */
  error?: string;
  /** Its group of failures. */
  fingerprint?: string | readonly string[];
  /** Words and quoted phrases in its arguments, `meta`, tags, type or last error, or the beginning of its id. */
  q?: string;
  deadLetter?: boolean;
  /** Id of the job whose handler enqueued them. */
  parent?: string;
  /** Members of the payload or of `meta` and what they must be: `{ 'args.0.user_id': 42, 'meta.tenant': 'acme' }`. */
  where?: Readonly<Record<string, Scalar | readonly Scalar[]>>;
}

/** Which jobs to act on; at least one condition. */
export type BulkQuery = Omit<JobQuery, 'deadLetter' | 'parent'>;

const CONDITIONS: Readonly<Record<keyof BulkQuery, true>> = {
  ...{ queue: true, ids: true, type: true, state: true, tags: true, group: true, priority: true, attempts: true },
  ...{ createdAfter: true, createdBefore: true, enqueuedAfter: true, enqueuedBefore: true },
  ...{ scheduledAfter: true, scheduledBefore: true, endedAfter: true, endedBefore: true, olderThan: true },
  ...{ errorType: true, error: true, fingerprint: true, q: true, where: true },
};

/** Those of lists and counts, which have two more. */
const OF_LISTS = { ...CONDITIONS, deadLetter: true, parent: true };

/** Conditions whose parameter names one of several. */
const SINGULAR: Readonly<Record<string, string>> = { ids: 'id', tags: 'tag' };

/** The query as parameters. @throws {InvalidJobError} for a condition that would be lost */
export function parametersOf(query: JobQuery): URLSearchParams {
  const { where = {}, ...conditions } = checked(query, OF_LISTS);
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(conditions)) {
    if (name === 'priority' || name === 'attempts') setRange(parameters, name, value as Range);
    else {
      const text = String(isMoment(name, value) ? momentText(value, name) : value);
      parameters.set(own(SINGULAR, name) ?? wireName(name), text);
    }
  }
  for (const [name, value] of Object.entries(where)) {
    if (!/^(args|meta)[.[]/.test(name)) throw invalid(`${name} must begin with "args." or "meta.".`, `where.${name}`);
    const values = Array.isArray(value) ? value : [value];
    if (values.length === 0) throw invalid(`where.${name} must not be an empty list.`, `where.${name}`);
    for (const one of values) parameters.append(name, String(one));
  }
  return parameters;
}

function setRange(parameters: URLSearchParams, name: string, range: Range): void {
  if (typeof range === 'number') {
    parameters.set(name, String(range));
    return;
  }
  const ends = Object.entries(checked(range, { min: true, max: true }));
  if (ends.length === 0) throw invalid(`${name} needs min or max.`, name);
  for (const [end, bound] of ends) parameters.set(`${name}_${end}`, String(bound));
}

/** The query as a filter. @throws {InvalidJobError} as {@link checked}, and when there is no condition */
export function filterOf(query: BulkQuery): Record<string, unknown> {
  const filter: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(checked(query, CONDITIONS))) {
    filter[wireName(name)] = isMoment(name, value) ? momentText(value, name) : value;
  }
  if (Object.keys(filter).length > 0) return filter;
  throw invalid('Name at least one condition; for all jobs of a queue, name the queue.', 'filter');
}

const isMoment = (name: string, value: unknown): value is Moment =>
  /(After|Before)$/.test(name) && (value instanceof Date || typeof value === 'number' || typeof value === 'string');
