/** The texts in a row: the body of its job, and its history. */
import { parseStored } from '../../durable/sql';
import { parseExactly } from '../../job/envelope/exact';
import { shown } from '../../job/envelope/nesting';
import { groupOf } from '../../job/group';
import type { JobBody, JobErrorEntry, JobHistory } from '../../job/record';
import type { JobRow } from './job-row';

/** Parses the history column. An unreadable one counts as empty: a damaged record must not stop its queue. */
export function historyOf(row: Pick<JobRow, 'history'>): JobHistory {
  if (row.history === null) return {};
  const stored = readObject(row.history) as JobHistory | undefined;
  if (!stored) return {};
  const history = shown(stored);
  if (history.errors !== undefined && !(Array.isArray(history.errors) && history.errors.every(isObject))) {
    delete history.errors;
  }
  if (history.error !== undefined && !isObject(history.error)) delete history.error;
  if (history.log !== undefined && !Array.isArray(history.log)) delete history.log;
  const last = history.errors?.at(-1);
  if (history.error && last && isSameFailure(history.error, last)) history.error = last;
  return history;
}

/** The history column: the last failure in full; the list has it without its long members. */
export function historyText(history: JobHistory): string {
  const { error, errors } = history;
  if (error === undefined || error !== errors?.at(-1)) return JSON.stringify(history);
  const { stack: _, details: __, ...brief } = error;
  return JSON.stringify({ ...history, error: brief });
}

const isSameFailure = (a: JobErrorEntry, b: JobErrorEntry): boolean =>
  a.attempt === b.attempt && a.occurred_at === b.occurred_at;

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readObject(json: string, parse?: (text: string) => unknown): object | undefined {
  const value = parseStored(json, parse);
  return isObject(value) ? value : undefined;
}

/** Parses the body column; undefined when it cannot be read. */
export const readableBody = (row: Pick<JobRow, 'body'>): JobBody | undefined =>
  readObject(row.body, parseExactly) as JobBody | undefined;

/** Parses the body column. An unreadable one counts as a job without arguments. */
export const bodyOf = (row: Pick<JobRow, 'body' | 'type'>): JobBody => readableBody(row) ?? emptyBody(row.type);

/** Whose job it is. Of a row of a block without its body, the block has it. */
export function groupOfRow({ group, body }: Pick<JobRow, 'group' | 'body'>): string | undefined {
  if (group !== undefined) return group;
  // Most bodies need not be parsed to know that they name no group.
  if (!body.includes('"group":') && !body.includes('"rate_limit":')) return undefined;
  const read = readableBody({ body });
  return read && groupOf(read);
}

/** Does the next claim continue an attempt whose start was counted already? */
export const isBegun = (row: Pick<JobRow, 'attempt' | 'history'>): boolean =>
  row.history?.includes('"begun":') === true && historyOf(row).begun === row.attempt + 1;

export const emptyBody = (type: string): JobBody => ({ type, args: [], meta: {} });
