/**
 * Jobs by the block. A written row costs the same for one job as for a hundred, so ordinary jobs with the same place
 * share rows.
 *
 * In the line, a block has the jobs of one transaction, and a job that arrives alone joins the newest block while that
 * is small. In the due index, a block has the jobs of one transaction that become available at one moment.
 *
 * Each kind of block has its own table, and the keys tell them apart. A job that arrives alone and is claimed at once
 * is in no block: it lives in the row of its lease ({@link Singles}). Questions about one job, or about all, are
 * answered here; readers in order use the table.
 */
import { RANK_BIT, sequenceOf } from '../../job/ids';
import type { ArchiveBuffer } from './archive-buffer';
import type { BlockJob } from './block';
import { BlockCache } from './block-cache';
import { BlockTable } from './block-table';
import { DueBlocks } from './due-blocks';
import type { JobRow } from './job-row';
import { Singles } from './singles';

export class Blocks {
  readonly line: BlockTable;
  readonly due: DueBlocks;
  readonly singles: Singles;
  private readonly cache = new BlockCache();

  /** @param forget called with a key whose row is about to be deleted */
  constructor(sql: SqlStorage, archive: Pick<ArchiveBuffer, 'keys'>, forget: (key: number) => void) {
    this.line = new BlockTable(sql, archive, this.cache, forget);
    this.due = new DueBlocks(sql, archive, this.cache, forget);
    this.singles = new Singles(sql, archive);
  }

  /** The table that a job with this key is in, if it is in any. */
  private tableOf(key: number): BlockTable {
    return this.line.owns(key) ? this.line : this.due;
  }

  /** The same, or the singles. */
  private of(key: number): BlockTable | Singles {
    return this.singles.knows(key) ? this.singles : this.tableOf(key);
  }

  /** Rebuilds memory from storage. What the running transaction has gathered stays. */
  load(): void {
    this.line.load();
    this.due.load();
  }

  /**
   * Writes what was gathered: one row for each block that comes, changes or goes; two for one that becomes due.
   * @param holdsBack leaves a job that came alone, so that its lease row can take it
   */
  flush(holdsBack = false): void {
    const { alone } = this.line;
    if (!(holdsBack && alone && this.singles.takes(alone))) this.line.flush();
    this.due.flush();
  }

  /** The job with this key, to be written into its lease row, if it came alone and is not written yet. */
  takeAlone(key: number): BlockJob | undefined {
    const { alone } = this.line;
    if (alone?.key !== key || !this.singles.takes(alone)) return undefined;
    this.line.withdrawAlone();
    return alone;
  }

  /** Adds a job with the next sequence number. Written by {@link flush}, many to a row. */
  add(job: BlockJob): void {
    this.tableOf(job.key).add(job);
  }

  /** The highest sequence number in a block. */
  highest(): number {
    return Math.max(this.line.highest(), sequenceOf(this.due.highest()));
  }

  /** How many jobs are in blocks and not over. */
  count(): number {
    return this.countLine() + this.due.count();
  }

  /** The number of jobs whose place is the line. */
  countLine(): number {
    return this.line.count() + this.singles.count;
  }

  /**
   * All jobs that are not over. Do not write meanwhile. @param since sequence numbers are higher; @param bodies are
   * they needed?
   */
  *all(since = 0, bodies = true): Generator<JobRow> {
    yield* this.line.after(since, bodies);
    yield* this.singles.after(since);
    yield* this.due.after(RANK_BIT + since, bodies);
  }

  /** Is this job in a block, and not over? */
  holds(key: number): boolean {
    return this.of(key).holds(key);
  }

  /** The job as a row, if it is in a block and not over. */
  row(key: number): JobRow | undefined {
    return this.of(key).row(key);
  }

  /** The same without its body. */
  head(key: number): JobRow | undefined {
    return this.of(key).head(key);
  }

  /** The job has moved out into a row of its own, or has completed and is kept. */
  leave(key: number): void {
    this.of(key).leave(key);
  }

  /** Nothing is kept of these jobs: no row of their own, no lease, no place in the archive. */
  vanish(keys: readonly number[]): void {
    for (const table of [this.line, this.due]) table.vanish(keys.filter((key) => this.of(key) === table));
    for (const key of keys) this.singles.vanish(key);
  }
}
