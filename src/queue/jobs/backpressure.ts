/** A bounded queue refuses what exceeds it, or discards the jobs that waited longest; producers are warned first. */
import { listed, rows, writeMeta } from '../../durable/sql';
import { ApiError, type ErrorData } from '../../job/errors';
import { RANK_BIT } from '../../job/ids';
import type { QueuePressure } from '../../rpc/receipts';
import { DEFAULT_WARNING } from '../../settings';
import { bodyBytes } from '../store/depth';
import { isInLine, type JobRow, STANDS_IN_LINE, STATE } from '../store/job-row';
import type { Configured, QueueParts, Stored, StoredQueue, Woken } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { UNDOES_NONE, undoesOther } from '../store/undo-job';
import { drop, expire, expiredRows } from './expire';

/** Seconds after which a refused producer may try again. */
const RETRY_AFTER_S = 1;

/** Jobs discarded to make room for one request, at most: as many as a request brings. */
const MOST_FOR_ROOM = 1_000;

export interface Arrival {
  jobs: number;
  bytes: number;
  /** Keys of jobs that it replaces. They count as gone, so they make no further room. */
  replaces?: ReadonlySet<number>;
}

export const isBounded = ({ config: { settings } }: Configured): boolean =>
  settings.max_depth !== undefined || settings.max_bytes !== undefined;

/**
 * Makes sure that the arrivals fit, discarding old jobs if the settings say so. If the bound was set below the
 * backlog, they replace the same amount, and {@link shed} discards the rest. @param mayDrop may old jobs go?
 * @throws {ApiError} 429 `QUEUE_FULL`; then nothing was written
 */
export function makeRoom(q: QueueParts, arrival: Arrival, now: number, mayDrop = true): void {
  const surplus = surplusOf(q, arrival);
  if (fits(surplus)) return;
  const isTooMuch = !mayDrop || exceedsAlone(q, arrival, q.store.leases.active.size);
  const drops = q.config.settings.overflow === 'drop_oldest' && !isTooMuch;
  const needed = drops ? smaller(surplus, arrival) : surplus;
  const { replaces = new Set() } = arrival;
  const expired = takeWhileNeeded(needed, besides(replaces, expiredRows(q, now)));
  const victims = takeWhileNeeded(expired.left, drops ? oldest(q, expired, MOST_FOR_ROOM, replaces) : []);
  // If very many small jobs would have to go for a large one, some of them go now.
  if (!fits(victims.left) && victims.rows.length < MOST_FOR_ROOM) throw queueFull(q, surplus);
  for (const row of expired.rows) expire(q, row, now);
  const first = Math.min(...replaces);
  for (const row of victims.rows) discard(q, row, now, first);
  if (!fits(surplusOf(q, arrival))) setShedding(q, true);
}

/**
 * {@link makeRoom} for a share of a batch over several queues: discards nothing, because the batch may be abandoned.
 * @param expired waiting jobs about to be removed @throws {ApiError} 429 `QUEUE_FULL`
 */
export function checkRoom(q: StoredQueue, arrival: Arrival, expired: Iterable<JobRow> = []): void {
  const surplus = surplusOf(q, arrival);
  if (fits(surplus) || (q.config.settings.overflow === 'drop_oldest' && !exceedsAlone(q, arrival))) return;
  if (!fits(takeWhileNeeded(surplus, expired).left)) throw queueFull(q, surplus);
}

/** Discards one turn of what exceeds the bound; the alarm takes the next. @returns whether there may be more */
export function shed(q: QueueParts, now: number): boolean {
  if (q.config.settings.overflow !== 'drop_oldest') return false;
  const surplus = surplusOf(q, { jobs: 0, bytes: 0 });
  const { turn } = q.store;
  const expired = takeWhileNeeded(surplus, expiredRows(q, now), turn.share);
  for (const row of expired.rows) expire(q, row, now);
  turn.spend({ changes: expired.rows.length });
  const most = turn.share;
  const victims = takeWhileNeeded(expired.left, oldest(q, expired, most), most);
  for (const row of victims.rows) discard(q, row, now);
  turn.spend({ changes: victims.rows.length });
  return !fits(victims.left) && victims.rows.length === most;
}

