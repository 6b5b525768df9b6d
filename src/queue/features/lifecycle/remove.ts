/**
 * Deletes a queue, safely cut off anywhere:
 *
 *     refuse new jobs (durable) ──▶ remove the jobs ──▶ leave the directory ──▶ empty the object
 *
 * Until the last step the object knows of its deletion. Jobs that move are first written in the target under the
 * step's name, which it remembers, and then deleted here: a repeated step takes nothing twice. Meanwhile they cannot
 * run here.
 */
import { STANDBY_MS } from '../../../durable/outbox';
import { derived, type MessageKind } from '../../../durable/outbox-relay';
import { listed, rows, writeMeta } from '../../../durable/sql';
import { waitAtMost } from '../../../durable/wait';
import { conflict, invalidRequest, unwrap } from '../../../job/errors';
import { RANK_BIT, sequenceOf } from '../../../job/ids';
import { first } from '../../../job/size';
import { JOB_STATES, TERMINAL_STATES } from '../../../job/states';
import type { MovedJob, RemovalRequest, RemovalView } from '../../../rpc/operations';
import type { Feature, Host } from '../../feature';
import { moveReserved } from '../../jobs/move-reserved';
import { RUN } from '../../jobs/runs';
import { stats } from '../../read/stats';
import { SHARE } from '../../store/batches';
import type { Moving, Removal } from '../../store/configuration';
import { type JobRow, STATE } from '../../store/job-row';
import { move, remove } from '../../store/jobs';
import type { Configured, Named, Observed, QueueParts, Stored, StoredQueue, Woken } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { idOf, placeOf } from '../../store/rows';

/** Jobs moved in one step, and characters of their bodies. */
const STEP = 100;
const STEP_CHARS = 8 * 1024 * 1024;

/**
 * Begins to delete the queue. Idempotent.
 * @throws {ApiError} 409 when unfinished jobs shall neither be discarded nor moved, or schedules still enqueue here
 */
export function beginRemoval(q: StoredQueue & Woken, request: RemovalRequest, now: number): RemovalView {
  if (q.config.removal) return viewRemoval(q.config.removal);
  if (request.strategy === 'move' && (request.target_queue === undefined || request.target_queue === q.name)) {
    throw invalidRequest('target_queue', 'target_queue must name another queue.');
  }
  const schedules = q.store.crons.summaries().length;
  if (schedules > 0) {
    throw conflict(`Queue ${q.name} has ${schedules} cron entries; delete them or move them to another queue first.`, {
      queue: q.name,
      cron_entries: schedules,
    });
  }
  const open = openJobs(q, now);
  if (request.strategy === 'reject' && open > 0) {
    throw conflict(`Queue ${q.name} has ${open} jobs that have not ended.`, { queue: q.name, jobs: open });
  }
  q.config.removal = { ...request, at: now, jobs_affected: open };
  q.config.paused = true;
  writeMeta(q.store.sql, 'removal', q.config.removal);
  q.wake.at(now + STANDBY_MS);
  return viewRemoval(q.config.removal);
}

const viewRemoval = ({ strategy, jobs_affected }: Removal): RemovalView => ({
  strategy,
  jobs_affected,
  state: 'deleting',
});

function openJobs(q: StoredQueue, now: number): number {
  const { counts } = stats(q, now);
  const ended: readonly string[] = TERMINAL_STATES;
  const open = JOB_STATES.filter((state) => !ended.includes(state)).reduce((sum, state) => sum + counts[state], 0);
  return open + q.store.outbox.count(SHARE);
}

/** Can a step be made now? What a deletion waits for ends with a commit of this queue. */
function canGoOn(q: Stored & Configured): boolean {
  const { strategy, moving } = q.config.removal ?? {};
  if (strategy === 'discard' && nextToDiscard(q, 1).length > 0) return true;
  return readyToEmpty(q) || (strategy === 'move' && (moving !== undefined || canSetAside(q)));
}

const canSetAside = (q: Stored): boolean => !isHeldUp(q) && nextToMove(q).length > 0;

// An undecided batch may have promised to replace one. A job that waits for others knows them once these have begun.
const isHeldUp = ({ store: { outbox } }: Stored) => outbox.has(SHARE) || outbox.has(RUN);

/** Can the object be emptied now? No other object may still wait for a message from it. */
function readyToEmpty(q: Stored & Configured): boolean {
  if (!q.store.outbox.isEmpty) return false;
  return (
    q.config.removal?.strategy !== 'move' ||
    (q.store.leases.active.size === 0 && nextToMove(q).length === 0 && !q.config.removal.moving)
  );
}

/** Discards the next jobs that have not ended. @returns whether there are none left */
function discardNext(q: Named & Stored & Observed, now: number): boolean {
  const { turn } = q.store;
  for (const { key } of turn.draw(nextToDiscard(q, turn.left))) {
    const row = rowByKey(q.store, key);
    if (row) remove(q, row, 'purge', now, { reason: 'queue_deleted' });
  }
  return nextToDiscard(q, 1).length === 0;
}

function nextToDiscard(q: Stored, limit: number): { key: number }[] {
  const open = `SELECT key FROM jobs WHERE state IN (${STATE.waiting}, ${STATE.pending}) LIMIT ?`;
  const next = rows<{ key: number }>(q.store.sql, open, limit);
  return [...next, ...first(q.store.blocks.all(0, false), limit - next.length)];
}

