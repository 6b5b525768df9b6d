/**
 * Output streams of jobs: rows of `stream_chunks`, and in memory the chunks that were shown to readers and wait to be
 * written. Memory is kept for streams that are being written. Chunks leave it once the transaction that wrote them is
 * committed.
 */
import type { ShownChunks } from '../../durable/followers';
import { cell, parseStored, put, rows } from '../../durable/sql';
import { getOrInsert } from '../../job/get-or-insert';
import {
  bytesOfChunks,
  laterRun,
  MAX_STREAM_BYTES,
  MAX_STREAMS,
  otherWriter,
  runOf,
  type StreamSaid,
  streamFull,
  streamGap,
} from '../../job/streams';
import type { CountingSql } from './counting-sql';
import type { Turn } from './sizes';

export interface StreamHead {
  run: number;
  /** The step that writes; null: the handler. */
  writer: string | null;
  /** How many chunks there are. */
  next: number;
  bytes: number;
}

interface OpenStream extends Omit<StreamHead, 'next'> {
  /** The number of the first text in memory; those before are committed. */
  base: number;
  /** Chunks before this number are in rows, if the running transaction commits. */
  written: number;
  texts: string[];
}

/** Chunks up to the end of a row; a damaged one counts as empty. */
const END = 'n + CASE WHEN json_valid(data) THEN json_array_length(data) ELSE 0 END';

/** Rows that one read takes: of a stream that is written fast, each has 64 KiB. */
const ROWS_READ = 64;

/** Characters of one job, and of all, that are written sooner than after a second. */
const MAX_WAITING = 64 * 1024;
const MAX_CHARS = 8 * 1024 * 1024;

const charsOf = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.length, 0);

const nextOf = ({ base, texts }: OpenStream): number => base + texts.length;

export class StreamTable {
  /** May there be rows? */
  private used = false;
  private readonly open = new Map<number, Map<string, OpenStream>>();
  private readonly flushed = new Set<OpenStream>();
  /** Shows chunks to those who follow the job. */
  show: (job: string, shown: ShownChunks) => void = () => undefined;
  /** Until the chunks that wait are written. */
  tick: Promise<void> | undefined;
  /** Characters in memory. */
  private chars = 0;

  constructor(
    private readonly sql: SqlStorage,
    private readonly counted: Pick<CountingSql, 'spend'>,
    private readonly turn: Turn,
  ) {}

  /** Must what was shown be written now? @param key of the job that writes */
  isDue(key: number): boolean {
    return this.chars >= MAX_CHARS || this.waiting(key) >= MAX_WAITING;
  }

  /** Chunks that were shown stay in memory; what a transaction wrote of them may be undone. */
  load(): void {
    this.used = rows(this.sql, 'SELECT 1 FROM stream_chunks LIMIT 1').length > 0;
    this.flushed.clear();
    for (const [key, streams] of this.open) {
      for (const [name, stream] of streams) {
        stream.written = this.storedNext(key, name, stream.run);
        // The next message of its writer is refused with the number that is missing.
        if (stream.written < stream.base || stream.written > nextOf(stream)) this.drop(streams, name);
        else this.flushed.add(stream);
      }
    }
  }

  private storedNext(key: number, name: string, run: number): number {
    const last = `SELECT ${END} FROM stream_chunks WHERE key = ? AND name = ? AND run = ? ORDER BY n DESC LIMIT 1`;
    return cell<number>(this.sql, last, key, name, run) ?? 0;
  }

  /** All streams of a job by name. */
  heads(key: number): Map<string, StreamHead> {
    const heads = new Map<string, StreamHead>();
    if (this.used) {
      const query = `SELECT name, run, writer, max(${END}) AS next,
        sum(length(CAST(data AS BLOB))) AS bytes FROM stream_chunks WHERE key = ? GROUP BY name`;
      type Row = { name: string; run: number; writer: string | null; next: number; bytes: number };
      for (const { name, ...head } of rows<Row>(this.sql, query, key)) heads.set(name, head);
    }
    for (const [name, stream] of this.open.get(key) ?? []) {
      const { run, writer, bytes } = stream;
      heads.set(name, { run, writer, bytes, next: nextOf(stream) });
    }
    return heads;
  }

  /**
   * Takes chunks of a running attempt into memory; those that are there already are passed over.
   * @returns those that are new, and whether they replace an earlier run
   * @throws {ApiError} 409: another writer, an earlier run, chunks before these are missing; 413
   */
  append(key: number, claim: number, said: StreamSaid): { shown: ShownChunks; isReset: boolean } {
    const { name, first, step: writer = null } = said;
    const run = runOf(claim, said.execution);
    const streams = getOrInsert(this.open, key, () => this.opened(key));
    const before = streams.get(name);
    if (before && before.writer !== writer) throw otherWriter(name, before.writer);
    if (before && run < before.run) throw laterRun(name, before.run);
    if (!before && streams.size >= MAX_STREAMS) throw streamFull('streams', name, streams.size + 1, MAX_STREAMS);
    const isReset = before !== undefined && run > before.run;
    const stream = before && !isReset ? before : { run, writer, bytes: 0, base: 0, written: 0, texts: [] };
    const next = nextOf(stream);
    if (first > next) throw streamGap(name, next);
    const chunks = said.chunks.slice(next - first);
    const bytes = bytesOfChunks(chunks);
    const others = [...streams].reduce((sum, [other, { bytes }]) => (other === name ? sum : sum + bytes), 0);
    const total = others + stream.bytes + bytes;
    if (total > MAX_STREAM_BYTES) throw streamFull('bytes', name, total, MAX_STREAM_BYTES);
    if (chunks.length === 0) return { shown: { name, run, first: next, chunks }, isReset: false };
    if (isReset) this.drop(streams, name);
    stream.bytes += bytes;
    for (const text of chunks) stream.texts.push(text);
    this.chars += charsOf(chunks);
    streams.set(name, stream);
    return { shown: { name, run, first: next, chunks }, isReset };
  }

