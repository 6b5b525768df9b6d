/** Jobs with rows of their own, in `jobs`: those that no block has. */
import { rows } from '../../durable/sql';
import type { JobRow } from './job-row';

const COLUMNS = [
  'key',
  'alias',
  'state',
  'type',
  'priority',
  'due_at',
  'attempt',
  'claims',
  'created_at',
  'enqueued_at',
  'expires_at',
  'ended_at',
  'body',
  'history',
  'limit_key',
  'holds_group',
] as const satisfies readonly (keyof JobRow)[];

/** In the order in which {@link readRows} takes them. */
export const ROW_COLUMNS = COLUMNS.join(', ');

type Values<Names extends readonly (keyof JobRow)[]> = { -readonly [At in keyof Names]: JobRow[Names[At]] };

type RawRow = Values<typeof COLUMNS>;

const INSERT = `INSERT INTO jobs (${ROW_COLUMNS}, keep_until, meters) VALUES (${'?, '.repeat(COLUMNS.length)}?, ?)`;

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
  const [row] = [...readRows(sql, `SELECT ${ROW_COLUMNS} FROM jobs WHERE key = ?`, key)];
  return row;
}

export interface Beside {
  /** The end of the job's own retention, epoch ms; null: it has none. Absent: as before. */
  keep_until?: number | null;
  /** Text carried by the row, see `meters.ts`. */
  meters?: string;
}

/** Writes a job without a row. */
export function writeRow(sql: SqlStorage, row: JobRow, { keep_until = null, meters }: Beside = {}): void {
  rows(sql, INSERT, ...COLUMNS.map((name) => row[name]), keep_until, meters ?? null);
}

/** Writes what has changed of a job. @param isNew it has no row yet @returns whether anything has changed */
export function writeChange(sql: SqlStorage, before: JobRow, after: JobRow, beside: Beside, isNew: boolean): boolean {
  const names = COLUMNS.filter((name) => before[name] !== after[name]);
  const sets = [...names, ...Object.keys(beside)].map((name) => `${name} = ?`);
  if (sets.length === 0) return false;
  const values: SqlStorageValue[] = [...names.map((name) => after[name]), ...Object.values(beside), before.key];
  if (isNew) writeRow(sql, after, beside);
  else rows(sql, `UPDATE jobs SET ${sets.join(', ')} WHERE key = ?`, ...values);
  return true;
}

export function deleteRows(sql: SqlStorage, keys: readonly number[]): void {
  if (keys.length === 0) return;
  rows(sql, 'DELETE FROM jobs WHERE key IN (SELECT value FROM json_each(?))', JSON.stringify(keys));
}
