/**
 * The rows of `progress`: the last report of each job, one row per report. It carries the lease's new end, combined
 * by {@link ProgressTable.extendLeases} when memory is rebuilt.
 */
import { cell, firstRow, parseStored, put, rows } from '../../durable/sql';
import { shown } from '../../job/envelope/nesting';
import type { Active } from './active';

export interface ReportedProgress {
  /** 0 … 1. */
  progress: number;
  message?: string;
  data?: Record<string, unknown>;
  /** Epoch ms. */
  at: number;
}

type Row = { key: number; claim: number; expires_at: number; data: string };

export class ProgressTable {
  /** May there be rows? Queues without progress then skip the lookup. */
  private used = false;

  constructor(private readonly sql: SqlStorage) {}

  load(): void {
    this.used = this.sql.exec('SELECT 1 FROM progress LIMIT 1').toArray().length > 0;
  }

  read(key: number): { claim: number; reported: ReportedProgress } | undefined {
    if (!this.used) return undefined;
    const row = firstRow<Row>(this.sql, 'SELECT * FROM progress WHERE key = ?', key);
    const reported = row && readable(row.data);
    return row && reported && { claim: row.claim, reported };
  }

  /** Bytes of what was reported about a job, at most. */
  sizeOf(key: number): number {
    if (!this.used) return 0;
    return cell<number>(this.sql, 'SELECT length(CAST(data AS BLOB)) FROM progress WHERE key = ?', key) ?? 0;
  }

  /** Stores a report and how far it moved the lease (epoch ms). One row written. */
  write(key: number, claim: number, expiresAt: number, reported: ReportedProgress): void {
    put(this.sql, 'progress', { key, claim, expires_at: expiresAt, data: JSON.stringify(reported) });
    this.used = true;
  }

  /** Forgets what was reported about a job. Writes nothing when there is nothing. */
  remove(key: number): void {
    if (this.used) this.sql.exec('DELETE FROM progress WHERE key = ?', key).toArray();
  }

  /** Moves leases just read from storage to where the reports of the same claims had moved them. */
  extendLeases(leases: { active: ReadonlyMap<number, Active> }): void {
    if (!this.used || leases.active.size === 0) return;
    const moved = 'SELECT key, claim, expires_at FROM progress';
    for (const { key, claim, expires_at } of rows<Omit<Row, 'data'>>(this.sql, moved)) {
      const active = leases.active.get(key);
      if (active?.claim === claim) active.expiresAt = Math.max(active.expiresAt, expires_at);
    }
  }
}

function readable(data: string): ReportedProgress | undefined {
  const value = parseStored(data) as ReportedProgress | null | undefined;
  return typeof value?.progress === 'number' ? shown(value) : undefined;
}
