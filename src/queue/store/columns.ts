import type { LimitPolicy } from '../../job/limits/policy';
import { type JobRow, STATE } from './job-row';

/** The columns of `jobs`, in the order {@link readRows} takes them. */
export const ROW_COLUMNS =
  'key, alias, state, type, priority, due_at, attempt, claims, created_at, enqueued_at, expires_at, ended_at, body, history, limit_key, holds_group';

type RawRow = [
  key: number,
  alias: string | null,
  state: number,
  type: string,
  priority: number,
  due_at: number | null,
  attempt: number,
  claims: number,
  created_at: number,
  enqueued_at: number,
  expires_at: number | null,
  ended_at: number | null,
  body: string,
  history: string | null,
  limit_key: string | null,
  holds_group: string | null,
];

/** Selects {@link ROW_COLUMNS}. Rows are read as arrays: the runtime takes three times as long to build objects. */
export function* readRows(sql: SqlStorage, query: string, ...bindings: SqlStorageValue[]): Generator<JobRow> {
  for (const raw of sql.exec(query, ...bindings).raw<RawRow>()) {
    yield {
      key: raw[0],
      alias: raw[1],
      state: raw[2],
      type: raw[3],
      priority: raw[4],
      due_at: raw[5],
      attempt: raw[6],
      claims: raw[7],
      created_at: raw[8],
      enqueued_at: raw[9],
      expires_at: raw[10],
      ended_at: raw[11],
      body: raw[12],
      history: raw[13],
      limit_key: raw[14],
      holds_group: raw[15],
    };
  }
}

/** Reads the row with this key; most jobs have none of their own, see `row-lookup.ts`. */
export function ownRow(sql: SqlStorage, key: number): JobRow | undefined {
  const [row] = readRows(sql, `SELECT ${ROW_COLUMNS} FROM jobs WHERE key = ?`, key);
  return row;
}

export function isInLine(row: Pick<JobRow, 'state' | 'due_at'>): boolean {
  return row.state === STATE.waiting && row.due_at === null;
}

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
