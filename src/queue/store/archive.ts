/**
 * The archive of completed jobs, many to a row. Sequence numbers in a chunk lie less than {@link SPAN} apart, so one
 * index range finds a job. Chunks are in the order of completion and pruned from the front; a lone job joins the
 * newest small chunk, for one row.
 *
 * Jobs with their own retention share chunks of one removal moment, which their numbers encode: no column or index is
 * needed, and pruning finds the first at the front. Chunks of other jobs are numbered from 1 on.
 *
 *     chunk = (moment − 2^44) × 512 + slot         negative, and in the order of the moments
 */
import { cell, column, type Fragment, firstRow, LIMIT, parseStored, rows, rowsUntil } from '../../durable/sql';
import { parseExactly } from '../../job/envelope/exact';
import { getOrInsert } from '../../job/get-or-insert';
import { sequenceOf } from '../../job/ids';
import { ARCHIVED, type DamagedChunk, damagedChunk, keysOf } from './damaged-chunks';
import type { ArchivedJob } from './rows';
import type { Turn } from './sizes';
import { forgetCompleted } from './unique-keys';

export const SPAN = 1024;

interface Pruned {
  chunks: number;
  jobs: number;
  /** The turn reached its bound: there may be more. */
  more: boolean;
  /** When the newest of the chunks ended, epoch ms. */
  until: number;
}

interface Archive {
  readonly sql: SqlStorage;
  readonly blocks: { vanish(keys: readonly number[]): void; holds(key: number): boolean };
  readonly turn: Turn;
}

export interface Pruning {
  /** Called with each job that can be read. */
  visit?(job: ArchivedJob): void;
  /** Asked before each chunk: was enough removed? */
  isEnough?(): boolean;
}

/** The jobs of a chunk that can be read. Unreadable ones hide no others, and are pruned in time. */
function jobsIn(sql: SqlStorage, { chunk, data }: { chunk: number; data: string }): ArchivedJob[] {
  const jobs = parseStored(data, parseExactly);
  const readable = Array.isArray(jobs) ? (jobs as (ArchivedJob | null)[]).filter(isJob) : [];
  if (!Array.isArray(jobs) || readable.length < jobs.length) damagedChunk(sql, chunk);
  return readable;
}

const isJob = (job: ArchivedJob | null): job is ArchivedJob => typeof job?.k === 'number';

/** Finds completed jobs by their keys. Each chunk is read once. */
export function findArchived(sql: SqlStorage, keys: Iterable<number>): Map<number, ArchivedJob> {
  const wanted = new Set(keys);
  const found = new Map<number, ArchivedJob>();
  const seen = new Set<number>();
  for (const key of wanted) {
    if (found.has(key)) continue;
    for (const chunk of chunksAround(sql, sequenceOf(key))) {
      if (seen.has(chunk)) continue;
      seen.add(chunk);
      const row = sql.exec<Chunk>(`${CHUNK} WHERE chunk = ?`, chunk).one();
      for (const job of jobsIn(sql, row)) if (wanted.has(job.k)) found.set(job.k, job);
      if (found.has(key)) break;
    }
  }
  return found;
}

type Chunk = { chunk: number; data: string; jobs: number; ended_at: number };

const CHUNK = 'SELECT chunk, data, jobs, ended_at FROM archive';

/** The chunks in which jobs with these sequence numbers may lie. */
function chunksAround(sql: SqlStorage, first: number, last = first): number[] {
  const query = 'SELECT chunk FROM archive WHERE lo > ? AND lo <= ? AND hi >= ?';
  return column(sql, query, first - SPAN, last, first);
}

export function farResult(sql: SqlStorage, job: ArchivedJob): string | undefined {
  if (!job.far) return undefined;
  return cell(sql, 'SELECT value FROM results WHERE key = ?', job.k);
}

/** The number of completed jobs in each database: counted when first asked for, then kept in memory. */
const counts = new WeakMap<SqlStorage, number>();

export const countArchived = (sql: SqlStorage): number =>
  getOrInsert(counts, sql, () => cell<number>(sql, 'SELECT sum(jobs) FROM archive') ?? 0);

/** Memory may be wrong: the next call counts again. */
export function forgetArchivedCount(sql: SqlStorage): void {
  counts.delete(sql);
}

