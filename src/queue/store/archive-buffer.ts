/** Completed jobs on their way into the archive, many to a row. */
import { cell, firstRow, put, rows } from '../../durable/sql';
import { parseExactly } from '../../job/envelope/exact';
import { enlisted } from '../../job/envelope/json-text';
import { sequenceOf } from '../../job/ids';
import { grouped } from '../../job/size';
import { adjustCount, forgetArchivedCount, freeNumber, SPAN } from './archive';
import { ARCHIVED } from './damaged-chunks';
import type { ArchivedJob } from './rows';

/** Bytes of JSON in a chunk at most, unless a single job is larger. A SQLite row holds 2 MB. */
const MAX_CHUNK = 256 * 1024;

/** Number of the next chunk in the order of completion: SQLite's own choice could be a negative one. */
const NEXT_CHUNK = '(SELECT max(coalesce(max(chunk), 0), 0) + 1 FROM archive)';

/** Results beyond this many characters go to a row of their own, and so do those of a job that fills a chunk alone. */
const FAR_RESULT = 64 * 1024;

interface Waiting {
  key: number;
  sequence: number;
  endedAt: number;
  /** When the job is removed, epoch ms; 0: by the queue's retention. */
  keptUntil: number;
  json: string;
}

/** The chunk written last, while more jobs may join it. */
interface Newest {
  chunk: number;
  lo: number;
  /** When its jobs are removed, epoch ms: all at the same moment. */
  removedAt: number;
  chars: number;
}

/** Characters of a chunk that others may still join: each join rewrites it. */
const MAX_JOINED = 24 * 1024;

type Loose<T> = { [K in keyof T]: undefined extends T[K] ? T[K] | undefined : T[K] };

export class ArchiveBuffer {
  private waiting: Waiting[] = [];
  /** Undefined: to be read; null: nothing may join. */
  private newest: Newest | null | undefined;
  /** See {@link archivedUntil}; undefined: to be read. */
  private highest: number | undefined;

  /** @param metersText text that rides in the newest chunk, be it new or joined */
  constructor(
    private readonly sql: SqlStorage,
    private readonly metersText: (by: 'chunk' | 'joined') => string,
  ) {}

  /** Memory may be wrong: keeps what is not written yet, and reads the rest again. */
  forget(): void {
    this.newest = undefined;
    this.highest = undefined;
    forgetArchivedCount(this.sql);
  }

  /** No chunk has a job with a higher sequence number. A few rows are read once. */
  archivedUntil(): number {
    const highest = `SELECT max(hi) FROM archive WHERE lo > (SELECT max(lo) FROM archive) - ${SPAN}`;
    this.highest ??= cell<number>(this.sql, highest) ?? 0;
    return this.highest;
  }

  get size(): number {
    return this.waiting.length;
  }

  /** Forgets what was added after `size`: its operation was rolled back. */
  rollback(size: number): void {
    this.waiting.length = size;
    // It may have been read after chunks were deleted that are back now.
    this.highest = undefined;
  }

  /**
   * Adds a completed job; a large result goes to its own row. @param body stored JSON, not parsed @param result JSON
   * @param job absent members may be undefined @param keptUntil removal, epoch ms; absent: by the queue's retention
   */
  add(job: Loose<Omit<ArchivedJob, 'b' | 'r' | 'far'>>, body: string, result: string | undefined, keptUntil = 0): void {
    let members = `"b":${body}`;
    if (result !== undefined) {
      if (result.length > FAR_RESULT || body.length + result.length > MAX_CHUNK) {
        put(this.sql, 'results', { key: job.k, value: result });
        members += ',"far":1';
      } else {
        members += `,"r":${result}`;
      }
    }
    const json = `${JSON.stringify(job).slice(0, -1)},${members}}`;
    this.waiting.push({ key: job.k, sequence: sequenceOf(job.k), endedAt: job.at[3], keptUntil, json });
  }

  *keys(): Generator<number> {
    for (const { key } of this.waiting) yield key;
  }

