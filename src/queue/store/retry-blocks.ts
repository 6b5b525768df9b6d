/**
 * Retrying jobs by the block: those of one transaction share a row, each with its due moment; the first has its own
 * row. Nothing is written here when jobs leave; other writes show it:
 *
 * | a job of the block | sign |
 * |---|---|
 * | has failed again with others | a later block with the job, and more claims |
 * | has moved out: it failed alone, has ended, or was changed | a row of its own |
 * | has completed | a chunk of the archive |
 * | is gone, and nothing of it is kept | its place in `gone` |
 * | runs | a lease |
 * | waits | none of these |
 *
 * Due moments of blocks interleave, so memory has all heads, read on waking, within bounds; beyond them jobs have
 * rows. Bodies and histories are read on demand.
 */
import { cell, column } from '../../durable/sql';
import { sequenceOf } from '../../job/ids';
import { first } from '../../job/size';
import type { ArchiveBuffer } from './archive-buffer';
import { numbersIn } from './block';
import { completedAmong } from './blocks-over';
import { afterAllAt, type Position } from './due-index';
import type { JobPlace, JobRow } from './job-row';
import {
  entryOf,
  type RetriesAround,
  type RetryBlock,
  type RetryEntry,
  RetryIndex,
  type RetryPlace,
} from './retry-index';
import { encode, type Head, parted, RetryTexts, rowOf } from './retry-text';

/** Jobs in all blocks at most, with those that are over while their block is not. Each takes about 100 bytes. */
const MAX_JOBS = 200_000;
const MAX_BLOCKS = 20_000;

/** Jobs that are asked for in one statement. */
const PAGE = 5_000;

/** Characters of the texts of a job that waits here at most. A row that is too large fails alone. */
const MAX_JOB_CHARS = 64 * 1024;

export class RetryBlocks implements JobPlace {
  private readonly index = new RetryIndex();
  private readonly blocks = new Map<number, RetryBlock>();
  /** Jobs in all blocks, and in the running transaction. */
  private total = 0;
  private waiting: JobRow[] = [];
  /** Keys of jobs of which nothing else is kept; not written yet. */
  private marks: number[] = [];
  /** Blocks of which jobs have vanished, or have all left. */
  private readonly touched = new Map<RetryBlock, { isMarked: boolean }>();
  /** Jobs of the running transaction that may wait here. */
  private offered = 0;
  private readonly texts: RetryTexts;
  private changes = 0;
  /** Memory is as it was at the mark that was gone back to. */
  private isUntouched = false;

  /** @param archive knows what completes in the running transaction @param around what it needs of the store */
  constructor(
    private readonly sql: SqlStorage,
    private readonly archive: Pick<ArchiveBuffer, 'keys'>,
    private readonly around: RetriesAround,
  ) {
    this.texts = new RetryTexts(sql);
  }

  // ---- memory -----------------------------------------------------------------------------------

  /** Rebuilds memory from storage. What the running transaction has gathered stays. */
  load(): void {
    const { index, isUntouched } = this;
    this.isUntouched = false;
    if (isUntouched) return;
    index.clear();
    this.blocks.clear();
    this.touched.clear();
    this.texts.clear();
    this.total = 0;
    type Row = { block: number; gone: string | null; heads: string };
    const rows = this.sql.exec<Row>('SELECT block, gone, heads FROM retry_blocks ORDER BY block');
    for (const { block, gone, heads } of rows) this.learn(block, heads, gone);
    if (this.blocks.size > 0) this.endOthers();
    index.begin();
    for (const row of this.waiting) this.enter(row);
    this.markGone(this.marks);
    for (const block of this.blocks.values()) if (block.left === 0) this.touch(block);
  }

  private learn(id: number, text: string, gone: string | null): void {
    const entries = this.texts.headsOf(id, text).map((head) => entryOf(rowOf(head)));
    const block = this.begin(id, entries);
    for (const place of numbersIn(gone)) {
      const entry = entries[place];
      if (!entry) continue;
      entry.isGone = true;
      this.index.end(entry);
    }
    for (const entry of entries) this.index.learn(entry);
    this.total += block.entries.length;
  }

  private begin(id: number, entries: readonly RetryEntry[]): RetryBlock {
    const block: RetryBlock = { id, entries, left: entries.length };
    for (const [place, entry] of entries.entries()) Object.assign(entry, { block, place, row: undefined });
    this.blocks.set(id, block);
    return block;
  }