export function adjustCount(sql: SqlStorage, by: number): void {
  const known = counts.get(sql);
  if (known !== undefined) counts.set(sql, known + by);
}

/** Approximate jobs, and characters of them, in a window of chunks that is read at once; at least one chunk. */
const WINDOW_JOBS = 200;
const WINDOW_CHARS = 4 * 1024 * 1024;

/**
 * Completed jobs below `before`, newest first, by windows of chunks.
 * @param condition on an entry `job` of a chunk; the JSON is that of the jobs that match, null for the others
 */
export function* archivedBackwards(
  sql: SqlStorage,
  before: number,
  condition: Fragment = { sql: '1', bindings: [] },
): Generator<{ key: number; json: string | null }> {
  let top = before - 1;
  while (top >= 0) {
    const bottom = windowBelow(sql, top);
    if (bottom === undefined) return;
    // Any job from bottom on is in a chunk that starts within one span below.
    const among = `SELECT key, CASE WHEN hit THEN json END AS json FROM (
      SELECT job.value ->> '$.k' AS key, ${condition.sql} AS hit, job.value AS json
      FROM archive, json_each(${ARCHIVED}) AS job
      WHERE lo > ? AND lo <= ? AND hi >= ? AND job.type = 'object')`;
    const bounds = [bottom - SPAN, top, bottom];
    const jobs = rows<{ key: number; json: string | null }>(sql, among, ...condition.bindings, ...bounds).filter(
      ({ key }) => typeof key === 'number' && sequenceOf(key) >= bottom && sequenceOf(key) <= top,
    );
    yield* jobs.sort((a, b) => sequenceOf(b.key) - sequenceOf(a.key));
    top = bottom - 1;
  }
}

/** The lowest number of a window that ends at `top`; undefined when nothing lies there. */
function windowBelow(sql: SqlStorage, top: number): number | undefined {
  let bottom: number | undefined;
  let [jobs, chars] = [0, 0];
  const chunks = 'SELECT lo, jobs, length(data) AS chars FROM archive WHERE lo <= ? ORDER BY lo DESC';
  for (const chunk of rowsUntil<{ lo: number; jobs: number; chars: number }>(sql, chunks, top)) {
    if (bottom !== undefined && chars + chunk.chars > WINDOW_CHARS) break;
    bottom = chunk.lo;
    jobs += chunk.jobs;
    chars += chunk.chars;
    if (jobs >= WINDOW_JOBS) break;
  }
  return bottom;
}

/** Completed jobs after a number, about `maxChars` in all, at least one. @returns `until`: all up to it are included */
export function archivedAfter(
  sql: SqlStorage,
  after: number,
  until: number,
  maxChars: number,
): { jobs: ArchivedJob[]; until: number; damaged: number } {
  const top = Math.min(until, windowAbove(sql, after));
  // Any job up to there is in a chunk that starts within one span below.
  const among = `SELECT job.value ->> '$.k' AS k, length(job.value) AS chars
    FROM archive, json_each(${ARCHIVED}) AS job WHERE lo > ? AND lo <= ? AND hi > ? AND job.type = 'object'`;
  const places = rows<{ k: number; chars: number }>(sql, among, after - SPAN, top, after)
    .filter(({ k }) => typeof k === 'number' && sequenceOf(k) > after && sequenceOf(k) <= top)
    .sort((a, b) => sequenceOf(a.k) - sequenceOf(b.k));
  let chars = 0;
  const fitting = places.findIndex((place) => {
    chars += place.chars;
    return chars > maxChars;
  });
  const taken = fitting < 0 ? places : places.slice(0, Math.max(1, fitting));
  const keys = taken.map(({ k }) => k);
  const found = findArchived(sql, keys);
  const last = taken.length < places.length ? sequenceOf(keys.at(-1) as number) : top;
  const lost = 'SELECT sum(jobs) FROM archive WHERE lo > ? AND lo <= ? AND NOT json_valid(data)';
  const damaged = cell<number>(sql, lost, after, last) ?? 0;
  return { jobs: keys.flatMap((key) => found.get(key) ?? []), until: last, damaged };
}

