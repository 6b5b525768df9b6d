/**
 * Jobs by the block: a row costs the same for one job as for a hundred, so jobs with the same place share rows. In
 * the line, jobs of one transaction (a lone one joins the newest small block); in the due index, those of one moment;
 * {@link RetryBlocks} for retries; {@link Singles} for a job claimed on arrival. Each kind has its table; questions
 * about a job, or all, are answered here.
 */
import { LIMIT } from '../../durable/sql';
import { RANK_BIT, sequenceOf } from '../../job/ids';
import type { ArchiveBuffer } from './archive-buffer';
import type { Block, BlockJob, Elsewhere, NewBlock } from './block';
import { BlockCache } from './block-cache';
import { BlockTable, MAX_WINDOW } from './block-table';
import { nextIn, type Position, prioritiesIn, START } from './due-index';
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
    const place = this.of(key);
    place.leave(key);
    // A block that cannot be read takes the numbers of singles for those of its own jobs.
    if (place === this.singles && this.line.isDamaged) this.line.leave(key);
  }

  /** The job has completed and is kept. @param now epoch ms */
  completed(key: number, now: number): void {
    const place = this.of(key);
    this.retries.completed(key, now);
    if (place !== this.retries) this.leave(key);
  }

  vanish(keys: readonly number[]): void {
    this.retries.vanish(keys);
    for (const table of [this.line, this.due]) table.vanish(keys.filter((key) => this.of(key) === table));
    this.singles.vanish(keys);
  }
}

const END = Number.MAX_SAFE_INTEGER;

/** Jobs of one transaction, priority and moment under one index entry. Changed jobs move out of their block. */
export class DueBlocks extends BlockTable {
  protected override readonly table = 'due_blocks';
  protected override readonly columns = 'first, span, gone, heads, priority, due_at';
  protected override readonly isJoined = false;
  override readonly owns = (key: number): boolean => key >= RANK_BIT;

  protected override insert({ first, span, jobs, priority, due_at, heads, data }: NewBlock): void {
    const insert = `INSERT INTO due_blocks (first, span, jobs, priority, due_at, heads, data)
      VALUES (?, ?, ?, ?, ?, ?, ?)`;
    this.sql.exec(insert, first, span, jobs, priority, due_at, heads, data).toArray();
  }

  priorities(): number[] {
    this.flush();
    return this.used ? prioritiesIn(this.sql, 'due_blocks') : [];
  }

  /** The first moment after `now` at which a block of this priority becomes available, epoch ms. */
  nextDue(priority: number, now: number): number | undefined {
    this.flush();
    return this.used ? nextIn(this.sql, 'due_blocks', priority, now) : undefined;
  }

  /** How many jobs of a priority that are not over become available after a moment and up to another, epoch ms. */
  countBetween(priority: number, after = START.at, until = END): number {
    const among = 'blocks.priority = ? AND blocks.due_at > ? AND blocks.due_at <= ?';
    return this.countAmong({ sql: among, bindings: [priority, after, until] }, ({ place }) => {
      const at = place.due_at as number;
      return place.priority === priority && at > after && at <= until;
    });
  }

  /** Keys by number, as {@link pages}, of jobs due up to a moment, or after it. @param when absent: any moment */
  pagesOf(from: number, ascending: boolean, size: number, when?: { until: number } | { after: number }) {
    if (!when) return this.pages(from, ascending, size);
    const among = 'until' in when ? 'due_at <= ?' : 'due_at > ?';
    return this.pages(from, ascending, size, {
      sql: among,
      bindings: ['until' in when ? when.until : when.after],
    });
  }

  /**
   * The jobs of a priority in the order of availability. Do not write meanwhile. @param after exclusive
   * @param until epoch ms; later ones are left out @param bodies are they needed?
   */
  *inTurn(priority: number, after: Position = START, until = END, bodies = true): Generator<JobRow> {
    this.flush();
    if (!this.used) return;
    // No job of a block was ever tried: it precedes all jobs of the same moment that were.
    let from = { at: after.at, key: after.attempt > 0 ? END : after.key };
    for (let window = 1; ; window = Math.min(4 * window, MAX_WINDOW)) {
      const blocks = this.nextInTurn(priority, from, until, window);
      for (const block of blocks) {
        if (block.left === 0) continue;
        if (!bodies) this.cache.keep(block, true);
        yield* this.rowsOf(block, from.at === block.place.due_at ? from.key + 1 : undefined, bodies);
      }
      const last = blocks.at(-1);
      if (!last) return;
      from = { at: last.place.due_at as number, key: last.end - 1 };
    }
  }

  /** The next blocks in turn; the first one may be that of `from` itself. */
  private nextInTurn(priority: number, from: { at: number; key: number }, until: number, limit: number): Block[] {
    const rows = [];
    if (from.at > START.at && from.at <= until) {
      // Seeks, because one comparison of the whole position would read all blocks of that moment again.
      const own = this.at(from.key + 1);
      if (own?.place.priority === priority && own.place.due_at === from.at && own.first <= from.key) return [own];
      const sameMoment = `priority = ? AND due_at = ? AND first > ? ORDER BY first ${LIMIT}`;
      rows.push(...this.select(sameMoment, priority, from.at, from.key, limit));
    }
    if (rows.length < limit) {
      const later = `priority = ? AND due_at > ? AND due_at <= ? ORDER BY due_at, first ${LIMIT}`;
      rows.push(...this.select(later, priority, from.at, until, limit - rows.length));
    }
    return this.build(rows);
  }
}
