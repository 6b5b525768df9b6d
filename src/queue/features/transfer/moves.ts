/**
 * A dead letter that is redriven into another queue. It may be cut off anywhere:
 *
 *     decide (one row here) ──▶ the target takes it, once for each decision ──▶ it goes from here
 *
 * The decision is an outbox message, and nothing else can be decided meanwhile. The target remembers its answer,
 * refusals too, so a refused decision can be forgotten here.
 */

import { answerOnce } from '../../../durable/inbox';
import { type MessageKind, posted } from '../../../durable/outbox-relay';
import {
  ApiError,
  conflict,
  duplicate,
  type ErrorData,
  jobNotFound,
  notFound,
  type Outcome,
  outcomeOf,
  unavailable,
  unwrap,
} from '../../../job/errors';
import { routeOf } from '../../../job/ids';
import type { JobView } from '../../../job/record';
import { checkRetry } from '../../../job/retry/validate';
import { type Steps, withoutFailures } from '../../../job/steps';
import type { Adoption, MovedJob, MoveRequest, Override } from '../../../rpc/operations';
import type { Feature, Host } from '../../feature';
import { checkRoom, isBounded, makeRoom } from '../../jobs/backpressure';
import { refuseMoving } from '../../jobs/legal-move';
import { checkType, refuseGivenUp, refuseNewcomers, refuseRemoved, rememberDeparted } from '../../jobs/may-enqueue';
import { moveReserved } from '../../jobs/move-reserved';
import { boundedLife, deadLetterRow, secondLife } from '../../jobs/redrive';
import { isUndone, outlive, planUndo, type UndoPlan } from '../../jobs/undo';
import { find, viewOf } from '../../read/find';
import { bodyBytes } from '../../store/depth';
import type { Note } from '../../store/job-events';
import { bodyOf, historyOf, type JobRow } from '../../store/job-row';
import { insert, remove } from '../../store/jobs';
import { policyOf } from '../../store/limits/place';
import { MOVE, type Move, moveOf } from '../../store/moves';
import type { Named, Observed, QueueParts, Stored, StoredQueue, Woken } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { idOf } from '../../store/rows';
import { STORAGE_FULL } from '../../store/storage';

/**
 * Checks a move; writes nothing. @returns the job as it would travel; `open`: exactly this has been decided already
 * @throws {ApiError} 404 unless it is a dead letter; 409 when something else was decided, or the queue is being deleted
 */
export function planMove(
  q: StoredQueue,
  id: string,
  request: MoveRequest,
  now: number,
): { key: number; open: boolean; job: MovedJob } {
  const row = deadLetterRow(q, id);
  const open = moveOf(q.store.outbox, row.key);
  if (open && !isSame(open, request)) refuseMoving(q, row);
  if (!open) {
    refuseRemoved(q);
    boundedLife(row, request.override);
    refuseUnbegun(id, planUndo(q, row, now));
  }
  return { key: row.key, open: open !== undefined, job: packed(q, row, request.override, open?.at ?? now) };
}

/** Decides. One row written. @throws {ApiError} as {@link planMove} */
export function beginMove(q: StoredQueue, id: string, request: MoveRequest, name: string, now: number): number {
  const { key, open } = planMove(q, id, request, now);
  const move: Move = { ...request, key, name, at: now };
  if (!open) q.store.outbox.post(MOVE, String(key), JSON.stringify(move), now);
  return key;
}

const isSame = (move: Move, { target, override }: MoveRequest): boolean =>
  move.target === target && JSON.stringify(move.override) === JSON.stringify(override);

function packed(q: Named & Stored, row: JobRow, override: Override, at: number): MovedJob {
  const { body, history } = secondLife(row, override);
  const checkpoint = q.store.checkpoints.copy(row.key);
  const { type, priority, claims, created_at } = row;
  return {
    id: idOf(q.route, row),
    pending: false,
    ...{ type, priority, claims, created_at },
    attempt: 0,
    due_at: at,
    enqueued_at: at,
    expires_at: null,
    body: JSON.stringify(body),
    history: JSON.stringify(history),
    ...(checkpoint && {
      checkpoint: { ...checkpoint, content: contentKept(checkpoint.content, isUndone(q, historyOf(row))) },
    }),
  };
}

/** The undo job cannot travel along. @throws {ApiError} 409 while it has not begun */
function refuseUnbegun(id: string, { unbegun }: UndoPlan): void {
  if (unbegun === undefined) return;
  const hint = 'Cancel it, or retry the job in its own queue.';
  throw conflict(`Job ${unbegun} is about to undo the steps of job ${id}.`, { job_id: id, undo_job_id: unbegun }, hint);
}

function contentKept(text: string, forgets: boolean): string {
  const content: { steps?: Steps } = JSON.parse(text);
  const steps = content.steps && (forgets ? {} : withoutFailures(content.steps));
  return steps ? JSON.stringify({ ...content, steps }) : text;
}

/** The target has answered, and the message is gone: the job goes from here, or is an ordinary dead letter again. */
function endMove(q: Named & Stored & Observed & Woken, key: number, adoption: Adoption, now: number): void {
  const row = rowByKey(q.store, key);
  if (!('refused' in adoption)) {
    if (!row) return;
    if (row.alias !== null && routeOf(row.alias) === q.route) rememberDeparted(q, row.alias, now);
    outlive(q, historyOf(row).undo_job);
    remove(q, row, 'depart', now);
    return;
  }
  // It may have been kept beyond its time.
  q.wake.at(0);
}