/** The highest number of a window of chunks that begins after a number. */
function windowAbove(sql: SqlStorage, after: number): number {
  let jobs = 0;
  const chunks = 'SELECT lo, jobs FROM archive WHERE lo > ? ORDER BY lo';
  for (const chunk of rowsUntil<{ lo: number; jobs: number }>(sql, chunks, after - SPAN)) {
    // The next window begins before this chunk.
    if (jobs >= WINDOW_JOBS && chunk.lo > after + 1) return chunk.lo - 1;
    jobs += chunk.jobs;
  }
  return Number.MAX_SAFE_INTEGER;
}

/** Deletes a share of the chunks that ended at or before `cutoff`; none has jobs with their own retention. */
export function pruneArchive(archive: Archive, cutoff: number, pruning?: Pruning): Pruned {
  const limit = archive.turn.share;
  const due: number[] = [];
  const chunks = 'SELECT chunk, ended_at FROM archive WHERE chunk >= 0 ORDER BY chunk';
  for (const { chunk, ended_at } of rowsUntil<{ chunk: number; ended_at: number }>(archive.sql, chunks)) {
    if (ended_at > cutoff || due.length === limit) break;
    due.push(chunk);
  }
  return deleteChunks(archive, due, limit, pruning);
}

/** Deletes a share of the chunks whose jobs were kept until `now`. */
export function pruneKeptChunks(archive: Archive, now: number, pruning?: Pruning): Pruned {
  const limit = archive.turn.share;
  const due = `SELECT chunk FROM archive WHERE chunk <= ? ORDER BY chunk ${LIMIT}`;
  return deleteChunks(archive, column(archive.sql, due, lastDue(now), limit), limit, pruning);
}

function deleteChunks(
  archive: Archive,
  chunks: readonly number[],
  limit: number,
  { visit, isEnough }: Pruning = {},
): Pruned {
  const { sql, turn } = archive;
  const gone: Pruned = { chunks: 0, jobs: 0, more: chunks.length === limit, until: 0 };
  for (const chunk of turn.draw(chunks)) {
    if (isEnough?.()) break;
    const row = sql.exec<Chunk>(`${CHUNK} WHERE chunk = ?`, chunk).one();
    const { data, jobs, ended_at } = row;
    const readable = jobsIn(sql, row);
    if (visit) readable.forEach(visit);
    const damaged = readable.length < jobs ? damagedChunk(sql, chunk) : undefined;
    forgetBeside(archive, readable);
    sql.exec('DELETE FROM archive WHERE chunk = ?', chunk).toArray();
    if (damaged) forgetLost(archive, damaged);
    adjustCount(sql, -jobs);
    gone.chunks++;
    gone.jobs += jobs;
    gone.until = Math.max(gone.until, ended_at);
    turn.spend({ chars: data.length });
  }
  gone.more ||= gone.chunks < chunks.length;
  return gone;
}

/** Deletes the other rows of archived jobs, whose chunk is deleted or written without them. */
function forgetBeside({ sql, blocks }: Archive, jobs: readonly ArchivedJob[]): void {
  blocks.vanish(jobs.map((job) => job.k));
  const having = (member: 'far' | 'cp' | 'os') => jobs.filter((job) => job[member]).map(({ k }) => k);
  deleteAll(sql, 'results', having('far'));
  for (const table of ['checkpoints', 'step_values']) deleteAll(sql, table, having('cp'));
  deleteAll(sql, 'stream_chunks', having('os'));
  const ids = jobs.flatMap(({ a }) => a ?? []);
  deleteAll(sql, 'aliases', ids, 'id');
  forgetCompleted(sql, jobs);
}

function deleteAll(sql: SqlStorage, table: string, names: readonly (number | string)[], name = 'key'): void {
  if (names.length === 0) return;
  rows(sql, `DELETE FROM ${table} WHERE ${name} IN (SELECT value FROM json_each(?))`, JSON.stringify(names));
}