export function setShedding(q: Stored & Woken, shedding: boolean): void {
  if (shedding === q.store.depth.isShedding) return;
  q.store.depth.isShedding = shedding;
  writeMeta(q.store.sql, 'shedding', shedding || undefined);
  if (shedding) q.wake.at(0);
}

/** How full the queue is, when that is worth a warning. */
export function pressureOf(q: Stored & Configured): QueuePressure | undefined {
  const fill = fillOf(q);
  if (!fill) return undefined;
  return fill.depth >= (q.config.settings.warning_threshold ?? DEFAULT_WARNING) * fill.bound ? fill : undefined;
}

/** The nearer bound, and the queue's distance from it: in jobs, or in bytes. */
function fillOf(q: Stored & Configured): QueuePressure | undefined {
  const { max_depth, max_bytes } = q.config.settings;
  const jobs = max_depth === undefined ? undefined : { depth: q.store.depth.jobs(), bound: max_depth };
  const bytes = max_bytes === undefined ? undefined : { depth: q.store.depth.bytes(), bound: max_bytes };
  if (!jobs || !bytes) return jobs ?? bytes;
  return bytes.depth * jobs.bound > jobs.depth * bytes.bound ? bytes : jobs;
}

/** By how much the arrivals would exceed the bounds; not above 0: they fit. */
function surplusOf(q: StoredQueue, { jobs, bytes }: Arrival): Arrival {
  const { max_depth, max_bytes } = q.config.settings;
  return {
    jobs: max_depth === undefined ? 0 : q.store.depth.jobs() + jobs - max_depth,
    bytes: max_bytes === undefined ? 0 : q.store.depth.bytes() + bytes - max_bytes,
  };
}

/** @param running jobs that run: no arrival replaces them */
const exceedsAlone = ({ config: { settings } }: Configured, { jobs, bytes }: Arrival, running = 0): boolean =>
  jobs > (settings.max_depth ?? Number.POSITIVE_INFINITY) - running || bytes > (settings.max_bytes ?? bytes);

const smaller = (surplus: Arrival, arrival: Arrival): Arrival => ({
  jobs: Math.min(surplus.jobs, arrival.jobs),
  bytes: Math.min(surplus.bytes, arrival.bytes),
});

/** @param surplus what exceeds the bound */
function queueFull(q: StoredQueue, surplus: Arrival): ApiError {
  const { max_depth, max_bytes } = q.config.settings;
  const depth = q.store.depth.jobs();
  const reached = surplus.jobs > 0 ? { depth, bound: max_depth } : { depth: q.store.depth.bytes(), bound: max_bytes };
  const details = {
    queue: q.name,
    depth,
    ...(max_depth !== undefined && { bound: max_depth }),
    ...(max_bytes !== undefined && { bytes: q.store.depth.bytes(), max_bytes }),
  };
  return full('QUEUE_FULL', `Queue ${q.name}`, details, {
    'X-OJS-Queue-Depth': String(reached.depth),
    'X-OJS-Queue-Bound': String(reached.bound),
  });
}

/** 429: a bound of waiting jobs is reached. @param what begins the message */
export function full(
  code: 'QUEUE_FULL' | 'GROUP_FULL',
  what: string,
  details: NonNullable<ErrorData['details']>,
  headers: Record<string, string> = {},
): ApiError {
  const message = `${what} is full; nothing was enqueued.`;
  return new ApiError({
    ...{ status: 429, code, message, retryable: true, details },
    headers: { 'Retry-After': String(RETRY_AFTER_S), ...headers },
  });
}

type Candidate = { key: number; at: number };

const fits = ({ jobs, bytes }: Arrival): boolean => jobs <= 0 && bytes <= 0;

