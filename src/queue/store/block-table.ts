/**
 * A table of blocks: which jobs are in them and not over. Nothing is written when jobs run and end; other tables show
 * it:
 *
 * | a job of the block | shown by |
 * |---|---|
 * | has moved out: an attempt failed, or it was changed | a row of its own |
 * | has completed | a chunk of the archive |
 * | is gone, and nothing of it is kept | its offset in `gone` |
 * | runs | a lease that names it |
 * | waits | none of these |
 *
 * Code that deletes a job's last trace calls {@link BlockTable.vanish}. Blocks whose jobs are all over are deleted.
 */
import { cell, type Fragment, firstRow } from '../../durable/sql';
import { RANK_BIT, sequenceOf } from '../../job/ids';
import type { BlockJob, BlockRow, Elsewhere, NewBlock } from './block';
import { ALL_BLOCKS, Block, encode, MAX_JOINING, parted, rowOf } from './block';
import { type BlockCache, Gap } from './block-cache';
import { keysOver, spansOf } from './blocks-over';
import type { JobPlace, JobRow } from './job-row';

/** Blocks read together, at most, by readers of many. */
export const MAX_WINDOW = 64;

/** The blocks of one table: here those of the line. */
export class BlockTable implements JobPlace {
  protected readonly table: string = 'blocks';
  protected readonly columns: string = 'first, span, gone, heads';
  /** May a job that arrives alone join the newest block? */
  protected readonly isJoined: boolean = true;

  /** Does this table own the key, if the job is in a block at all? Both tables share the cache. */
  readonly owns: (key: number) => boolean = (key) => key < RANK_BIT;

  /** Jobs of the running transaction that are not written yet. */
  protected waiting: BlockJob[] = [];
  /** Keys of jobs that have vanished; not written yet. */
  private marks: number[] = [];
  /** Keys in blocks whose jobs may all be over. */
  private touched: number[] = [];
  private readonly marked = new Set<number>();
  /** Was a block read whose heads are unreadable? It stays so for this life of the object. */
  isDamaged = false;
  private readonly gap = new Gap();
  /** Where the newest block begins; null: there is none; undefined: to be read. */
  private newest: number | null | undefined;
  /** May there be any? */
  protected used = false;

  /** @param forget called with a sequence number whose row is about to be deleted */
  constructor(
    protected readonly sql: SqlStorage,
    private readonly elsewhere: Elsewhere,
    protected readonly cache: BlockCache,
    private readonly forget: (key: number) => void,
  ) {}

  /** Rebuilds memory from storage. What the running transaction has gathered stays. */
  load(): void {
    this.uncache();
    this.markAll();
    this.used = cell(this.sql, `SELECT 1 FROM ${this.table} LIMIT 1`) !== undefined;
  }

  mark() {
    const { waiting, marks, touched } = this;
    return { waiting, marks, touched, jobs: waiting.length, keys: marks.length, places: touched.length };
  }

  /** Goes back to a mark, before memory is rebuilt. */
  rollback({ waiting, marks, touched, jobs, keys, places }: ReturnType<BlockTable['mark']>): void {
    const isSame = this.waiting === waiting && this.marks === marks && this.touched === touched;
    const isWritten = !isSame || marks.length !== keys || touched.length !== places;
    waiting.length = jobs;
    if (!isWritten) return;
    marks.length = keys;
    touched.length = places;
    Object.assign(this, { waiting, marks, touched });
    // Drops what was written since.
    this.uncache();
    this.markAll();
    this.used = true;
  }

  /** Adds a job with the next sequence number. Written by {@link flush}, many to a row. */
  add(job: BlockJob): void {
    this.waiting.push(job);
  }

  /** The job that waits to be written, if it is the only one. */
  get alone(): BlockJob | undefined {
    return this.waiting.length === 1 ? this.waiting[0] : undefined;
  }

  /** Removes the pending job that came alone: the caller writes it elsewhere. */
  withdrawAlone(): void {
    this.waiting = [];
  }

