/**
 * Batches over several queues, all or nothing:
 *
 *     prepare in every queue ──▶ decide in one of them (the coordinator) ──▶ commit in the others
 *
 * Shares are new jobs (`enqueue.ts`) or actions, whose preparing checks and locks the jobs. The decision is an outbox
 * message, written in the transaction that commits the coordinator's own share. If it replaces jobs of other queues,
 * these end first, and then all queues commit: no job runs beside the one that it replaces. If the driver
 * (`src/across/all-or-nothing.ts`) dies, a share asks the coordinator after a while, which then abandons an undecided
 * batch.
 */
import { cancelAt, MAX_REACHED } from '../../../across/locate';
import { recallAnswer, rememberAnswer } from '../../../durable/inbox';
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import { inParallel } from '../../../durable/parallel';
import { waitAtMost } from '../../../durable/wait';
import { ApiError, unavailable, unwrap } from '../../../job/errors';
import type { IdPlace } from '../../../rpc/ids';
import type { BulkAction, BulkAnswer } from '../../../rpc/operations';
import type { RememberedAnswer } from '../../../rpc/receipts';
import type { Feature, Host } from '../../feature';
import { isBounded, setShedding, shed } from '../../jobs/backpressure';
import { actOnRow, checkItem } from '../../jobs/bulk-act';
import { lockRow, refuseLocked, unlockRow } from '../../jobs/lock';
import { giveUp, refuseGivenUp, tookTooLong } from '../../jobs/may-enqueue';
import { find } from '../../read/find';
import { deleteArchived } from '../../store/archive';
import {
  DECISION,
  isReplaced,
  type PreparedAction,
  readDecision,
  readShare,
  SHARE,
  type Untold,
  writeDecision,
  writeShare,
} from '../../store/batches';
import type { Named, QueueParts, Stored } from '../../store/parts';
import { abortJobs, commitJobs } from './enqueue';

/**
 * The coordinator's decision, with its own share committed. If it replaces jobs, in any queue, these are cancelled
 * first, and then all shares are committed. @throws {ApiError} 503 when it was abandoned meanwhile
 */
export function decideBatch<T>(
  q: QueueParts,
  batch: string,
  others: readonly string[],
  now: number,
  answer?: RememberedAnswer<T>,
  replaced: readonly IdPlace[] = [],
): T | null {
  if (readDecision(q, batch)) return null;
  const earlier = answer && recallAnswer<T>(q.store.inbox, answer.idempotency, now);
  if (earlier) return earlier;
  refuseGivenUp(q, batch, now);
  if (!readShare(q, batch)) throw tookTooLong();
  const isLater = replaced.length > 0;
  const untold = isLater ? [...replaced, q.name, ...others] : others;
  if (untold.length > 0) writeDecision(q, batch, untold, now);
  if (!isLater) commitBatch(q, batch, now);
  if (answer) rememberAnswer(q.store.inbox, answer.idempotency, answer.receipt, now);
  return null;
}

/** Carries this queue's share out. Idempotent. */
export function commitBatch(q: QueueParts, batch: string, now: number): void {
  const share = readShare(q, batch);
  if (!share) return;
  commitJobs(q, share.jobs, now);
  if (share.act) commitAction(q, share.act, now);
  q.store.outbox.withdraw(SHARE, batch);
  if (isBounded(q) && shed(q, now)) setShedding(q, true);
}

/** Drops this queue's share: everything is as it was. Idempotent; without effect once the batch is committed. */
export function abortBatch(q: QueueParts, batch: string, now: number): void {
  const share = readShare(q, batch);
  if (!share) return;
  abortJobs(q, share.jobs, now);
  if (share.act) abortAction(q, share.act, now);
  q.store.outbox.withdraw(SHARE, batch);
}

/**
 * The decision. Asking decides: an open batch is abandoned, so that no queue waits for ever.
 * @throws {ApiError} 503 while jobs that it replaces have not ended: then no queue may commit
 */
export function decisionOf(q: QueueParts, batch: string, now: number): 'committed' | 'aborted' {
  if (settledDecision(q, batch)) return 'committed';
  giveUp(q, batch, now);
  abortBatch(q, batch, now);
  return 'aborted';
}

/** The decision until it is delivered. @throws {ApiError} 503 while jobs that it replaces have not ended */
export function settledDecision(q: Stored, batch: string): Untold | undefined {
  const decision = readDecision(q, batch);
  if (!decision?.some(isReplaced)) return decision;
  throw unavailable('The job that is replaced has not ended yet. The new one is enqueued as soon as it has.');
}

/** The caller of a decision waits at most this long for the other queues to commit, ms. */
const TOLD_WITHIN_MS = 5_000;

