/**
 * Jobs by the block: a row costs the same for one job as for a hundred, so jobs with the same place share rows. In
 * the line, jobs of one transaction (a lone one joins the newest small block); in the due index, those of one moment;
 * {@link RetryBlocks} for retries; {@link Singles} for a job claimed on arrival. Each kind has its table; questions
 * about a job, or all, are answered here.
 */
import { RANK_BIT, sequenceOf } from '../../job/ids';
import type { ArchiveBuffer } from './archive-buffer';
import type { BlockJob, Elsewhere } from './block';
import { BlockCache } from './block-cache';
import { BlockTable } from './block-table';
import { DueBlocks } from './due-blocks';
import type { JobPlace, JobRow } from './job-row';
import { RetryBlocks } from './retry-blocks';
import type { RetriesAround } from './retry-index';
import { Singles } from './singles';

export class Blocks implements Omit<JobPlace, 'after' | 'pages'> {
  readonly line: BlockTable;
  readonly due: DueBlocks;
  readonly retries: RetryBlocks;
  readonly singles: Singles;
  private readonly cache = new BlockCache();

  constructor(sql: SqlStorage, archive: Pick<ArchiveBuffer, 'keys' | 'archivedUntil'>, around: RetriesAround) {
    const retries = new RetryBlocks(sql, archive, around);
    const elsewhere: Elsewhere = {
      *keys(from = 0, end = 2 * RANK_BIT) {
        yield* archive.keys();
        yield* retries.keysBetween(from, end);
      },
      archivedUntil: () => archive.archivedUntil(),
    };
    const forget = (key: number) => around.forget(key);
    this.line = new BlockTable(sql, elsewhere, this.cache, forget);
    this.due = new DueBlocks(sql, elsewhere, this.cache, forget);
    this.retries = retries;
    this.singles = new Singles(sql, elsewhere);
  }

  /** Blocks of line and due index that were read from storage since this object started. */
  get read(): number {
    return this.cache.read;
  }

  private tableOf(key: number): BlockTable {
    return this.line.owns(key) ? this.line : this.due;
  }

  private of(key: number): JobPlace {
    if (this.retries.holds(key)) return this.retries;
    return this.singles.knows(key) ? this.singles : this.tableOf(key);
  }

  load(): void {
    this.retries.load();
    this.line.load();
    this.due.load();
  }

  /** Writes what was gathered: a row per block, two once due. @param holdsBack keeps a lone job at its lease */
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

  add(job: BlockJob): void {
    this.tableOf(job.key).add(job);
  }

  /** The highest sequence number in a block. */
  highest(): number {
    return Math.max(this.line.highest(), sequenceOf(this.due.highest()), this.retries.highest());
  }

  count(): number {
    return this.countLine() + this.due.count() + this.retries.count;
  }

  countLine(): number {
    return this.line.count() + this.singles.count;
  }

  /** All jobs not over; do not write meanwhile. @param since higher numbers only @param bodies are they needed? */
  *all(since = 0, bodies = true, ofRetries = bodies): Generator<JobRow> {
    yield* this.line.after(since, bodies);
    yield* this.singles.after(since);
    yield* this.due.after(RANK_BIT + since, bodies);
    yield* this.retries.after(since, ofRetries);
  }

  holds(key: number): boolean {
    return this.of(key).holds(key);
  }

  row(key: number): JobRow | undefined {
    return this.of(key).row(key);
  }

  head(key: number): JobRow | undefined {
    return this.of(key).head(key);
  }

  claimsOf(key: number): number {
    return this.retries.claimsOf(key) ?? 0;
  }

  leave(key: number): void {
    this.of(key).leave(key);
  }

  /** The job has completed and is kept. @param now epoch ms */
  completed(key: number, now: number): void {
    const place = this.of(key);
    this.retries.completed(key, now);
    if (place !== this.retries) place.leave(key);
  }

  vanish(keys: readonly number[]): void {
    this.retries.vanish(keys);
    for (const table of [this.line, this.due]) table.vanish(keys.filter((key) => this.of(key) === table));
    this.singles.vanish(keys);
  }
}