  highest(): number {
    const stored = cell<number>(this.sql, `SELECT first + span - 1 FROM ${this.table} ORDER BY first DESC LIMIT 1`);
    return Math.max(stored ?? 0, this.waiting.at(-1)?.key ?? 0);
  }

  // ---- where a job is --------------------------------------------------------------------------

  holds(key: number): boolean {
    return this.at(key)?.holds(key) === true;
  }

  row(key: number): JobRow | undefined {
    const block = this.at(key);
    if (!block?.holds(key)) return undefined;
    this.readData(block);
    return block.row(key);
  }

  head(key: number): JobRow | undefined {
    const block = this.at(key);
    return block?.holds(key) ? block.row(key, false) : undefined;
  }

  *after(key: number, bodies = true): Generator<JobRow> {
    // Those that are not written yet have the highest numbers.
    const end = this.waiting[0]?.key ?? Number.POSITIVE_INFINITY;
    const first = key + 1 < end ? (this.at(key + 1, !bodies) ?? this.next(key, !bodies)) : undefined;
    for (let block = first; block; block = this.next(block.end - 1, !bodies)) {
      if (block.left === 0) continue;
      yield* this.rowsOf(block, key + 1, bodies);
    }
    for (const job of this.waiting) if (job.key > key) yield rowOf(job);
  }

  *pages(from: number, ascending: boolean, size: number, among: Fragment = ALL_BLOCKS): Generator<number[]> {
    let page: number[] = [];
    for (const block of this.inOrder(from, ascending, among)) {
      const keys = [...block.keys(ascending ? from + 1 : undefined)];
      if (!ascending) keys.reverse();
      for (const key of keys) {
        if (!ascending && key >= from) continue;
        if (page.push(key) < size) continue;
        yield page;
        page = [];
      }
    }
    if (page.length > 0) yield page;
  }

  private *inOrder(from: number, ascending: boolean, among: Fragment): Generator<Block> {
    this.flush();
    if (!this.used) return;
    const where = `${among.sql} AND ${ascending ? 'first >= ? ORDER BY first' : 'first < ? ORDER BY first DESC'}`;
    let bound = ascending ? (this.at(from + 1)?.first ?? from + 1) : from;
    for (let window = 1; ; window = Math.min(4 * window, MAX_WINDOW)) {
      const blocks = this.build(this.select(`${where} LIMIT ${window}`, ...among.bindings, bound));
      for (const block of blocks) yield this.cache.keep(block);
      const last = blocks.at(-1);
      if (!last || blocks.length < window) return;
      bound = ascending ? last.end : last.first;
    }
  }

  /** How many jobs are in blocks and not over. Reads a few rows for each block, and no bodies. */
  count(): number {
    return this.countAmong(ALL_BLOCKS, () => true);
  }

  /** {@link count} of some blocks. @param isAmong equivalent to `among` */
  protected countAmong(among: Fragment, isAmong: (block: Block) => boolean): number {
    this.flush();
    if (!this.used) return 0;
    const all = `SELECT sum(jobs) FROM ${this.table} AS blocks WHERE ${among.sql}`;
    let count = cell<number>(this.sql, all, ...among.bindings) ?? 0;
    if (count === 0) return 0;
    const isOver = (key: number) => {
      const block = this.at(key);
      // Numbers between the jobs of a block may be those of jobs that were never in it.
      if (block?.had(key) && !block.gone.has(key - block.first) && isAmong(block)) count--;
    };
    const spans = `(SELECT first, span FROM ${this.table} AS blocks WHERE ${among.sql})`;
    for (const { key } of keysOver(this.sql, { sql: spans, bindings: among.bindings })) isOver(key);
    for (const key of this.elsewhere.keys()) isOver(key);
    return count;
  }

  // ---- the end of a job ------------------------------------------------------------------------

  leave(key: number): void {
    const block = this.at(key);
    if (!block?.had(key)) return;
    block.over(key);
    if (block.left === 0) this.touched.push(key);
  }

