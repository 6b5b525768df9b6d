/**
 * The sole writer of jobs: `insert`, `insertRun`, `move`, `remove`; `attempts.ts` for many jobs at once. Callers name
 * the move of `job/states`; illegal ones are refused. All consequences are derived here: rank, index, line, depth,
 * limits, unique keys, wake, event, workflow.
 */
import { writeMeta } from '../../durable/sql';
import { defined } from '../../job/envelope/fields';
import { RANK_BIT } from '../../job/ids';
import type { LimitPolicy } from '../../job/limits/policy';
import type { JobHistory } from '../../job/record';
import { isLegal, type Move, type Position } from '../../job/states';
import type { Active } from './active';
import { type BlockJob, rowOf } from './block';
import { countEvictable, oldestEnded } from './ended-rows';
import { heldBy, holdsGroup, priorityOf } from './groups/holder';
import { emit, type Note } from './job-events';
import { historyOf, historyText, isPlain, type JobRow, mayWaitInLine, STATE } from './job-row';
import { learn } from './limits/place';
import { MOVE, moveOf } from './moves';
import { endOf, keptUntil } from './own-retention';
import { deleteRows, writeChange, writeRow } from './own-rows';
import type { Configured, Named, Observed, QueueParts, Stored, Woken } from './parts';
import { rowByKey } from './row-lookup';
import { enters, leaves } from './row-places';
import { idOf, stateOf } from './rows';
import { undoJobOf } from './undo-job';
import { fingerprintIn, forgetRow, remember } from './unique-keys';
import { noteFailure } from './workflow-endings';

/** Without what {@link insert} decides. */
export type NewRow = Omit<JobRow, 'key' | 'state' | 'due_at' | 'ended_at' | 'limit_key' | 'holds_group' | 'group'>;

export interface Arrival {
  /** It becomes available at this time, epoch ms. */
  at: number;
  /** It waits for its activation, whatever the time. */
  pending?: boolean;
  limit?: LimitPolicy | undefined;
  /** Others of its transaction become available at the same time, at the same priority. */
  together?: boolean;
  group?: string | undefined;
  /** It has begun in another queue, where all others of its group waited for its end. */
  holds?: boolean | undefined;
}

/** What a move changes about a job. The number of its claim follows from the lease. */
export interface Change
  extends Partial<Pick<JobRow, 'state' | 'priority' | 'due_at' | 'enqueued_at' | 'expires_at' | 'ended_at' | 'body'>> {
  attempt?: number;
  history?: JobHistory;
  /** It becomes available at this time (epoch ms); it takes its place in the due index. */
  availableAt?: number;
  /** Others of its chunk go before it: it holds its group up no longer. */
  isBehind?: boolean;
  /** The group that it holds up, where no move decides that. */
  holds?: string | null;
}

/** Thrown by a defect only: operations check their moves before they make them. */
export class IllegalMove extends Error {
  constructor(move: Move, from: Position, to: Position) {
    super(`The move ${move} does not lead from ${from} to ${to}.`);
  }
}

/** Columns that define the position of a row. */
const PLACE = ['state', 'due_at', 'priority'] as const;

/** Moves that keep the number of open jobs, though their rows say otherwise for a while. */
const KEEP_DEPTH: ReadonlySet<Move> = new Set<Move>(['lock', 'unlock', 'setAside', 'commit']);

/** Moves that end an attempt without using it up. */
const UNUSED: ReadonlySet<Move> = new Set<Move>(['undoClaim', 'snooze']);

export const positionOf = (
  row: Pick<JobRow, 'state' | 'due_at' | 'attempt'>,
  isActive: boolean,
  now: number,
): Position => (row.state === STATE.held ? 'held' : stateOf(row, isActive, now));

/** @throws {IllegalMove} when the table does not list the move */
export function check(move: Move, from: Position, to: Position): void {
  if (!isLegal(move, from, to)) throw new IllegalMove(move, from, to);
}

const isOpen = (row: Pick<JobRow, 'ended_at'>): boolean => row.ended_at === null;

/**
 * Writes a new job under the next number. Immediate default-priority jobs without expiry, and jobs that arrive
 * together, join blocks; others take two rows. A chosen id takes one more.
 */
