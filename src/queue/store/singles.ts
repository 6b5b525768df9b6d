/**
 * Singles: jobs that live in their lease rows. A job claimed before it was written has no other row until its attempt
 * ends; its text is then void, and overwritten by a later claim. All that run are in memory, so they are few and small.
 */
import { parseStored, rows } from '../../durable/sql';
import { type BlockJob, type Elsewhere, rowOf } from './block';
import { keysOver, spansOf } from './blocks-over';
import type { JobPlace, JobRow } from './job-row';

/** Maximum characters of a single, and number of singles: their bodies are in memory. */
const MAX_CHARS = 4 * 1024;
const MAX_LIVE = 1_000;

export interface SingleRow {
  leaseId: number;
  text: string;
  /** The job that the lease names, where it can be read. */
  leased: { key: number; type: string } | undefined;
}

export class Singles implements JobPlace {
  /** Jobs that run, by their keys. */
  private readonly live = new Map<number, BlockJob>();
  /** The lease rows that jobs are in, by the jobs' keys: of those that run, and of those that are over. */
  private readonly leases = new Map<number, number>();
  /** {@link leases} the other way round. */
  private readonly keys = new Map<number, number>();

  constructor(
    private readonly sql: SqlStorage,
    private readonly elsewhere: Elsewhere,
  ) {}

  /** May this job of the line live in a lease row? */
  takes({ body }: BlockJob): boolean {
    return body.length <= MAX_CHARS && this.live.size < MAX_LIVE;
  }

  /** A lease row is about to be written that has this job, or none. */
  put(leaseId: number, job?: BlockJob): void {
    this.left([leaseId]);
    if (!job) return;
    this.live.set(job.key, job);
    this.leases.set(job.key, leaseId);
    this.keys.set(leaseId, job.key);
  }

  /** These lease rows are gone, or about to be. */
  left(leaseIds: readonly number[]): void {
    for (const leaseId of leaseIds) {
      const key = this.keys.get(leaseId);
      if (key === undefined) continue;
      this.keys.delete(leaseId);
      this.leases.delete(key);
    }
  }

  /** The text of the job that lives in a lease row; null: none does. */
  textOf(leaseId: number): string | null {
    const job = this.live.get(this.keys.get(leaseId) ?? -1);
    if (!job) return null;
    const { key, type, at, alias, limit_key, body } = job;
    return `${JSON.stringify([key, type, at, alias, ...(limit_key ? [limit_key] : [])])}\n${body}`;
  }

  // ---- where a job is --------------------------------------------------------------------------

  get count(): number {
    return this.live.size;
  }

  /** Has this job ever lived in a lease row that is still there? */
  knows(key: number): boolean {
    return this.leases.has(key);
  }

  holds(key: number): boolean {
    return this.live.has(key);
  }

  head(key: number): JobRow | undefined {
    return this.row(key);
  }

  row(key: number): JobRow | undefined {
    const job = this.live.get(key);
    return job && rowOf(job);
  }

  *after(key: number): Generator<JobRow> {
    for (const [next] of this.pages(key, true, 1)) {
      const row = this.row(next as number);
      if (row) yield row;
    }
  }

  *pages(from: number, ascending: boolean, size: number): Generator<number[]> {
    const keys = [...this.live.keys()].filter((key) => (ascending ? key > from : key < from));
    keys.sort((a, b) => (ascending ? a - b : b - a));
    for (let at = 0; at < keys.length; at += size) yield keys.slice(at, at + size);
  }

  leave(key: number): void {
    this.live.delete(key);
  }

  /** Their lease rows must not bring them back: one row written for each. */
  vanish(keys: readonly number[]): void {
    for (const key of keys) {
      const leaseId = this.leases.get(key);
      if (leaseId === undefined) continue;
      rows(this.sql, 'UPDATE leases SET job = NULL WHERE id = ?', leaseId);
      this.live.delete(key);
      this.left([leaseId]);
    }
  }

  clear(): void {
    this.live.clear();
    this.leases.clear();
    this.keys.clear();
  }

  /** These lease rows were read. Skips jobs that moved out or completed. */
  restore(leased: readonly SingleRow[]): void {
    if (leased.length === 0) return;
    const found: number[] = [];
    for (const row of leased) {
      const job = read(row);
      if (!job) continue;
      found.push(job.key);
      this.put(row.leaseId, job);
    }
    // As if each were a block.
    const over = keysOver(this.sql, spansOf(found.map((key) => ({ first: key, span: 1 }))));
    for (const { key } of over) this.leave(key);
    for (const key of this.elsewhere.keys(Math.min(...found), Math.max(...found) + 1)) this.leave(key);
  }
}

/** A job that cannot be read becomes a dead letter when its attempt has ended. */
function read({ text, leased }: SingleRow): BlockJob | undefined {
  const place = { priority: 0, due_at: null };
  const end = text.indexOf('\n');
  const head = parseStored(text.slice(0, end));
  if (!Array.isArray(head)) return leased && { ...leased, at: 0, alias: null, body: '', ...place };
  const [key, type, at, alias, limit_key = null] = head as [number, string, number, string | null, string?];
  return { key, type, at, alias, limit_key, body: text.slice(end + 1), ...place };
}
