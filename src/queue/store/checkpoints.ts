/**
 * The rows of `checkpoints`, kept until the job is removed: its last checkpoint, and in `steps` its recorded steps.
 * Their large values are in `values`. Steps without a checkpoint have the sequence 0.
 */

import { cell, put, rows } from '../../durable/sql';
import { listIn, MAX_INLINE_BYTES, type StepPart } from '../../job/steps';
import type { StoredCheckpoint } from '../../rpc/workers';
import type { CountingSql } from './counting-sql';

export class StepValues {
  /** May there be rows? Queues without large values then skip the lookup. */
  private used = false;

  constructor(
    private readonly sql: SqlStorage,
    private readonly written: Pick<CountingSql, 'spend'>,
  ) {}

  load(): void {
    this.used = this.sql.exec('SELECT 1 FROM step_values LIMIT 1').toArray().length > 0;
  }

  /** The result of a step, in a list; undefined: there is none that can be read. */
  read(key: number, name: string): unknown[] | undefined {
    const [part] = this.copy(key, [name]);
    const list = part && listIn(part.data);
    return list?.length ? list : undefined;
  }

  /** All that is stored of a job, or of these names, for {@link put} in another place. */
  copy(key: number, names?: readonly string[]): StepPart[] {
    if (!this.used) return [];
    const which = names ? 'AND name IN (SELECT value FROM json_each(?))' : '';
    const query = `SELECT name, part, data FROM step_values WHERE key = ? ${which} ORDER BY name, part`;
    const bindings = names ? [JSON.stringify(names)] : [];
    const parts = rows<{ [member in keyof StepPart]: StepPart[member] }>(this.sql, query, key, ...bindings);
    this.written.spend(parts.reduce((chars, { data }) => chars + data.length, 0));
    return parts;
  }

  put(key: number, parts: readonly StepPart[]): void {
    for (const part of parts) {
      put(this.sql, 'step_values', { key, ...part });
      this.written.spend(part.data.length);
      this.used = true;
    }
  }

  /** Bytes of what is stored of a job. */
  sizeOf(key: number): number {
    if (!this.used) return 0;
    return cell<number>(this.sql, 'SELECT sum(length(CAST(data AS BLOB))) FROM step_values WHERE key = ?', key) ?? 0;
  }

  /** Deletes the values that no record of the job names: their steps run again. */
  keepNamed(key: number): void {
    if (!this.used) return;
    const named = `SELECT step.key FROM checkpoints, json_each(data, '$.steps') AS step
      WHERE checkpoints.key = ?1 AND step.value -> '$.result_bytes' IS NOT NULL`;
    rows(this.sql, `DELETE FROM step_values WHERE key = ?1 AND name NOT IN (${named})`, key);
  }

  remove(key: number): void {
    if (this.used) rows(this.sql, 'DELETE FROM step_values WHERE key = ?', key);
  }
}

type Row = { sequence: number; created_at: number; content: string | null };

/** The data of a row. An unreadable checkpoint counts as empty: it must not stop its queue. */
const DATA = "CASE WHEN json_valid(data) THEN CASE json_type(data) WHEN 'object' THEN data END END";

const STEPS = `(${DATA}) -> '$.steps'`;

export class CheckpointTable {
  /** May there be rows? Queues without checkpoints then skip the lookup. */
  private used = false;
  readonly values: StepValues;

  constructor(
    private readonly sql: SqlStorage,
    private readonly written: Pick<CountingSql, 'spend'>,
  ) {
    this.values = new StepValues(sql, written);
  }

  load(): void {
    this.used = this.sql.exec('SELECT 1 FROM checkpoints LIMIT 1').toArray().length > 0;
    this.values.load();
  }

  /** The job's own checkpoint. */
  read(key: number): StoredCheckpoint | undefined {
    return this.find(key, `json_remove(${DATA}, '$.steps')`, 'AND sequence > 0');
  }

  /** Everything stored of a job, for {@link put} in another queue. */
  copy(key: number): StoredCheckpoint | undefined {
    const found = this.find(key, DATA);
    const parts = found ? this.values.copy(key) : [];
    return found && { ...found, ...(parts.length > 0 && { parts }) };
  }