/** The next jobs to move: any that waits and does not run. */
function nextToMove(q: Stored): Pick<JobRow, 'key' | 'state'>[] {
  const running = listed(q.store.leases.active.keys());
  const read = (where: string) =>
    rows<Pick<JobRow, 'key' | 'state'> & { size: number }>(
      q.store.sql,
      `SELECT key, state, length(body) AS size FROM jobs WHERE ${where}
       AND state IN (${STATE.waiting}, ${STATE.pending}) AND key NOT IN ${running.sql} ORDER BY key LIMIT ${STEP}`,
      ...running.bindings,
    );
  // The jobs that others of their groups wait for must be there first.
  const holders = q.store.gates.isStrict ? read('holds_group IS NOT NULL') : [];
  const next =
    holders.length > 0
      ? holders
      : inOrder([...read(`key < ${RANK_BIT}`), ...read(`key >= ${RANK_BIT}`), ...first(waitingInBlocks(q), STEP)]);
  const chosen: Pick<JobRow, 'key' | 'state'>[] = [];
  let chars = 0;
  for (const { key, state, size } of next) {
    chars += size + q.store.checkpoints.sizeOf(key, Number.POSITIVE_INFINITY);
    if (chosen.length > 0 && chars > STEP_CHARS) break;
    chosen.push({ key, state });
  }
  return chosen;
}

/** The first of these in the order of enqueue: in the target, jobs of one moment have the order in which they come. */
const inOrder = <T extends Pick<JobRow, 'key'>>(rows: T[]): T[] =>
  rows.sort((a, b) => sequenceOf(a.key) - sequenceOf(b.key)).slice(0, STEP);

function* waitingInBlocks({ store: { blocks, leases } }: Stored) {
  for (const { key, state, body } of blocks.all()) {
    if (!leases.active.has(key)) yield { key, state, size: body.length };
  }
}

/** Sets the next jobs aside, those of a step that was cut off first: nothing happens to them on their way. */
function setAside(q: QueueParts, now: number): Moving | undefined {
  const removal = q.config.removal as Removal;
  if (removal.moving) return removal.moving;
  if (isHeldUp(q)) return undefined;
  const rows = nextToMove(q);
  if (rows.length === 0) return undefined;
  removal.steps = (removal.steps ?? 0) + 1;
  removal.moving = {
    name: `${q.route}:${removal.at}:${removal.steps}`,
    keys: rows.map(({ key }) => key),
    pending: rows.flatMap(({ key, state }) => (state === STATE.pending ? [key] : [])),
  };
  writeMeta(q.store.sql, 'removal', removal);
  for (const { key } of rows) move(q, rowByKey(q.store, key) as JobRow, 'setAside', { state: STATE.held }, now);
  return removal.moving;
}

function packed(q: Named & Stored, moving: Moving): MovedJob[] {
  const pending = new Set(moving.pending);
  return moving.keys.flatMap((key) => {
    const row = rowByKey(q.store, key);
    if (!row) return [];
    const checkpoint = q.store.checkpoints.copy(key);
    const { type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history } = row;
    return {
      id: idOf(q.route, row),
      pending: pending.has(key),
      ...{ type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history },
      due_at: placeOf(row),
      ...(row.holds_group !== null && { holds: true as const }),
      ...(checkpoint && { checkpoint }),
    };
  });
}

function dropMoved(q: StoredQueue & Observed, now: number): void {
  const removal = q.config.removal as Removal;
  for (const key of removal.moving?.keys ?? []) {
    const row = rowByKey(q.store, key);
    if (row) remove(q, row, 'depart', now);
  }
  delete removal.moving;
  writeMeta(q.store.sql, 'removal', removal);
}

export class QueueRemoval implements Feature {
  /** The next step of the deletion, to the queue itself, derived from its record. */
  private readonly next: MessageKind;
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    const { q } = host;
    this.next = derived({
      kind: 'deletion of queue',
      open: () => (q.config.removal && canGoOn(q) ? [q.name] : []),
      deliver: () => this.step(),
    });
    this.messages = [this.next];
  }

  /** Deletes the queue. Answers when it is gone, is blocked, or after `waitMs`. @returns whether it is gone */
  async removed(waitMs: number): Promise<boolean> {
    const { q, relay, after } = this.host;
    const steps = relay()
      .deliver(this.next, q.name)
      .then(
        () => relay().idle(this.next),
        () => undefined,
      );
    await waitAtMost(after, waitMs, steps);
    return !q.config.removal;
  }

  private async step(): Promise<void> {
    const { q, write, others } = this.host;
    const { strategy, target_queue: target } = q.config.removal ?? {};
    if (strategy === 'move' && target !== undefined) {
      const moving = await write((now) => setAside(q, now));
      if (moving) return this.move(moving, target);
    }
    if (strategy === 'discard' && !(await write((now) => discardNext(q, now)))) {
      // Requests that came meanwhile go first.
      await scheduler.wait(0);
      return;
    }
    if (!q.config.removal || !readyToEmpty(q)) return;
    await others.destroy(q.config.removal.at);
    delete q.config.removal;
  }

  private async move(moving: Moving, target: string): Promise<void> {
    const { q, write, others } = this.host;
    const jobs = packed(q, moving);
    await others.noteIds(
      target,
      jobs.map(({ id }) => id),
    );
    await moveReserved(q, jobs, target, others.reservations, async (ticket) => {
      unwrap(await others.queue(target).adopt(moving.name, jobs, ticket));
      await write((now) => dropMoved(q, now));
    });
  }
}
