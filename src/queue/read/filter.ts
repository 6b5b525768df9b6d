/** Job filters and their SQL, for rows of `jobs` and archive chunks. States depend on leases in memory, not on SQL. */
import { type Fragment, listed } from '../../durable/sql';
import { type Failure, fingerprintOfFailure, MAX_LOOKED_AT } from '../../job/failures/fingerprint';
import { failureOf } from '../../job/failures/last';
import { type JobFilter, type PatternParts, partsOf, type Range } from '../../job/filter';
import { saysAll, searcherFor } from '../../job/search';
import { type JobRow, STATE } from '../store/job-row';
import { type ArchivedJob, idOf, idOfArchived } from '../store/rows';

/** Where a table has the members of a job. */
interface Columns {
  type: string;
  priority: string;
  attempt: string;
  /** JSON list of keys, if `attempt` has a question mark for it. */
  running?: Fragment['bindings'];
  created: string;
  enqueued: string;
  scheduled: string;
  ended: string;
  errorType: string;
  dead: string;
  /** JSON that `prefix` and a path lead into. */
  document: string;
  prefix: string;
}

function rowColumns(now: number): Columns {
  const due = `state = ${STATE.waiting} AND due_at <= ${Math.floor(now)}`;
  return {
    type: 'type',
    priority: 'priority',
    attempt: 'attempt',
    created: 'created_at',
    enqueued: `CASE WHEN ${due} THEN max(enqueued_at, due_at) ELSE enqueued_at END`,
    scheduled: 'due_at',
    ended: 'ended_at',
    errorType: "CASE WHEN json_valid(history) THEN history ->> '$.error.type' END",
    dead: `state = ${STATE.dead}`,
    // A record that cannot be read has no members; it must not stop the others from being found.
    document: "CASE WHEN json_valid(body) THEN body ELSE '{}' END",
    prefix: '$',
  };
}

/** Columns of `json_each(archive.data) AS job`. */
const ARCHIVED: Columns = {
  type: "job.value ->> '$.t'",
  priority: "job.value ->> '$.p'",
  attempt: "job.value ->> '$.n'",
  created: "job.value ->> '$.at[0]'",
  enqueued: "job.value ->> '$.at[1]'",
  scheduled: 'NULL',
  ended: "job.value ->> '$.at[3]'",
  errorType: 'NULL',
  dead: '0',
  document: 'job.value',
  prefix: '$.b',
};

/** The condition on a row of `jobs`. @param running keys of running jobs: their attempt is not on their row yet */
export function conditionOnRow(filter: JobFilter, now: number, running: Iterable<number>): Fragment {
  const columns = rowColumns(now);
  if (filter.attempt === undefined) return conditionOn(filter, columns);
  const keys = listed(running);
  return conditionOn(filter, { ...columns, attempt: `attempt + (key IN ${keys.sql})`, running: keys.bindings });
}

/** The group of a job, in SQL: as `groupOf` tells it. @param document JSON; @param prefix the path to the job's body */
function groupIn(document: string, prefix: string): string {
  const member = (path: string) => `(${document}) ->> '${prefix}.${path}'`;
  return `coalesce(${member('group')}, ${member('rate_limit.key')})`;
}

/** The group of a row in `jobs`; null without one, and of a body that cannot be read. */
export const GROUP_OF_BODY = `CASE WHEN json_valid(body) THEN ${groupIn('body', '$')} END`;

export const conditionOnArchived = (filter: JobFilter): Fragment => conditionOn(filter, ARCHIVED);

function conditionOn(filter: JobFilter, columns: Columns): Fragment {
  const parts: string[] = [];
  const bindings: (string | number)[] = [];
  const add = (sql: string, ...values: (string | number)[]) => {
    parts.push(`(${sql})`);
    bindings.push(...values);
  };
  const addRange = (column: string, range: Range | undefined, ...inside: Fragment['bindings']) => {
    if (range?.min !== undefined) add(`(${column}) >= ?`, ...inside, range.min);
    if (range?.max !== undefined) add(`(${column}) <= ?`, ...inside, range.max);
  };
  const addPatterns = (column: string, texts: readonly string[]) => {
    const patterns = texts.map((text) => conditionOnText(column, partsOf(text)));
    add(patterns.map(({ sql }) => sql).join(' OR ') || '0', ...patterns.flatMap(({ bindings }) => bindings));
  };
  if (filter.types) addPatterns(columns.type, filter.types);
  if (filter.groups) addPatterns(groupIn(columns.document, columns.prefix), filter.groups);
  addRange(columns.priority, filter.priority);
  addRange(columns.attempt, filter.attempt, ...(columns.running ?? []));
  addRange(columns.created, filter.created);
  addRange(columns.enqueued, filter.enqueued);
  addRange(columns.scheduled, filter.scheduled);
  addRange(columns.ended, filter.ended);
  addRange(`coalesce(${columns.ended}, ${columns.enqueued})`, filter.aged);
  if (filter.error_type !== undefined) add(`${columns.errorType} = ?`, filter.error_type);
  if (filter.dead !== undefined) add(`${columns.dead} = ?`, filter.dead ? 1 : 0);
  for (const tag of filter.tags ?? []) {
    const list = `json_each(${columns.document}, '${columns.prefix}.tags')`;
    add(`EXISTS (SELECT 1 FROM ${list} AS tag WHERE tag.value = ?)`, tag);
  }
  if (filter.group !== undefined) {
    add(`${groupIn(columns.document, columns.prefix)} = ?`, filter.group);
  }
  for (const { path, values } of filter.fields ?? []) {
    const value = `(${columns.document}) -> ?`;
    add(`${value} IN (${values.map(() => '?').join(', ')})`, columns.prefix + path, ...values);
  }
  return { sql: parts.length === 0 ? '1' : parts.join(' AND '), bindings };
}