  private find(key: number, content: string, condition = ''): StoredCheckpoint | undefined {
    if (!this.used) return undefined;
    const query = `SELECT sequence, created_at, ${content} AS content FROM checkpoints WHERE key = ? ${condition}`;
    const [row] = this.sql.exec<Row>(query, key).toArray();
    return row && row.content !== null ? { ...row, content: row.content } : undefined;
  }

  /** JSON text of the job's recorded steps; undefined too, and free of parsing, where `word` does not occur. */
  steps(key: number, word = ''): string | undefined {
    if (!this.used) return undefined;
    const steps = cell<string>(
      this.sql,
      `SELECT ${STEPS} FROM checkpoints WHERE key = ? AND instr(data, ?)`,
      key,
      word,
    );
    this.written.spend(steps?.length ?? 0);
    return steps;
  }

  /** Bytes of what is stored of a job; 0 when there is nothing. @param most of its large values at most */
  sizeOf(key: number, most = MAX_INLINE_BYTES): number {
    if (!this.used) return 0;
    const own = cell<number>(this.sql, 'SELECT length(CAST(data AS BLOB)) FROM checkpoints WHERE key = ?', key) ?? 0;
    return own + Math.min(most, this.values.sizeOf(key));
  }

  /** Replaces a job's checkpoint. One row written. @param saves number of saves so far */
  save(key: number, content: string, now: number, saves = 1): StoredCheckpoint {
    const sequence = this.write(
      `INSERT INTO checkpoints (key, sequence, created_at, data) VALUES (?, ?, ?, ?)
       ON CONFLICT (key) DO UPDATE SET sequence = sequence + excluded.sequence, created_at = excluded.created_at,
         data = CASE WHEN ${STEPS} IS NULL THEN excluded.data ELSE json_set(excluded.data, '$.steps', ${STEPS}) END`,
      ...[key, saves, now, content],
    );
    return { sequence, created_at: now, content };
  }

  /**
   * Replaces a job's recorded steps; the values of those that are gone go, too. One row written, and one for each part.
   * @param steps JSON text @param parts new large values
   */
  saveSteps(key: number, steps: string, now: number, parts: readonly StepPart[] = []): void {
    this.write(
      `INSERT INTO checkpoints (key, sequence, created_at, data) VALUES (?1, 0, ?2, json_object('steps', json(?3)))
       ON CONFLICT (key) DO UPDATE SET data = json_set(coalesce(${DATA}, '{}'), '$.steps', json(?3))`,
      ...[key, now, steps],
    );
    this.values.put(key, parts);
    this.values.keepNamed(key);
  }

  private write(upsert: string, ...bindings: SqlStorageValue[]): number {
    type Written = { sequence: number; chars: number };
    const [row] = rows<Written>(this.sql, `${upsert} RETURNING sequence, length(data) AS chars`, ...bindings);
    const { sequence, chars } = row as Written;
    this.written.spend(chars);
    this.used = true;
    return sequence;
  }

  /** Writes what is stored of a job that comes from another queue. One row written, and one for each part. */
  put(key: number, { sequence, created_at, content, parts = [] }: StoredCheckpoint): void {
    put(this.sql, 'checkpoints', { key, sequence, created_at, data: content });
    this.used = true;
    this.values.put(key, parts);
    this.values.keepNamed(key);
  }

  /** Deletes a job's own checkpoint; its recorded steps stay. Writes nothing when there is none. */
  removeOwn(key: number): void {
    if (this.steps(key) === undefined) {
      this.remove(key);
      return;
    }
    const forget = `UPDATE checkpoints SET sequence = 0, data = json_object('steps', ${STEPS}) WHERE key = ? AND sequence > 0`;
    this.sql.exec(forget, key).toArray();
  }

  /** Deletes all that is stored of a job. Writes nothing when there is nothing. */
  remove(key: number): void {
    if (this.used) this.sql.exec('DELETE FROM checkpoints WHERE key = ?', key).toArray();
    this.values.remove(key);
  }
}