/**
 * Would this queue take the job? Writes nothing.
 * @throws {ApiError} 409 draining, being deleted, id taken; 400 job type not allowed; 422 retry policy; 429 full
 */
export function considerMove(q: StoredQueue, job: MovedJob): void {
  refuseNewcomers(q);
  checkType(q, job.type);
  const body = bodyOf(job);
  if (body.retry) checkRetry(q.config.retryLayers(job.type, body));
  const taken = find(q, job.id);
  if (taken) throw duplicate(job.id, viewOf(q, taken, job.enqueued_at).record.state);
  if (q.store.hasAlias(job.id)) throw duplicate(job.id, 'being enqueued');
  if (isBounded(q)) checkRoom(q, arrivalOf(job));
}

/**
 * Takes the job, once for each decision, or refuses it for good. @param ticket as in {@link onceForMove}
 * @throws {ApiError} 503 when the ticket was given up, or the storage is full: the decision has no answer then
 */
export function adoptMoved(
  q: QueueParts,
  name: string,
  job: MovedJob,
  ticket: string | undefined,
  now: number,
): Adoption {
  const answer = onceForMove<{ refused?: ErrorData }>(q, name, ticket, now, () => {
    const outcome = outcomeOf(() => {
      considerMove(q, job);
      if (isBounded(q)) makeRoom(q, arrivalOf(job), now);
    });
    // There will be room: the decision stands, and the job is sent again.
    if (!outcome.ok && outcome.error.code === STORAGE_FULL) throw new ApiError(outcome.error);
    if (!outcome.ok) return { refused: outcome.error };
    adoptJob(q, job, now, { redriven: true });
    return {};
  });
  if (answer.refused) return { refused: answer.refused };
  const found = find(q, job.id);
  return { job: found ? viewOf(q, found, now) : null };
}

const arrivalOf = (job: MovedJob) => ({ jobs: 1, bytes: bodyBytes(job) });

export class Moves implements Feature {
  /** Delivered with what the target answered; undefined when the job was gone. */
  private readonly moving: MessageKind<Adoption | undefined>;
  readonly messages: readonly MessageKind[];

  constructor(private readonly host: Host) {
    const { q, write, others } = host;
    this.moving = posted(q.store.outbox, write, {
      kind: MOVE,
      send: async (_, [message], taken) => {
        const move = JSON.parse(message.data) as Move;
        const { key, name, target } = move;
        const row = rowByKey(q.store, key);
        if (!row) return taken(() => undefined);
        const job = packed(q, row, move.override, move.at);
        await others.noteIds(target, [job.id]);
        return moveReserved(q, [job], target, others.reservations, async (ticket) => {
          const adoption = unwrap(await others.queue(target).adoptMoved(name, job, ticket));
          return taken((now) => {
            endMove(q, key, adoption, now);
            return adoption;
          });
        });
      },
    });
    this.messages = [this.moving];
  }

  /**
   * Completes the decided move of a job. @param key of its row
   * @returns the job in its new queue, or that queue's refusal; 503 when it will continue by itself
   */
  async finish(id: string, key: number): Promise<Outcome<JobView>> {
    const target = moveOf(this.host.q.store.outbox, key)?.target;
    try {
      const adoption = target === undefined ? undefined : await this.host.relay().deliver(this.moving, String(key));
      if (!adoption) return { ok: false, error: notFound('dead letter', id).data };
      if ('refused' in adoption) return { ok: false, error: adoption.refused };
      return adoption.job ? { ok: true, value: adoption.job } : jobNotFound(id);
    } catch {
      const { data } = unavailable(`The job is on its way to queue ${target} and arrives automatically.`);
      return { ok: false, error: data };
    }
  }
}

/** Retention of a move's answer, ms: the source repeats the move until it has the answer. */
const REMEMBER_MOVE_MS = 90 * 86_400_000;

/**
 * Answers a move, once; a repetition gets the same answer. @param ticket under which fingerprints are reserved
 * @throws {ApiError} 503 when the ticket was given up; what `take` throws. Then nothing is remembered
 */
function onceForMove<T>(q: Stored, move: string, ticket: string | undefined, now: number, take: () => T): T {
  const answer = () => {
    if (ticket !== undefined) refuseGivenUp(q, ticket, now);
    return take();
  };
  return answerOnce(q.store.inbox, { key: `move ${move}`, hash: '' }, now, answer, REMEMBER_MOVE_MS);
}

/**
 * Takes jobs over from a deleted queue, with ids, attempts and order. @param ticket as in {@link onceForMove}
 * @throws {ApiError} 409 draining, being deleted; 503 the ticket was given up
 */
export function adopt(
  q: QueueParts,
  move: string,
  jobs: readonly MovedJob[],
  ticket: string | undefined,
  now: number,
): void {
  onceForMove(q, move, ticket, now, () => {
    refuseNewcomers(q);
    for (const job of jobs) adoptJob(q, job, now);
    return true;
  });
}

function adoptJob(q: Named & Stored & Observed & Woken, job: MovedJob, now: number, note?: Note): void {
  const { id, type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history } = job;
  const row = insert(
    q,
    'adopt',
    { alias: id, type, priority, attempt, claims, created_at, enqueued_at, expires_at, body, history },
    { at: job.due_at, pending: job.pending, limit: policyOf(q, { type, body }), holds: job.holds },
    now,
    note,
  );
  if (job.checkpoint) q.store.checkpoints.put(row.key, job.checkpoint);
}