  vanish(keys: readonly number[]): void {
    if (!this.used && this.waiting.length === 0) return;
    for (const key of keys) {
      if (!this.at(key)?.vanish(key)) continue;
      this.marks.push(key);
      this.marked.add(key);
    }
  }

  /** Writes what was gathered: one row for each block that comes, changes or goes. */
  flush(): void {
    if (this.waiting.length > 0) {
      const jobs = this.waiting;
      this.waiting = [];
      for (const part of parted(jobs)) this.write(part);
    }
    if (this.marks.length > 0 || this.touched.length > 0) this.settle();
  }

  private write(jobs: readonly [BlockJob, ...BlockJob[]]): void {
    const { key: first, priority, due_at } = jobs[0];
    const { key: last } = jobs.at(-1) as BlockJob;
    this.gap.end(first);
    const tail = this.isJoined ? this.tail() : undefined;
    // The newest block has waited for others to join, and its jobs are all over: this one takes its row, nothing is
    // deleted.
    const over = tail?.left === 0 ? tail : undefined;
    const joined = tail && !over && tail.isJoinedBy(jobs) ? tail : undefined;
    const { heads, data } = encode(jobs, joined?.end ?? first);
    if (joined) {
      joined.append(`[${heads}]`, data);
      const join = `UPDATE ${this.table} SET span = ?, jobs = jobs + ?, heads = substr(heads, 1, length(heads) - 1) || ',' || ? || ']',
        data = substr(data, 1, length(data) - 1) || ',' || ? || ']' WHERE first = ?`;
      this.sql.exec(join, joined.span, jobs.length, heads, data, joined.first).toArray();
      return;
    }
    const row = { first, span: last - first + 1, heads: `[${heads}]`, data: `[${data}]` };
    this.insert({ ...row, jobs: jobs.length, priority, due_at }, over?.first);
    this.used = true;
    if (over) this.uncache(over);
    const block = new Block({ ...row, gone: null, priority, due_at });
    block.data = row.data;
    this.newest = first;
    this.cache.add(block);
  }

  /** Writes a new block, into the row of one that is over where there is one: one row, and one for each index. */
  protected insert({ first, span, jobs, heads, data }: NewBlock, over?: number): void {
    const bindings = [first, span, jobs, heads, data];
    const insert = 'INSERT INTO blocks (first, span, jobs, heads, data) VALUES (?, ?, ?, ?, ?)';
    const update = 'UPDATE blocks SET first = ?, span = ?, jobs = ?, heads = ?, data = ?, gone = NULL WHERE first = ?';
    if (over === undefined) this.sql.exec(insert, ...bindings).toArray();
    else this.sql.exec(update, ...bindings, over).toArray();
  }

  private tail(): Block | undefined {
    const first = this.newestFirst();
    return first === null ? undefined : this.at(first);
  }

  private newestFirst(): number | null {
    if (!this.used) return null;
    this.newest ??= cell<number>(this.sql, `SELECT max(first) FROM ${this.table}`) ?? null;
    return this.newest;
  }

  /** Writes marks, and deletes blocks whose jobs are all over; the newest one stays while others may join it. */
  private settle(): void {
    const marksIn = new Map<number, { block: Block; marks: number }>();
    const note = (key: number, marks: 0 | 1) => {
      const block = this.at(key);
      if (!block) return;
      const noted = marksIn.get(block.first) ?? { block, marks: 0 };
      noted.marks += marks;
      marksIn.set(block.first, noted);
    };
    for (const key of this.marks) note(key, 1);
    for (const key of this.touched) note(key, 0);
    for (const { block, marks } of marksIn.values()) {
      const isOpen = this.isJoined && marks === 0 && block.chars <= MAX_JOINING && this.tail()?.first === block.first;
      if (block.left > 0 || isOpen) {
        if (marks === 0) continue;
        const gone = JSON.stringify([...block.gone]);
        const update = `UPDATE ${this.table} SET gone = ?, jobs = jobs - ? WHERE first = ?`;
        this.sql.exec(update, gone, marks, block.first).toArray();
        continue;
      }
      this.forget(block.end - 1);
      this.sql.exec(`DELETE FROM ${this.table} WHERE first = ?`, block.first).toArray();
      this.uncache(block);
    }
    this.marks = [];
    this.touched = [];
    this.marked.clear();
  }