/** Deletes the other rows of unreadable jobs in a deleted chunk: of all its numbers that belong to no job. */
function forgetLost({ sql, blocks }: Archive, damaged: DamagedChunk): void {
  const possible = keysOf(damaged);
  const open = 'SELECT key FROM jobs WHERE key IN (SELECT value FROM json_each(?))';
  const own = column<number>(sql, open, JSON.stringify(possible));
  const present = new Set([...findArchived(sql, possible).keys(), ...own]);
  const gone = possible.filter((key) => !present.has(key) && !blocks.holds(key));
  blocks.vanish(gone);
  for (const table of ['results', 'checkpoints', 'step_values', 'stream_chunks', 'progress', 'aliases', 'unique_keys'])
    deleteAll(sql, table, gone);
}

/** Deletes these completed jobs from their chunks. Each chunk is rewritten without them, or deleted when empty. */
export function deleteArchived(archive: Archive, keys: readonly number[]): void {
  const gone = new Set(keys);
  for (const [lo, hi] of windowsOf(keys.map((key) => ({ key, at: 0 })))) {
    for (const chunk of chunksAround(archive.sql, lo, hi)) deleteFrom(archive, chunk, gone);
  }
}

/** Ranges of numbers no wider than a chunk may be, and the earliest moment in each, epoch ms. */
export function windowsOf(jobs: readonly { key: number; at: number }[]): [lo: number, hi: number, at: number][] {
  const windows: [lo: number, hi: number, at: number][] = [];
  const numbers = jobs.map(({ key, at }) => ({ sequence: sequenceOf(key), at }));
  for (const { sequence, at } of numbers.sort((a, b) => a.sequence - b.sequence)) {
    const last = windows.at(-1);
    if (last && sequence - last[0] < SPAN) {
      last[1] = sequence;
      last[2] = Math.min(last[2], at);
    } else windows.push([sequence, sequence, at]);
  }
  return windows;
}

function deleteFrom(archive: Archive, chunk: number, gone: ReadonlySet<number>): void {
  const { sql } = archive;
  const row = firstRow<Chunk>(sql, `${CHUNK} WHERE chunk = ?`, chunk);
  const jobs = row ? jobsIn(sql, row) : [];
  const kept = jobs.filter((job) => !gone.has(job.k));
  if (kept.length === jobs.length) return;
  forgetBeside(
    archive,
    jobs.filter((job) => gone.has(job.k)),
  );
  adjustCount(sql, kept.length - (row?.jobs ?? 0));
  if (kept.length === 0) {
    sql.exec('DELETE FROM archive WHERE chunk = ?', chunk).toArray();
    return;
  }
  sql.exec('UPDATE archive SET jobs = ?, data = ? WHERE chunk = ?', kept.length, JSON.stringify(kept), chunk).toArray();
}

/** End time of the oldest chunk that the queue's retention removes, or undefined when there is none. */
export const oldestArchived = (sql: SqlStorage): number | undefined =>
  cell(sql, 'SELECT ended_at FROM archive WHERE chunk >= 0 ORDER BY chunk LIMIT 1');

/** Chunks with the same moment. One that finds no slot free stays a millisecond longer. */
const SLOTS = 512;

/** Moments lie below this (epoch ms; the year 2527), which keeps numbers negative and exact. */
const BEYOND = 2 ** 44;

/** The lowest number for this moment, epoch ms. */
const firstNumber = (until: number): number => (until - BEYOND) * SLOTS;

/** The highest number of a chunk that is due at `now`. */
export const lastDue = (now: number): number => firstNumber(Math.floor(now)) + SLOTS - 1;

/** When the first of these chunks is due, epoch ms; undefined when there is none. */
export function firstKeptUntil(sql: SqlStorage): number | undefined {
  const chunk = cell<number>(sql, 'SELECT min(chunk) FROM archive WHERE chunk < 0');
  return chunk === undefined ? undefined : Math.floor(chunk / SLOTS) + BEYOND;
}

/** A free number for a chunk that is due at `until`, epoch ms. */
export function freeNumber(sql: SqlStorage, until: number): number {
  for (let moment = Math.min(until, BEYOND - 1); moment < BEYOND; moment++) {
    const first = firstNumber(moment);
    const taken = 'SELECT max(chunk) FROM archive WHERE chunk >= ? AND chunk < ?';
    const last = cell<number>(sql, taken, first, first + SLOTS);
    if (last === undefined) return first;
    if (last < first + SLOTS - 1) return last + 1;
  }
  throw new Error('No number is free for an archive chunk.');
}