/** Does the text match the pattern? LIKE and GLOB take only 50 characters, so middle parts are searched one by one. */
function conditionOnText(text: string, { first, rest }: PatternParts): Fragment {
  if (!rest) return { sql: `${text} = ?`, bindings: [first] };
  const { last, middle } = rest;
  const parts = [`length(${text}) >= ${first.length + last.length}`];
  const bindings: string[] = [];
  const add = (sql: string, value: string) => {
    parts.push(sql);
    bindings.push(value);
  };
  if (first !== '') add(`substr(${text}, 1, ${first.length}) = ?`, first);
  if (last !== '') add(`substr(${text}, -${last.length}) = ?`, last);
  if (middle.length > 0) {
    const between = `substr(${text}, ${first.length + 1}, length(${text}) - ${first.length + last.length})`;
    const sql = `EXISTS (WITH RECURSIVE step (number, remaining) AS (
      SELECT 0, ${between}
      UNION ALL SELECT number + 1, substr(remaining, instr(remaining, part.value) + length(part.value))
      FROM step, json_each(?) AS part WHERE part.key = number AND instr(remaining, part.value) > 0
    ) SELECT 1 FROM step WHERE number = ${middle.length})`;
    add(sql, JSON.stringify(middle));
  }
  return { sql: `(${parts.join(' AND ')})`, bindings };
}

/** Reading this many characters counts as much as looking at one more job. */
const CHARS_PER_JOB = 1024;

/** The columns of a row that this needs. Others were not read. */
export type InspectedRow = Pick<JobRow, 'key'> &
  Partial<Pick<JobRow, 'type' | 'alias' | 'created_at' | 'body'>> & { failure?: string | null };

/** Conditions beyond SQL: a job's text and failure group, one job at a time. Reads count towards bounds. */
export interface Inspection {
  /** Columns to select beside `key`. */
  columns: string;
  fits(row: InspectedRow): boolean;
  /** {@link fits} for a completed job. @param json of it */
  fitsArchived(json: string): boolean;
  /** What it costs to look at this row, in jobs. */
  costOf(row: InspectedRow): number;
}

/** JSON of a row's last failure, in SQL: class, code, message, time and reason; null where there is none. */
export const FAILURE = `CASE WHEN json_valid(history) THEN json_array(history ->> '$.error.type', history ->> '$.error.code',
  substr(history ->> '$.error.message', 1, ${MAX_LOOKED_AT}), history ->> '$.error.occurred_at', history ->> '$.reason') END`;

interface FoundFailure extends Failure {
  /** Epoch ms, when the attempt failed. */
  occurred_at?: number;
}

/** Reads {@link FAILURE}. @returns undefined for a job that has not failed */
export function foundFailure(type: string, json: string | null | undefined): FoundFailure | undefined {
  if (json === null || json === undefined) return undefined;
  const [error_type, code, message, at, reason] = JSON.parse(json) as unknown[];
  if (error_type === null && code === null && reason === null) return undefined;
  const failure = failureOf(type, { type: error_type, code, message }, reason);
  return { ...failure, ...(typeof at === 'number' && { occurred_at: at }) };
}

/** The part of this filter that must be checked in this way; undefined without one. */
export function inspectionOf(filter: JobFilter, route: number): Inspection | undefined {
  const { words, error_words, fingerprints } = filter;
  if (!words && !error_words && !fingerprints) return undefined;
  const says = words && searcherFor(words);
  const errorSays = error_words && saysAll(error_words);
  const groups = fingerprints && new Set(fingerprints);
  return {
    columns: `type, ${FAILURE} AS failure${says ? ', alias, created_at, body' : ''}`,
    fits(row) {
      const { type = '', alias = null, created_at = 0, body = '', key } = row;
      const failure = foundFailure(type, row.failure);
      const error = failure ? [failure.message, failure.error_type, failure.code] : [];
      if (groups && !(failure && groups.has(fingerprintOfFailure(failure)))) return false;
      if (errorSays && !errorSays(error)) return false;
      return !says || says({ id: idOf(route, { alias, created_at, key }), type, body, error });
    },
    fitsArchived(json) {
      // Its failures were followed by a success.
      if (groups || errorSays || !says) return false;
      const job = JSON.parse(json) as ArchivedJob;
      return says({ id: idOfArchived(route, job), type: job.t, body: JSON.stringify(job.b), error: [] });
    },
    costOf: ({ body = '', failure }) => 1 + (body.length + (failure?.length ?? 0)) / CHARS_PER_JOB,
  };
}