  // ---- reading ---------------------------------------------------------------------------------

  /** The block that spans this number. @param isAhead as {@link BlockCache.keep} has it */
  protected at(key: number, isAhead = false): Block | undefined {
    if (!this.owns(key)) return undefined;
    const [first] = this.waiting;
    if (first && key >= first.key) this.flush();
    if (!this.used) return undefined;
    const known = this.cache.spanning(key);
    if (known) return known;
    const newest = this.cache.get(this.newest ?? -1);
    if (newest && key >= newest.end) return undefined;
    if (this.gap.has(key)) return undefined;
    const [row] = this.select('first <= ? ORDER BY first DESC LIMIT 1', key);
    const end = row ? row.first + row.span : 0;
    if (!row || key >= end) {
      const [next] = this.select('first > ? ORDER BY first LIMIT 1', key);
      this.gap.set(end, (next?.first ?? Number.POSITIVE_INFINITY) - 1);
      return undefined;
    }
    const [block] = this.build([row]);
    return block && this.cache.keep(block, isAhead);
  }

  private next(key: number, isAhead: boolean): Block | undefined {
    if (key >= (this.newestFirst() ?? 0)) return undefined;
    const [block] = this.build(this.select('first > ? ORDER BY first LIMIT 1', key));
    return block && this.cache.keep(block, isAhead);
  }

  protected select(where: string, ...bindings: (string | number)[]): BlockRow[] {
    const query = `SELECT ${this.columns} FROM ${this.table} AS blocks WHERE ${where}`;
    return this.sql.exec<BlockRow>(query, ...bindings).toArray();
  }

  /** Blocks as they are by now: what is over is known. */
  protected build(rows: readonly BlockRow[]): Block[] {
    const fresh = new Map<number, Block>();
    const blocks = rows.map((row) => {
      const known = this.cache.get(row.first);
      if (known) return known;
      const block = new Block(row);
      fresh.set(row.first, block);
      return block;
    });
    if (fresh.size === 0) return blocks;
    this.cache.read += fresh.size;
    const read = [...fresh.values()];
    const until = this.elsewhere.archivedUntil();
    const over = keysOver(this.sql, spansOf(read), { archive: read.some(({ first }) => sequenceOf(first) <= until) });
    for (const { first, key } of over) fresh.get(first)?.over(key);
    for (const block of read) {
      for (const key of this.elsewhere.keys(block.first, block.end)) block.over(key);
      for (const key of this.marked) if (block.spans(key)) block.vanish(key);
      this.isDamaged ||= block.isUnreadable;
    }
    return blocks;
  }

  private markAll(): void {
    this.marked.clear();
    for (const key of this.marks) this.marked.add(key);
  }

  protected *rowsOf(block: Block, from: number | undefined, bodies: boolean): Generator<JobRow> {
    for (const key of block.keys(from)) {
      // The bodies may be dropped from memory while a reader pauses.
      if (bodies) this.readData(block);
      yield block.row(key, bodies);
    }
  }

  private readData(block: Block): void {
    if (block.data !== undefined) return;
    const select = `SELECT data, octet_length(data) AS bytes FROM ${this.table} WHERE first = ?`;
    const row = firstRow<{ data: string; bytes: number }>(this.sql, select, block.first);
    block.data = row?.data ?? '';
    block.isAscii = row?.bytes === block.data.length;
    this.cache.keep(block);
  }

  private uncache(block?: Block): void {
    if (block) this.cache.delete(block);
    else {
      this.cache.clear();
      this.gap.clear();
    }
    this.newest = undefined;
  }
}
