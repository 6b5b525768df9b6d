/**
 * What can be asked of jobs, and the SQL that answers it. One filter reads both places where jobs lie: the rows of `jobs`
 * and the entries of archive chunks, whose members have other names but the same meaning.
 *
 * Whether a job is in one of the states asked for is not part of the SQL: that depends on leases in memory.
 */

import type { JobFilter, Range } from '../../job/filter';
import type { Condition } from '../store/archive';
import { STATE } from '../store/columns';

/** Where the members of a job stand. */
interface Columns {
  type: string;
  priority: string;
  attempt: string;
  /** JSON list of keys, if `attempt` has a question mark for it. */
  running?: string;
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
  const due = `state = ${STATE.waiting} AND coalesce(due_at, waits_since) <= ${Math.floor(now)}`;
  return {
    type: 'type',
    priority: 'priority',
    attempt: 'attempt',
    created: 'created_at',
    enqueued: `CASE WHEN ${due} THEN max(enqueued_at, coalesce(due_at, waits_since)) ELSE enqueued_at END`,
    scheduled: 'coalesce(due_at, waits_since)',
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

/**
 * The condition on a row of `jobs`.
 * @param running keys of jobs that run: their attempt is not on their row yet
 */
export function conditionOnRow(filter: JobFilter, now: number, running: Iterable<number>): Condition {
  const columns = rowColumns(now);
  if (filter.attempt === undefined) return conditionOn(filter, columns);
  const attempt = 'attempt + (key IN (SELECT value FROM json_each(?)))';
  return conditionOn(filter, { ...columns, attempt, running: JSON.stringify([...running]) });
}

/** The condition on an entry of an archive chunk. */
export function conditionOnArchived(filter: JobFilter): Condition {
  return conditionOn(filter, ARCHIVED);
}

function conditionOn(filter: JobFilter, columns: Columns): Condition {
  const parts: string[] = [];
  const bindings: (string | number)[] = [];
  const add = (sql: string, ...values: (string | number)[]) => {
    parts.push(`(${sql})`);
    bindings.push(...values);
  };
  const addRange = (column: string, range: Range | undefined, ...inside: string[]) => {
    if (range?.min !== undefined) add(`(${column}) >= ?`, ...inside, range.min);
    if (range?.max !== undefined) add(`(${column}) <= ?`, ...inside, range.max);
  };
  if (filter.types) {
    add(filter.types.map(() => `${columns.type} GLOB ?`).join(' OR ') || '0', ...filter.types.map(globOf));
  }
  addRange(columns.priority, filter.priority);
  addRange(columns.attempt, filter.attempt, ...(columns.running === undefined ? [] : [columns.running]));
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
  for (const { path, values } of filter.fields ?? []) {
    const value = `(${columns.document}) -> ?`;
    add(`${value} IN (${values.map(() => '?').join(', ')})`, columns.prefix + path, ...values);
  }
  return { sql: parts.length === 0 ? '1' : parts.join(' AND '), bindings };
}

/** `*` is the only wildcard; what else GLOB knows stands for itself. */
function globOf(pattern: string): string {
  return pattern.replace(/[[?]/g, '[$&]');
}
