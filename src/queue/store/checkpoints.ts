/** The rows of `checkpoints`: the last one of each job, kept until the job itself is removed. */
import type { StoredCheckpoint } from '../../rpc/workers';

type Row = { sequence: number; created_at: number; data: string };

export class CheckpointTable {
  /** May there be rows? Where nobody saves checkpoints, nobody pays for looking. */
  private used = false;

  constructor(private readonly sql: SqlStorage) {}

  /** Looks whether anything is stored. */
  load(): void {
    this.used = this.sql.exec('SELECT 1 FROM checkpoints LIMIT 1').toArray().length > 0;
  }

  read(key: number): StoredCheckpoint | undefined {
    if (!this.used) return undefined;
    const row = this.sql
      .exec<Row>('SELECT sequence, created_at, data FROM checkpoints WHERE key = ?', key)
      .toArray()[0];
    return row && { sequence: row.sequence, created_at: row.created_at, content: row.data };
  }

  /** Bytes of a job's checkpoint; 0 when it has none. */
  sizeOf(key: number): number {
    if (!this.used) return 0;
    const size = 'SELECT length(CAST(data AS BLOB)) AS n FROM checkpoints WHERE key = ?';
    return this.sql.exec<{ n: number }>(size, key).toArray()[0]?.n ?? 0;
  }

  /** Replaces a job's checkpoint. One row written. */
  save(key: number, content: string, now: number): StoredCheckpoint {
    const [{ sequence }] = this.sql
      .exec<{ sequence: number }>(
        `INSERT INTO checkpoints (key, sequence, created_at, data) VALUES (?, 1, ?, ?)
         ON CONFLICT (key) DO UPDATE SET sequence = sequence + 1, created_at = excluded.created_at, data = excluded.data
         RETURNING sequence`,
        key,
        now,
        content,
      )
      .toArray() as [{ sequence: number }];
    this.used = true;
    return { sequence, created_at: now, content };
  }

  /** Writes the checkpoint of a job that comes from another queue. One row written. */
  put(key: number, { sequence, created_at, content }: StoredCheckpoint): void {
    this.sql
      .exec(
        'INSERT OR REPLACE INTO checkpoints (key, sequence, created_at, data) VALUES (?, ?, ?, ?)',
        key,
        sequence,
        created_at,
        content,
      )
      .toArray();
    this.used = true;
  }

  /** Deletes a job's checkpoint. Writes nothing when there is none. */
  remove(key: number): void {
    if (this.used) this.sql.exec('DELETE FROM checkpoints WHERE key = ?', key).toArray();
  }
}
