import { defined } from '../../job/envelope/fields';
import { type Active, pushedTimeoutMs, ranBy } from './active';
import { emitCompleted, emitStarted } from './job-events';
import { bodyOf, groupOfRow, historyOf, type JobRow } from './job-row';
import { check, forgetIdentity, positionOf } from './jobs';
import { keptUntil } from './own-retention';
import { deleteRows } from './own-rows';
import type { Named, Observed, QueueParts, Stored, Woken } from './parts';
import { leaves } from './row-places';
import { noteCompletion } from './workflow-endings';

/** Grants one lease to these jobs, which run from now on. One row written for all of them. */
export function lease(
  q: Named & Stored & Observed & Woken,
  claims: readonly { row: JobRow; entry: Omit<Active, 'leaseId'> }[],
  now: number,
): Active[] {
  for (const { row } of claims) check('claim', positionOf(row, q.store.leases.active.has(row.key), now), 'active');
  q.store.changes++;
  for (const { row } of claims) if (row.claims === 0) q.observed.meters.started(row.type, enqueuedAt(row, now), now);
  q.store.leases.grant(
    claims.map(({ entry }) => entry),
    { head: q.store.cursors.head(), nextSequence: q.store.nextSequence },
  );
  q.wake.at(q.store.leases.earliest);
  return claims.map(({ row }) => {
    const active = q.store.leases.active.get(row.key) as Active;
    if (!active.indexed) q.store.counts.lineChanged(-1);
    emitStarted(q, row, active, now);
    return active;
  });
}

export interface EndedAttempt {
  /** Epoch ms. */
  startedAt: number;
  /** Attempt number, from 1. */
  number: number;
  claim: number;
  /** Execution limit in ms, when it was pushed. */
  pushedTimeoutMs?: number;
  by?: { worker_id?: string; target?: string };
}

export function runningAttempt(active: Active): EndedAttempt {
  const { startedAt, attempt: number, claim } = active;
  return { startedAt, number, claim, by: ranBy(active, {}), ...defined({ pushedTimeoutMs: pushedTimeoutMs(active) }) };
}

/** A job whose attempt succeeded. `result` is JSON text. */
export interface Completion {
  row: JobRow;
  attempt: EndedAttempt;
  result: string | undefined;
}

/** Completes jobs; those with retention join archive chunks. Writes a share of a chunk, and deletes their rows. */
export function complete(q: QueueParts, done: readonly Completion[], now: number): void {
  const completions = new Completions(q, now);
  for (const completion of done) completions.add(completion);
  completions.end();
}

/** Completes jobs one by one, writing rows together. Do not look for them before {@link Completions.end}. */
export class Completions {
  private own: number[] = [];
  private forgotten: number[] = [];

  /** @param now epoch ms */
  constructor(
    private readonly q: QueueParts,
    private readonly now: number,
  ) {}

  add(completion: Completion): void {
    const { q } = this;
    const { key } = completion.row;
    if (!q.store.blocks.holds(key)) this.own.push(key);
    if (!archive(q, completion, this.now)) this.forgotten.push(key);
    q.store.blocks.completed(key, this.now);
  }

  end(): void {
    const { sql, blocks } = this.q.store;
    const { own, forgotten } = this;
    deleteRows(sql, own);
    blocks.vanish(forgotten);
    this.own = [];
    this.forgotten = [];
  }
}

/** @returns whether the job is kept */
function archive(q: QueueParts, { row, attempt, result }: Completion, now: number): boolean {
  const history = historyOf(row);
  const active = q.store.leases.active.get(row.key);
  check('complete', positionOf(row, active !== undefined, now), 'completed');
  q.store.changes++;
  leaves(q, row, active);
  q.store.depth.gone(row);
  q.store.gates.changed(row.key, row.holds_group, null);
  q.store.tally.left(row);
  q.store.recordSequence(row.key);
  const progress = q.store.progress.read(row.key)?.reported;
  if (progress) q.store.progress.remove(row.key);
  const log = q.observed.logs.with(history.log, active);
  if (active) q.observed.logs.ends(active);
  noteCompletion(q, row, result, now);
  const checkpointed = q.store.checkpoints.sizeOf(row.key) > 0;
  const own = keptUntil(q, row, 'completed', now);
  const until = own ?? now + q.config.retentionMs('completed');
  if (until > now) {
    const { startedAt, pushedTimeoutMs: push, by } = attempt;
    q.store.archive.add(
      {
        k: row.key,
        a: row.alias ?? undefined,
        t: row.type,
        p: row.priority,
        n: attempt.number,
        c: attempt.claim,
        at: [row.created_at, enqueuedAt(row, startedAt), startedAt, now],
        f: history.first_started_at,
        e: history.errors,
        push,
        w: by?.worker_id,
        g: by?.target,
        pg: progress,
        cp: checkpointed ? 1 : undefined,
        os: q.store.streams.has(row.key) ? 1 : undefined,
        l: log,
      },
      // The claim found the body readable; a later success checks again.
      active ? row.body : JSON.stringify(bodyOf(row)),
      result,
      own,
    );
    q.wake.at(until);
  } else {
    q.store.checkpoints.remove(row.key);
    q.store.streams.remove(row.key);
    forgetIdentity(q, row);
  }
  q.observed.meters.completed(row.type, attempt.startedAt, now);
  emitCompleted(q, row, attempt, active ? active.group : groupOfRow(row), now);
  return until > now;
}

const enqueuedAt = (row: JobRow, startedAt: number): number =>
  row.due_at !== null ? Math.min(Math.max(row.enqueued_at, row.due_at), startedAt) : row.enqueued_at;