const idsOf = (jobs: readonly IdPlace[]) => jobs.map(({ id }) => id);

/** They stand before the queues. */
const nextReplaced = (untold: Untold) => untold.slice(0, MAX_REACHED).filter(isReplaced);

/** Those under way: decisions for other queues, and unfinished shares. */
export class Batches implements Feature {
  private readonly decisions: MessageKind;
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    const { q, write, others } = host;
    this.decisions = posted(q.store.outbox, write, {
      kind: DECISION,
      send: async (batch, [{ data }], taken) => {
        let untold = JSON.parse(data) as Untold;
        for (let some = nextReplaced(untold); some.length > 0; some = nextReplaced(untold)) {
          const at = Map.groupBy(some, ({ queue }) => queue);
          await inParallel([...at], ([queue, jobs]) => cancelAt(others, queue, idsOf(jobs)));
          untold = untold.slice(some.length);
          if (untold.some(isReplaced)) await write((now) => writeDecision(q, batch, untold, now));
        }
        const queues = untold.filter((one) => typeof one === 'string');
        const told = await Promise.allSettled(
          queues.map(async (queue) => unwrap(await others.queue(queue).commitBatch(batch))),
        );
        const failure = told.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
        if (!failure) return taken(() => undefined);
        const pending = queues.filter((_, at) => told[at]?.status === 'rejected');
        if (pending.length < untold.length) await write((now) => writeDecision(q, batch, pending, now));
        throw failure.reason;
      },
    });
    const shares = posted(q.store.outbox, write, {
      kind: SHARE,
      // Finishing the batch withdraws the outbox message.
      send: async (batch) => {
        const share = readShare(q, batch);
        if (!share) return;
        const decision = unwrap(await others.queue(share.coordinator).batchDecision(batch));
        await write((now) => (decision === 'committed' ? commitBatch(q, batch, now) : abortBatch(q, batch, now)));
      },
    });
    this.messages = [this.decisions, shares];
  }

  /** Waits a moment until the other queues have received a decision. Never rejects: the outbox relay continues. */
  async told(batch: string): Promise<void> {
    const delivered = this.host.relay().deliver(this.decisions, batch);
    await waitAtMost(
      this.host.after,
      TOLD_WITHIN_MS,
      delivered.catch(() => undefined),
    );
  }
}

/**
 * Checks this queue's share and locks its jobs, two rows each. If one cannot be acted on, nothing is written and
 * `applied` is false. Running jobs are refused: a report cannot wait for other queues. Completed ones need no lock:
 * they can only be removed. The commit unlocks and acts in one transaction.
 * @param request ids, each named once @throws {ApiError} 503 while another operation has one
 */
export function prepareBulk(
  q: QueueParts,
  batch: string,
  coordinator: string,
  request: { action: BulkAction; ids: readonly string[] },
  now: number,
): BulkAnswer {
  refuseGivenUp(q, batch, now);
  const { action, ids } = request;
  for (const id of ids) refuseLocked(q, id);
  const items = ids.map((id) => {
    const item = checkItem(q, action, id, now);
    const runs = item.status === 'done' && isRunning(q, id);
    return runs ? { job_id: id, status: 'skipped' as const, reason: 'active' } : item;
  });
  if (items.some(({ status }) => status !== 'done')) return { items, applied: false };
  const act: PreparedAction = { action, locked: [], archived: [] };
  for (const id of ids) {
    const found = find(q, id);
    if (found?.row) act.locked.push(lockRow(q, found.row, now));
    else if (found) act.archived.push(found.archived.k);
  }
  writeShare(q, batch, { coordinator, jobs: [], act }, now);
  return { items, applied: true };
}

function isRunning(q: Named & Stored, id: string): boolean {
  const row = find(q, id)?.row;
  return row !== undefined && q.store.leases.active.has(row.key);
}

function commitAction(q: QueueParts, { action, locked, archived }: PreparedAction, now: number): void {
  for (const { key } of locked) {
    // A retry that came due meanwhile is still the one that was checked.
    const row = unlockRow(q, key, now, action === 'retry' ? now + 1 : undefined);
    if (row) actSurely(q, action, row, now);
  }
  if (archived.length > 0) deleteArchived(q.store, archived);
}

/** The decision is final: a failure with one job does not affect the others. */
function actSurely(q: QueueParts, action: BulkAction, row: Parameters<typeof actOnRow>[2], now: number): void {
  try {
    actOnRow(q, action, row, now);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    console.error(`tocsin: a job could not be acted on as decided (${action})`, error);
  }
}

/** The batch is abandoned: the jobs are as they were. */
function abortAction(q: QueueParts, { locked }: PreparedAction, now: number): void {
  for (const { key } of locked) unlockRow(q, key, now);
}
