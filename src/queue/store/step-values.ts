/**
 * The rows of `step_values`: values too large to stand in the record of a step, in parts. {@link CheckpointTable} keeps
 * them as long as the record of their name. A part is a JSON array, so that many small values can share one.
 */
import { cell, column, put, rows } from '../../durable/sql';
import { bytesOf, grouped } from '../../job/size';
import type { StepPart } from '../../job/steps';
import type { CountingSql } from './counting-sql';

/** Bytes of a part, unless a single value is larger: a row holds 2 MB. */
const MAX_PART = 1024 * 1024;

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

  /** Adds values behind those of this name: one row for each MiB of them. @param values JSON texts of at most 1 MiB */
  append(key: number, name: string, values: Iterable<string>): void {
    const last = 'SELECT max(part) FROM step_values WHERE key = ? AND name = ?';
    let part = this.used ? (cell<number>(this.sql, last, key, name) ?? 0) : 0;
    for (const group of grouped(values, bytesOf, MAX_PART)) this.put(key, [{ name, part: ++part, data: `[${group}]` }]);
  }

  /** The values of a name as the text of one JSON array; undefined: there are none. */
  read(key: number, name: string): string | undefined {
    const parts = this.parts(key, 'AND name = ?', name);
    return parts.length === 0 ? undefined : `[${parts.map(({ data }) => data.slice(1, -1)).join(',')}]`;
  }

  /** All that is stored of a job, or of these names, for {@link put} in another place. */
  copy(key: number, names?: readonly string[]): StepPart[] {
    if (!names) return this.parts(key);
    return this.parts(key, 'AND name IN (SELECT value FROM json_each(?))', JSON.stringify(names));
  }

  private parts(key: number, which = '', ...bindings: string[]): StepPart[] {
    if (!this.used) return [];
    const query = `SELECT name, part, data FROM step_values WHERE key = ? ${which} ORDER BY name, part`;
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
    const sizes = 'SELECT length(CAST(data AS BLOB)) FROM step_values WHERE key = ?';
    return column<number>(this.sql, sizes, key).reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Deletes the values of names without a record, or whose step runs again. @param steps the job's records, as JSON */
  keepOf(key: number, steps: string): void {
    if (!this.used) return;
    const kept = "SELECT key FROM json_each(?) WHERE json_extract(value, '$.begun') IS NULL";
    rows(this.sql, `DELETE FROM step_values WHERE key = ? AND name NOT IN (${kept})`, key, steps);
  }

  /** Deletes all that is stored of a job. */
  remove(key: number): void {
    if (this.used) rows(this.sql, 'DELETE FROM step_values WHERE key = ?', key);
  }
}
