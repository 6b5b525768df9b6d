/** A row of `jobs`, for every room of the queue: its columns, and the texts in two of them, body and history. */
import { parseStored } from '../../durable/sql';
import { parseExactly } from '../../job/envelope/exact';
import { shown } from '../../job/envelope/nesting';
import { groupOf } from '../../job/group';
import type { LimitPolicy } from '../../job/limits/policy';
import type { JobBody, JobErrorEntry, JobHistory } from '../../job/record';

/** Values of `jobs.state`. `waiting`: scheduled, available, retryable and active; `held`: not decided yet. */
export const STATE = { waiting: 0, pending: 1, cancelled: 2, discarded: 3, dead: 4, held: 5 } as const;

export type JobRow = {
  key: number;
  alias: string | null;
  state: number;
  type: string;
  priority: number;
  due_at: number | null;
  attempt: number;
  claims: number;
  created_at: number;
  enqueued_at: number;
  expires_at: number | null;
  ended_at: number | null;
  body: string;
  history: string | null;
  /** The key that the job counts under, if it is limited. */
  limit_key: string | null;
  /** Where its queue serves groups in strict order: its group, while the job has begun and has not ended. */
  holds_group: string | null;
  /** Its group, if it is in a block; other rows have it in their bodies. */
  group?: string;
};

/** Where many jobs share rows: blocks of the line, of the due index, or of retries, and the lease rows of singles. */
export interface JobPlace {
  /** Is this job here, and not over? */
  holds(key: number): boolean;
  /** The job as a row, if it is here and not over. */
  row(key: number): JobRow | undefined;
  /** {@link row} without the texts that would have to be read. */
  head(key: number): JobRow | undefined;
  /** The jobs behind a number that are not over, in order. Do not write meanwhile. @param bodies are they needed? */
  after(key: number, bodies?: boolean): Iterable<JobRow>;
  /** Pages of keys of open jobs, in order: below `from`, or above it if ascending. @param size of a page */
  pages(from: number, ascending: boolean, size: number): Iterable<number[]>;
  /** The job moved out into a row of its own, waits elsewhere for its next attempt, or has completed and is kept. */
  leave(key: number): void;
  /** Nothing is kept of these jobs: no row of their own, no lease, no place in the archive. */
  vanish(keys: readonly number[]): void;
}

export const isInLine = (row: Pick<JobRow, 'state' | 'due_at'>): boolean =>
  row.state === STATE.waiting && row.due_at === null;

/** {@link isInLine} in SQL, for keys of the line. */
export const STANDS_IN_LINE = `state = ${STATE.waiting} AND due_at IS NULL`;

/** May this body name a URL? A cheap test of its text: never false if it does, rarely true if it does not. */
export const mayNameUrl = (body: string) => body.includes('"target_url":"');

/** May such a job stand in a block when its turn comes and its key has no room? Others are looked at at once. */
export const mayWaitInLine = (limit: LimitPolicy | undefined): boolean => !limit || limit.on_limit === 'wait';

/** Do its body, type and id say everything about it, so that it can join a block? */
export function isPlain(row: JobRow): boolean {
  if (row.expires_at !== null || row.history !== null || row.holds_group !== null) return false;
  return row.attempt === 0 && row.claims === 0 && row.created_at === row.enqueued_at;
}

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