  /** Ends those that have a row of their own, or have completed. */
  private endOthers(): void {
    const { index, sql } = this;
    const end = (key: number) => {
      const entry = index.live(key);
      if (entry) index.end(entry);
    };
    const keys = index.learnt().map(({ key }) => key);
    const own = 'SELECT key FROM jobs WHERE key IN (SELECT value FROM json_each(?))';
    for (let from = 0; from < keys.length; from += PAGE) {
      column<number>(sql, own, JSON.stringify(keys.slice(from, from + PAGE))).forEach(end);
    }
    for (const key of completedAmong(sql, index.learnt())) end(key);
    for (const key of this.archive.keys()) end(key);
    for (const { key } of this.waiting) end(key);
  }

  mark() {
    const { waiting, marks, changes, offered } = this;
    return { waiting, marks, jobs: waiting.length, keys: marks.length, changes, offered };
  }

  /** Goes back to a mark, before memory is rebuilt. */
  rollback({ waiting, marks, jobs, keys, changes, offered }: ReturnType<RetryBlocks['mark']>): void {
    this.isUntouched = this.changes === changes;
    waiting.length = jobs;
    marks.length = keys;
    Object.assign(this, { waiting, marks, offered });
  }

  // ---- where a job is ---------------------------------------------------------------------------

  get count(): number {
    return this.index.size;
  }

  holds(key: number): boolean {
    return this.index.live(key) !== undefined;
  }

  /** How many attempts of the job have ended; undefined when it is not here. */
  claimsOf(key: number): number | undefined {
    return this.index.live(key)?.claims;
  }

  row(key: number): JobRow | undefined {
    const entry = this.index.live(key);
    return entry && this.rowOf(entry, true);
  }

  head(key: number): JobRow | undefined {
    const entry = this.index.live(key);
    return entry && this.rowOf(entry, false);
  }

  /** No job that is stored here came later than this sequence number. */
  highest(): number {
    return (cell<number>(this.sql, 'SELECT sequence FROM retry_blocks ORDER BY block DESC LIMIT 1') ?? 1) - 1;
  }

  /** Keys of jobs that are not over, from the first up to another one, exclusive. */
  *keysBetween(from: number, end: number): Generator<number> {
    if (this.index.size === 0) return;
    const last = sequenceOf(end - 1);
    for (const { key } of this.index.after(sequenceOf(from) - 1)) {
      if (sequenceOf(key) > last) return;
      if (key >= from && key < end) yield key;
    }
  }

  priorities(): Iterable<number> {
    return this.index.priorities();
  }

  // ---- reading in order. Do not write meanwhile -------------------------------------------------

  *after(sequence: number, bodies = true): Generator<JobRow> {
    for (const entry of this.index.after(sequence)) yield this.rowOf(entry, bodies);
  }

  *pages(from: number, ascending: boolean, size: number): Generator<number[]> {
    for (let position = from; ; ) {
      const entries = ascending ? this.index.after(position) : this.index.before(position);
      const keys = first(entries, size).map(({ key }) => key);
      const last = keys.at(-1);
      if (last === undefined) return;
      yield keys;
      position = sequenceOf(last);
    }
  }

  /**
   * The jobs of a priority in the order of availability. @param after exclusive @param until epoch ms
   * @param bodies are bodies and histories needed?
   */
  *inTurn(priority: number, after?: Position, until?: number, bodies = true): Generator<JobRow> {
    for (const entry of this.index.inTurn(priority, after, until)) yield this.rowOf(entry, bodies);
  }

  /** What becomes available after a moment and up to another, epoch ms: of each job, its place. Reads nothing. */
  *becoming(after = Number.NEGATIVE_INFINITY, until?: number): Generator<RetryPlace> {
    for (const priority of this.index.priorities()) yield* this.index.inTurn(priority, afterAllAt(after), until);
  }

  /** As {@link inTurn}: of each job, its place. Reads nothing. */
  placesInTurn(priority: number, after?: Position, until?: number): Iterable<RetryPlace> {
    return this.index.inTurn(priority, after, until);
  }

  /** The first moment after `now` at which a job becomes available, epoch ms. */
  nextDue(now: number): number | undefined {
    let next: number | undefined;
    for (const priority of this.index.priorities()) {
      for (const { at } of this.index.inTurn(priority, afterAllAt(now), next)) {
        next = at;
        break;
      }
    }
    return next;
  }