export function insert(
  q: Named & Stored & Observed & Woken,
  move: 'enqueue' | 'adopt' | 'prepare',
  job: NewRow,
  arrival: Arrival,
  now: number,
  note?: Note,
): JobRow {
  q.store.changes++;
  const { at, pending = false, limit, together = false, group, holds = false } = arrival;
  const priority = priorityOf(q, { ...job, ...(group !== undefined && { group }) });
  const inLine = move === 'enqueue' && !pending && mayWaitInLine(limit) && at <= now && priority === 0;
  const sequence = q.store.nextSequence++;
  const row: JobRow = {
    ...job,
    priority,
    key: inLine ? sequence : RANK_BIT + sequence,
    state: move === 'prepare' ? STATE.held : pending ? STATE.pending : STATE.waiting,
    due_at: null,
    ended_at: null,
    limit_key: limit?.key ?? null,
    holds_group: null,
    ...(group !== undefined && { group }),
  };
  if (holds || move === 'prepare') row.holds_group = heldBy(q, row);
  if (limit && move !== 'prepare') learn(q, limit, now);
  if (!inLine && row.state === STATE.waiting) row.due_at = at;
  check(move, 'none', positionOf(row, false, now));
  const isTogether = together && move === 'enqueue' && mayWaitInLine(limit) && row.due_at !== null;
  if ((inLine || isTogether) && isPlain(row) && row.created_at === now)
    q.store.blocks.add({ ...row, at: now, ...(group !== undefined && { group }) });
  else writeRow(q.store.sql, row);
  q.store.written.spend(row.body.length);
  q.store.gates.changed(row.key, null, row.holds_group);
  q.store.depth.added(row);
  q.store.tally.entered(row);
  if (row.alias !== null) {
    const verb = move === 'adopt' ? 'INSERT OR REPLACE' : 'INSERT';
    q.store.sql.exec(`${verb} INTO aliases (id, key) VALUES (?, ?)`, row.alias, row.key).toArray();
  }
  rememberFingerprint(q, row);
  enters(q, row, now);
  if (move !== 'prepare') q.observed.meters.enqueued(row.type, 1, now);
  emit(q, { move, before: row, after: row, now, ...note });
  return row;
}

/** Writes ordinary immediate jobs of one type under consecutive numbers: one row for many. */
export function insertRun(
  q: Named & Stored & Observed & Woken,
  type: string,
  jobs: readonly { body: string; group?: string; limit?: LimitPolicy }[],
  now: number,
): JobRow[] {
  q.store.changes++;
  const first = q.store.nextSequence;
  q.store.nextSequence += jobs.length;
  const rows = jobs.map(({ body, group, limit }, index) => {
    const job: BlockJob = { key: first + index, type, at: now, body, alias: null, priority: 0, due_at: null };
    if (group !== undefined) job.group = group;
    if (limit) {
      job.limit_key = limit.key;
      learn(q, limit, now);
    }
    q.store.blocks.add(job);
    q.store.written.spend(body.length);
    const row = rowOf(job);
    q.store.depth.added(row);
    emit(q, { move: 'enqueue', before: row, after: row, now });
    return row;
  });
  q.observed.meters.enqueued(type, rows.length, now);
  q.store.counts.lineChanged(rows.length);
  q.wake.arrived(
    now,
    type,
    jobs.map(({ body }) => body),
  );
  return rows;
}

/**
 * Moves a job. One row, one more where it enters an index; a job of a block moves out. @returns the row now
 * @throws {IllegalMove} when the table does not list the move; then nothing has changed
 */