  private opened(key: number): Map<string, OpenStream> {
    const stored = [...this.heads(key)].map(([name, { next, ...head }]): [string, OpenStream] => [
      name,
      { ...head, base: next, written: next, texts: [] },
    ]);
    return new Map(stored);
  }

  private drop(streams: Map<string, OpenStream>, name: string): void {
    const stream = streams.get(name);
    if (!stream) return;
    this.chars -= charsOf(stream.texts);
    this.flushed.delete(stream);
    streams.delete(name);
  }

  /** Characters of a job that wait to be written. */
  private waiting(key: number): number {
    let chars = 0;
    for (const { base, written, texts } of this.open.get(key)?.values() ?? []) {
      for (let at = written - base; at < texts.length; at++) chars += (texts[at] as string).length;
    }
    return chars;
  }

  /** Writes what waits of a job: a row for each stream. */
  flush(key: number): void {
    const streams = this.open.get(key);
    if (streams) for (const [name, stream] of streams) this.write(key, name, stream);
  }

  /** Writes what waits of all jobs. @returns whether the turn ended before */
  flushAll(): boolean {
    for (const key of this.open.keys()) {
      if (this.turn.isSpent) return true;
      this.flush(key);
    }
    return false;
  }

  private write(key: number, name: string, stream: OpenStream): void {
    const { run, writer, base, written: n, texts } = stream;
    if (n === nextOf(stream)) return;
    if (n === 0 && this.used) {
      rows(this.sql, 'DELETE FROM stream_chunks WHERE key = ? AND name = ? AND run <> ?', key, name, run);
    }
    const data = `[${texts.slice(n - base).join(',')}]`;
    put(this.sql, 'stream_chunks', { key, name, run, n, writer, data });
    this.turn.spend({ changes: 1 });
    stream.written = nextOf(stream);
    this.flushed.add(stream);
    this.used = true;
  }

  /** The transaction is committed. */
  committed(): void {
    if (this.flushed.size === 0) return;
    for (const stream of this.flushed) {
      this.chars -= charsOf(stream.texts.splice(0, stream.written - stream.base));
      stream.base = stream.written;
    }
    this.flushed.clear();
  }

  /** Forgets streams of jobs that do not run, once they are written. */
  sweep(isRunning: (key: number) => boolean): void {
    for (const [key, streams] of this.open) {
      if (!isRunning(key) && [...streams.values()].every(({ texts }) => texts.length === 0)) this.open.delete(key);
    }
  }

  /** Chunks from a number on, as JSON texts: about as many as are asked for, at least one if there is any. */
  read(key: number, name: string, run: number, from: number, maxChars: number): string[] {
    const stream = this.open.get(key)?.get(name);
    const own = stream?.run === run ? stream : undefined;
    const texts: string[] = [];
    let chars = 0;
    const take = (text: string): boolean => {
      // What is around a chunk counts, too.
      chars += text.length + 48;
      if (texts.length > 0 && chars > maxChars) return false;
      texts.push(text);
      return true;
    };
    const end = own?.base ?? Number.POSITIVE_INFINITY;
    if (from < end && this.used) {
      const first = 'SELECT max(n) FROM stream_chunks WHERE key = ?1 AND name = ?2 AND run = ?3 AND n <= ?4';
      const query = `SELECT n, data FROM stream_chunks WHERE key = ?1 AND name = ?2 AND run = ?3
        AND n >= coalesce((${first}), 0) ORDER BY n LIMIT ${ROWS_READ}`;
      for (const { n, data } of rows<{ n: number; data: string }>(this.sql, query, key, name, run, from)) {
        this.counted.spend(data.length);
        const list = (parseStored(data) ?? []) as unknown[];
        for (let at = Math.max(0, from - n); at < list.length && n + at < end; at++) {
          if (!take(JSON.stringify(list[at]))) return texts;
        }
      }
    }
    if (own && from + texts.length >= own.base) {
      for (const text of own.texts.slice(from + texts.length - own.base)) if (!take(text)) break;
    }
    return texts;
  }

  /** Has the job rows of streams? */
  has(key: number): boolean {
    return this.used && rows(this.sql, 'SELECT 1 FROM stream_chunks WHERE key = ? LIMIT 1', key).length > 0;
  }

  remove(key: number): void {
    const streams = this.open.get(key);
    for (const name of streams?.keys() ?? []) this.drop(streams as Map<string, OpenStream>, name);
    this.open.delete(key);
    if (this.used) rows(this.sql, 'DELETE FROM stream_chunks WHERE key = ?', key);
  }
}
