/**
 * The rows of `step_values`: results too large to stand in the record of a step, each in a JSON array of its own.
 * {@link CheckpointTable} keeps them as long as the record of their name.
 */
import { cell, put, rows } from '../../durable/sql';
import { listIn, type StepPart } from '../../job/steps';
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

  /** Deletes all that is stored of a job. */
  remove(key: number): void {
    if (this.used) rows(this.sql, 'DELETE FROM step_values WHERE key = ?', key);
  }
}