/** The first of these rows, up to `most`, until they make up for the surplus. @returns what is left of it */
function takeWhileNeeded(
  surplus: Arrival,
  rows: Iterable<JobRow>,
  most = MOST_FOR_ROOM,
): { rows: JobRow[]; left: Arrival } {
  const taken: JobRow[] = [];
  const left = { ...surplus };
  if (fits(left) || most <= 0) return { rows: taken, left };
  for (const row of rows) {
    taken.push(row);
    left.jobs--;
    left.bytes -= bodyBytes(row);
    if (fits(left) || taken.length >= most) break;
  }
  return { rows: taken, left };
}

function* besides(replaced: ReadonlySet<number>, rows: Iterable<JobRow>): Generator<JobRow> {
  for (const row of rows) if (!replaced.has(row.key)) yield row;
}

/**
 * The longest-waiting jobs that do not run: up to `most`, and no more than needed.
 * @param others jobs removed anyway, and the surplus left then @param replaced keys of jobs that go for another reason
 */
function* oldest(
  q: Stored,
  others: { rows: JobRow[]; left: Arrival },
  most: number,
  replaced: ReadonlySet<number> = new Set(),
): Generator<JobRow> {
  const except = new Set([...others.rows.map(({ key }) => key), ...replaced]);
  const limit = others.left.bytes > 0 ? most : Math.min(most, others.left.jobs);
  for (const { key } of waitingLongest(q, limit + except.size)) {
    const row = except.has(key) ? undefined : rowByKey(q.store, key);
    if (row) yield row;
  }
}

/**
 * Jobs that do not run and undo no other, the longest available first; delayed, retried and pending ones last. The
 * bound limits rows read, and the line is read only from where the last read ended.
 */
function waitingLongest(q: Stored, limit: number): Candidate[] {
  const running = listed(q.store.leases.active.keys());
  const read = (where: string, at: string, ...bindings: (string | number)[]) =>
    rows<Candidate>(q.store.sql, `SELECT key, ${at} AS at FROM jobs WHERE ${where} LIMIT ?`, ...bindings, limit);
  const idle = `${UNDOES_NONE} AND key NOT IN ${running.sql}`;
  const due = `priority = ? AND due_at IS NOT NULL AND ${idle} ORDER BY due_at, attempt, key`;
  const taken = Math.max(q.store.leases.head, q.store.cursors.shedUntil);
  const found = [
    ...read(
      `key > ? AND key < ${RANK_BIT} AND ${STANDS_IN_LINE} AND ${idle} ORDER BY key`,
      'enqueued_at',
      taken,
      ...running.bindings,
    ),
    ...inBlocks(q, q.store.blocks.line.after(taken, false), limit),
    ...[...q.store.priorities].flatMap((priority) => [
      ...read(due, 'due_at', priority, ...running.bindings),
      ...inBlocks(q, q.store.blocks.due.inTurn(priority, undefined, undefined, false), limit),
      ...inBlocks(q, q.store.blocks.retries.inTurn(priority, undefined, undefined, false), limit),
    ]),
  ];
  if (found.length < limit) {
    const pending = read(`state = ${STATE.pending} AND ${UNDOES_NONE} ORDER BY key`, 'created_at');
    // They come after every job that has a time.
    found.push(...pending.map(({ key, at }) => ({ key, at: at + Number.MAX_SAFE_INTEGER / 2 })));
  }
  return found.sort((a, b) => a.at - b.at || (a.key % RANK_BIT) - (b.key % RANK_BIT)).slice(0, limit);
}

function inBlocks(q: Stored, jobs: Iterable<JobRow>, limit: number): Candidate[] {
  const found: Candidate[] = [];
  for (const job of jobs) {
    if (found.length === limit) break;
    const { key, enqueued_at, due_at } = job;
    if (!q.store.leases.active.has(key) && !undoesOther(q, job)) found.push({ key, at: due_at ?? enqueued_at });
  }
  return found;
}

/** Discards a job to make room. Two rows written. @param before jobs from this key on may stay, passed over */
function discard(q: QueueParts, row: JobRow, now: number, before = Number.POSITIVE_INFINITY): void {
  const { cursors } = q.store;
  if (isInLine(row)) cursors.shedUntil = Math.max(cursors.shedUntil, Math.min(row.key, before - 1));
  drop(q, row, 'queue_full', now);
}