export function move(q: QueueParts, row: JobRow, kind: Move, change: Change, now: number, note?: Note): JobRow {
  const active = q.store.leases.active.get(row.key);
  const { availableAt, history: changed, isBehind = false, holds, ...columns } = change;
  let history = active ? afterAttempt(q, row, active, kind, changed) : changed;
  const after: JobRow = { ...row, ...columns, ...(history && { history: historyText(history) }) };
  if (active) {
    after.claims = active.claim;
    if (!UNUSED.has(kind)) after.attempt = active.attempt;
  }
  const ends = isOpen(row) && row.state !== STATE.held && endOf(after.state) !== undefined;
  if (ends) Object.assign(after, { due_at: null, ended_at: now });
  if (availableAt !== undefined && after.state === STATE.waiting) after.due_at = availableAt;
  check(kind, positionOf(row, active !== undefined, now), positionOf(after, false, now));
  const end = ends ? endOf(after.state) : undefined;
  const undo_job = end && insertUndo(q, row, end, history ?? historyOf(row), now);
  if (undo_job !== undefined) {
    history = { ...(history ?? historyOf(row)), undo_job };
    after.history = historyText(history);
  }
  if (after.state === STATE.waiting) after.priority = priorityOf(q, after);
  const isInChunk = active?.chunk !== undefined && availableAt === undefined;
  if (!q.store.gates.isStrict) after.holds_group = null;
  else after.holds_group = holds === undefined ? holdsGroup(kind, row, after, { now, isInChunk, isBehind }) : holds;
  q.store.changes++;
  const staysPut = !active && availableAt === undefined && PLACE.every((column) => row[column] === after[column]);
  if (!staysPut) leaves(q, row, active);
  const keepUntil = end && keptUntil(q, row, end, now);
  const isAgain = active !== undefined && after.state === STATE.waiting && waitsWithOthers(q, row, after);
  const { meters } = q.observed;
  const isFound = meters.moved(kind, row, after, active, now);
  if (!isAgain) {
    const metersText = isFound ? meters.textForRow(row.key) : undefined;
    const beside = {
      ...(end && { keep_until: keepUntil ?? null }),
      ...(metersText !== undefined && { meters: metersText }),
    };
    const isInBlock = q.store.blocks.holds(row.key);
    if (writeChange(q.store.sql, row, after, beside, isInBlock) && isInBlock) q.store.blocks.leave(row.key);
  }
  q.store.gates.changed(row.key, row.holds_group, after.holds_group);
  q.store.tally.left(row);
  q.store.tally.entered(after);
  if (!KEEP_DEPTH.has(kind) && (isOpen(row) !== isOpen(after) || row.body !== after.body)) {
    if (isOpen(row)) q.store.depth.gone(row);
    if (isOpen(after)) q.store.depth.added(after);
  }
  if (!staysPut || row.expires_at !== after.expires_at) enters(q, after, now, staysPut);
  if (staysPut && row.body !== after.body) for (const scan of q.store.cursors.chunks.values()) scan.edit(row.key);
  if (end) {
    q.wake.at(keepUntil ?? now + q.config.retentionMs(end));
    noteFailure(q, after, end === 'cancelled', history ?? historyOf(after), now);
    if (end === 'dead_letter' && evictDeadLetters(q, EVICTED_FOR_ONE, now)) setEvicting(q, true);
  }
  if (kind === 'redrive') rememberFingerprint(q, after);
  emit(q, { move: kind, before: row, after, history, active, now, ...note });
  return after;
}

/** Makes the undo job of a job that ends, whatever the bounds of its queue. One row. @returns its id, if any */
function insertUndo(
  q: QueueParts,
  ending: JobRow,
  end: NonNullable<ReturnType<typeof endOf>>,
  history: JobHistory,
  now: number,
): string | undefined {
  const undo = undoJobOf(q, ending, end, history);
  if (!undo) return undefined;
  const { group, ...job } = undo;
  const fresh = {
    alias: null,
    attempt: 0,
    claims: 0,
    created_at: now,
    enqueued_at: now,
    expires_at: null,
    history: null,
  };
  return idOf(q.route, insert(q, 'enqueue', { ...job, ...fresh }, { at: now, group }, now));
}

/** The history after an attempt, with its log. It costs nothing: the row is written anyway. */
function afterAttempt(
  q: Observed,
  row: JobRow,
  active: Active,
  kind: Move,
  history: JobHistory | undefined,
): JobHistory | undefined {
  const isAwake = kind !== 'snooze' && row.history?.includes('"snoozed"') === true;
  if (q.observed.logs.of(active).length === 0 && !isAwake) return history;
  q.observed.logs.ends(active);
  const { snoozed, ...before } = history ?? historyOf(row);
  return {
    ...before,
    ...defined({ snoozed: isAwake ? undefined : snoozed, log: q.observed.logs.with(before.log, active) }),
  };
}

