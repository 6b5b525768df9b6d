/** What can be asked of jobs, wherever they lie. */
import { type ApiError, unsupported } from './errors';
import type { JobState } from './states';

export interface Range {
  min?: number;
  max?: number;
}

/** A condition on a member of the job's payload or meta data. */
export interface FieldCondition {
  /** JSON path below the stored body, e.g. `.args[0]."user_id"`. */
  path: string;
  /** JSON texts of the scalars that fit; one of them must be there. */
  values: string[];
}

/** Conditions that must all hold; absent members do not matter. Times in epoch ms. */
export interface JobFilter {
  ids?: string[];
  /** At least one must fit; `*` stands for any characters. */
  types?: string[];
  states?: JobState[];
  /** The job must have them all. */
  tags?: string[];
  group?: string;
  /** Its group must fit one of these: a name, or the beginning of names and `*`. */
  groups?: string[];
  priority?: Range;
  /** Attempts begun. */
  attempt?: Range;
  created?: Range;
  enqueued?: Range;
  /** When it becomes (or became) due; only delayed, retried and prioritised jobs have such a time. */
  scheduled?: Range;
  ended?: Range;
  /** When it ended; for a job that has not ended, when it was enqueued. */
  aged?: Range;
  error_type?: string;
  dead?: boolean;
  fields?: FieldCondition[];
  /** Words and phrases in lower case, all of which the job must say; see `search.ts`. */
  words?: string[];
  error_words?: string[];
  /** Its last failure has one of these fingerprints; see `failures/fingerprint.ts`. */
  fingerprints?: string[];
}

/** A filter, and the queues it names; absent: all queues. */
export interface Selection {
  filter: JobFilter;
  queues?: string[];
}

/** The filter without the jobs that were created after `time` (epoch ms). */
export function madeUntil(filter: JobFilter, time: number): JobFilter {
  return { ...filter, created: { ...filter.created, max: Math.min(filter.created?.max ?? time, time) } };
}

/** How many `?` a filter may need beside those of the statement around it; SQLite takes 100. */
export const MAX_BINDINGS = 80;

/** How many `?` the filter needs in one statement. Each bound on attempts needs one more, for the jobs that run. */
export function bindingsOf(filter: JobFilter): number {
  const { types = [], tags = [], fields = [], priority, attempt, created, enqueued, scheduled, ended, aged } = filter;
  const bounds = [priority, attempt, attempt, created, enqueued, scheduled, ended, aged];
  const ends = bounds.flatMap((range) => [range?.min, range?.max]);
  const given = [...ends, filter.error_type, filter.dead, filter.group].filter((value) => value !== undefined);
  const ofFields = fields.reduce((sum, { values }) => sum + 1 + values.length, 0);
  const ofTypes = types.reduce((sum, pattern) => sum + bindingsOfPattern(partsOf(pattern)), 0);
  const ofGroups = (filter.groups ?? []).reduce((sum, pattern) => sum + bindingsOfPattern(partsOf(pattern)), 0);
  return ofGroups + ofTypes + tags.length + ofFields + given.length;
}

/** A pattern cut at its wildcards; without any it is all `first`, and `rest` is absent. */
export interface PatternParts {
  /** What the text begins with. */
  first: string;
  rest?: {
    /** What it ends with. */
    last: string;
    /** What comes in between, in this order. */
    middle: string[];
  };
}

/** Cuts a pattern at each `*`, which stands for anything. */
export function partsOf(pattern: string): PatternParts {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  return last === undefined ? { first } : { first, rest: { last, middle: others.filter((part) => part !== '') } };
}

function bindingsOfPattern({ first, rest }: PatternParts): number {
  if (!rest) return 1;
  return [first, rest.last].filter((part) => part !== '').length + Math.min(rest.middle.length, 1);
}

export const looksInside = (filter: JobFilter): boolean =>
  Object.entries(filter).some(([name, value]) => name !== 'states' && value !== undefined);

const NARROWER =
  'Narrow the filter, send job_ids in portions, or omit atomicity: then every match is acted on, in steps.';

/** 422: an operation on all matches or none is done in one transaction. @param max how many may match */
export function tooManyMatches(max: number): ApiError {
  const message = `More than ${max} jobs match, the most that all-or-none can act on.`;
  return unsupported(message, { field: 'filter', max_matches: max }, NARROWER);
}

/** 422: the same, of jobs that must be looked at to find the matches. @param max how many, in this queue */
export function tooManyLookedAt(max: number, queue: string): ApiError {
  const message = `Finding the matches means reading more than ${max} jobs of queue ${queue}; all-or-none does not support that.`;
  return unsupported(message, { field: 'filter', queue }, NARROWER);
}