  find(key: number): ArchivedJob | undefined {
    const sequence = sequenceOf(key);
    const entry = this.waiting.find((waiting) => waiting.sequence === sequence);
    return entry && (parseExactly(entry.json) as ArchivedJob);
  }

  /** Writes what was added, in few rows; call once, at the end. @param removedAt of a job by its end, epoch ms */
  flush(removedAt: (endedAt: number) => number): void {
    const sorted = this.waiting.sort((a, b) => a.keptUntil - b.keptUntil || a.sequence - b.sequence);
    this.waiting = [];
    const joins = ([first]: readonly [Waiting, ...Waiting[]], { keptUntil, sequence }: Waiting) =>
      keptUntil === first.keptUntil && sequence - first.sequence < SPAN;
    for (const chunk of grouped(sorted, ({ json }) => json.length, MAX_CHUNK, SPAN, joins))
      this.write(chunk, removedAt);
  }

  private write(chunk: [Waiting, ...Waiting[]], removedAt: (endedAt: number) => number): void {
    const [{ sequence: lo, keptUntil }] = chunk;
    const { sequence: hi } = chunk.at(-1) as Waiting;
    const endedAt = Math.max(...chunk.map((entry) => entry.endedAt));
    const jobs = chunk.map((entry) => entry.json);
    const chars = jobs.reduce((sum, json) => sum + json.length, 0);
    adjustCount(this.sql, chunk.length);
    if (this.highest !== undefined) this.highest = Math.max(this.highest, hi);
    const joined = keptUntil === 0 ? this.joined(lo, hi, chars, removedAt(endedAt), removedAt) : undefined;
    if (joined) {
      joined.chars += chars;
      const join = `UPDATE archive SET hi = max(hi, ?), jobs = jobs + ?, ended_at = max(ended_at, ?),
        data = substr(data, 1, length(data) - 1) || ',' || ?, meters = ? WHERE chunk = ? AND lo = ? RETURNING chunk`;
      const added = [hi, chunk.length, endedAt, enlisted('', jobs, ']'), this.metersText('joined')];
      // It may have been removed meanwhile.
      if (cell(this.sql, join, ...added, joined.chunk, joined.lo) !== undefined) return;
    }
    const insert = `INSERT INTO archive (lo, hi, jobs, ended_at, data, chunk, meters)
      VALUES (?, ?, ?, ?, ?, coalesce(?, ${NEXT_CHUNK}), ?) RETURNING chunk`;
    const row = [lo, hi, chunk.length, endedAt, enlisted('[', jobs, ']')];
    if (keptUntil > 0) rows(this.sql, insert, ...row, freeNumber(this.sql, keptUntil), null);
    else {
      const written = cell<number>(this.sql, insert, ...row, null, this.metersText('chunk')) as number;
      this.newest = { chunk: written, lo, removedAt: removedAt(endedAt), chars };
    }
  }

  private joined(
    lo: number,
    hi: number,
    chars: number,
    at: number,
    removedAt: (endedAt: number) => number,
  ): Newest | undefined {
    if (chars > MAX_JOINED) return undefined;
    if (this.newest === undefined) this.newest = this.readNewest(removedAt);
    const { newest } = this;
    if (!newest || newest.removedAt !== at || newest.chars + chars > MAX_JOINED) return undefined;
    return lo >= newest.lo && hi - newest.lo < SPAN ? newest : undefined;
  }

  private readNewest(removedAt: (endedAt: number) => number): Newest | null {
    type Row = { chunk: number; lo: number; ended_at: number; chars: number };
    const last = `SELECT chunk, lo, ended_at, CASE WHEN ${ARCHIVED} = data THEN length(data) ELSE ${MAX_CHUNK} END
      AS chars FROM archive WHERE chunk > 0 ORDER BY chunk DESC LIMIT 1`;
    const row = firstRow<Row>(this.sql, last);
    return row ? { chunk: row.chunk, lo: row.lo, chars: row.chars, removedAt: removedAt(row.ended_at) } : null;
  }
}