/** After an attempt a job waits with others of the transaction, unless special; its own row is deleted: one row. */
function waitsWithOthers({ store: { sql, blocks } }: Stored, before: JobRow, after: JobRow): boolean {
  if (!blocks.retries.takes(after)) return false;
  if (!blocks.holds(before.key)) deleteRows(sql, [before.key]);
  else blocks.leave(before.key);
  blocks.retries.add(after);
  return true;
}

/** Registers the job's fingerprint for later conflicts. One row written for a unique job that is new. */
function rememberFingerprint(q: Stored, row: Pick<JobRow, 'key' | 'body'>): void {
  const fingerprint = fingerprintIn(row);
  if (fingerprint !== undefined) remember(q.store.sql, fingerprint, row.key);
}

/** Dead letters removed when a new one comes: usually one. The background feature removes the rest. */
const EVICTED_FOR_ONE = 2;

/** Removes the oldest dead letters beyond the bound, but no moving or everlasting ones. @returns are more left? */
export function evictDeadLetters(q: Named & Stored & Configured & Observed, limit: number, now: number): boolean {
  const { maxDeadLetters } = q.config;
  const dead = q.store.counts.countDead();
  if (dead <= maxDeadLetters) return false;
  const surplus = countEvictable(q.store.sql, dead, maxDeadLetters + limit + 1, now) - maxDeadLetters;
  if (surplus <= 0) return false;
  const moving = q.store.outbox.has(MOVE) ? q.store.outbox.count(MOVE) : 0;
  const wanted = Math.min(surplus, limit);
  let evicted = 0;
  for (const key of oldestEnded(q.store.sql, STATE.dead, wanted + moving, now)) {
    const row = moveOf(q.store.outbox, key) ? undefined : rowByKey(q.store, key);
    if (!row) continue;
    remove(q, row, 'remove', now);
    if (++evicted === wanted) break;
  }
  q.store.turn.spend({ changes: evicted });
  if (evicted > 0)
    q.observed.events.add('queue.dead_letters_evicted', q.name, now, { evicted, max_count: maxDeadLetters });
  return evicted === wanted && surplus > evicted;
}

/** Notes whether dead letters are left to be removed in turns. One row written when that changes. */
export function setEvicting(q: Stored & Woken, evicting: boolean): void {
  if (evicting === q.store.evicting) return;
  q.store.evicting = evicting;
  writeMeta(q.store.sql, 'evicting', evicting || undefined);
  if (evicting) q.wake.at(0);
}

/** Deletes a job with its other rows: one row (for jobs of a block together), and those. Moving dead letters stay. */
export function remove(
  q: Named & Stored & Observed,
  row: JobRow,
  kind: 'remove' | 'purge' | 'depart' | 'abort',
  now: number,
  note?: Note,
): void {
  if (kind === 'remove' && moveOf(q.store.outbox, row.key)) return;
  const active = q.store.leases.active.get(row.key);
  check(kind, positionOf(row, active !== undefined, now), 'gone');
  q.store.changes++;
  if (active) q.observed.logs.ends(active);
  q.observed.meters.moved(kind, row, row, active, now);
  leaves(q, row, active);
  if (isOpen(row)) q.store.depth.gone(row);
  q.store.recordSequence(row.key);
  if (!q.store.blocks.holds(row.key)) deleteRows(q.store.sql, [row.key]);
  q.store.blocks.vanish([row.key]);
  q.store.gates.changed(row.key, row.holds_group, null);
  q.store.tally.left(row);
  q.store.progress.remove(row.key);
  if (kind === 'purge') noteFailure(q, row, false, note?.reason === undefined ? {} : { reason: note.reason }, now);
  q.store.checkpoints.remove(row.key);
  q.store.streams.remove(row.key);
  forgetIdentity(q, row);
  emit(q, { move: kind, before: row, after: row, active, now, ...note });
}

/** Nothing of the job is kept: its id and its fingerprint are free. */
export function forgetIdentity(q: Stored, row: JobRow): void {
  if (row.alias !== null) q.store.sql.exec('DELETE FROM aliases WHERE id = ?', row.alias).toArray();
  forgetRow(q.store.sql, row);
}