  /** Does this job wait here, in the due index? Not the first one of a transaction: a lone row is cheaper. */
  takes({ due_at, limit_key, holds_group, expires_at, body, history }: JobRow): boolean {
    if (due_at === null || limit_key !== null || holds_group !== null || expires_at !== null) return false;
    if (this.total >= MAX_JOBS || this.blocks.size >= MAX_BLOCKS) return false;
    return body.length + (history?.length ?? 0) <= MAX_JOB_CHARS && this.offered++ > 0;
  }

  /** The job comes, which is nowhere else any more. Written by {@link flush}, many to a row. */
  add(row: JobRow): void {
    this.changes++;
    this.waiting.push(row);
    this.enter(row);
  }

  private enter(row: JobRow): void {
    this.index.add(entryOf(row));
    this.total++;
  }

  leave(key: number): void {
    const entry = this.index.live(key);
    if (!entry) return;
    this.changes++;
    if (!entry.block) this.write();
    this.index.leave(entry);
    if (entry.block?.left === 0) this.touch(entry.block);
  }

  /**
   * A job has completed, wherever it was. Waking looks into the archive only for jobs that were due by then; those
   * that ran earlier than a block has are marked. @param now epoch ms
   */
  completed(key: number, now: number): void {
    for (const { at, isGone } of this.index.of(key)) {
      if (at <= now || isGone) continue;
      this.vanish([key]);
      return;
    }
    this.leave(key);
  }

  vanish(keys: readonly number[]): void {
    if (this.total === 0) return;
    this.changes++;
    if (keys.some((key) => this.index.live(key)?.row)) this.write();
    this.markGone(keys, this.marks);
  }

  /** @param noted gets the keys of those that were not marked before */
  private markGone(keys: readonly number[], noted?: number[]): void {
    for (const key of keys) {
      let isNew = false;
      for (const entry of this.index.of(key)) {
        if (entry.isGone || !entry.block) continue;
        this.index.leave(entry);
        entry.isGone = true;
        isNew = true;
        this.touch(entry.block, true);
      }
      if (isNew) noted?.push(key);
    }
  }

  private touch(block: RetryBlock, isMarked = false): void {
    const known = this.touched.get(block);
    if (!known) this.touched.set(block, { isMarked });
    else known.isMarked ||= isMarked;
  }

  /** Writes what was gathered: one row for each block that comes, changes or goes. */
  flush(): void {
    this.offered = 0;
    if (this.waiting.length > 0 || this.touched.size > 0) this.changes++;
    this.write();
    for (const [block, { isMarked }] of this.touched) {
      if (block.left === 0) this.delete(block);
      else if (isMarked) this.writeGone(block);
    }
    this.touched.clear();
    this.marks = [];
  }

  private write(): void {
    const rows = this.waiting;
    this.waiting = [];
    for (const part of parted(rows)) {
      const { heads, data } = encode(part);
      const insert = 'INSERT INTO retry_blocks (sequence, heads, data) VALUES (?, ?, ?) RETURNING block';
      const block = cell<number>(this.sql, insert, this.around.nextSequence(), heads, data) as number;
      const entries = part.map(({ key }) => this.index.live(key) as RetryEntry);
      this.begin(block, entries);
    }
  }

  private writeGone({ id, entries }: RetryBlock): void {
    const gone = entries.flatMap(({ isGone }, place) => (isGone ? [place] : []));
    this.sql.exec('UPDATE retry_blocks SET gone = ? WHERE block = ?', JSON.stringify(gone), id).toArray();
  }

  private delete(block: RetryBlock): void {
    for (const entry of block.entries) {
      this.around.forget(entry.key);
      this.index.forget(entry);
    }
    this.sql.exec('DELETE FROM retry_blocks WHERE block = ?', block.id).toArray();
    this.blocks.delete(block.id);
    this.total -= block.entries.length;
    this.texts.drop(block.id);
  }

  // ---- texts ------------------------------------------------------------------------------------

  private rowOf({ block, place, row }: RetryEntry, texts: boolean): JobRow {
    if (row) return texts ? { ...row } : { ...row, body: '', history: null };
    const { heads, data } = this.texts.of((block as RetryBlock).id);
    return rowOf(heads[place] as Head, texts ? data : undefined);
  }
}
