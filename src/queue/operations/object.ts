/** The queue object's methods for operators: changing, counting and handling many jobs, and the life of the queue itself. */
import { v7 as uuidv7 } from 'uuid';
import { notFound, type Outcome, outcomeOf } from '../../job/errors';
import type { JobView, NewJob } from '../../job/record';
import { queueObject } from '../../routing/objects';
import type { EnqueueReceipt, QueueStatus } from '../api';
import { CronObject } from '../cron/object';
import { decideBatch, refuseGivenUp } from '../jobs/batch';
import { enqueueEach } from '../jobs/enqueue-each';
import { recallAnswer } from '../jobs/idempotency';
import { patch } from '../jobs/patch';
import { prepareBulk } from './across';
import { adopt } from './adopt';
import type {
  Adoption,
  BulkAction,
  BulkAnswer,
  BulkItem,
  BulkRequest,
  CountResult,
  EachReceipt,
  IdempotencyKey,
  MatchingRequest,
  MovedJob,
  MoveRequest,
  OperationRequest,
  OperationsApi,
  OperationView,
  PatchRequest,
  QueueActivity,
  RememberedAnswer,
  RemovalRequest,
  RemovalView,
  SortedPart,
  SortedRequest,
} from './api';
import { bulk, judge } from './bulk';
import { count } from './list';
import { bulkMatching, judgeMatching } from './matching';
import { adoptMoved, beginMove, considerMove, considerMoveIntoNew, planMove } from './moves';
import { beginRemoval } from './remove';
import { setMode } from './settings';
import { sorted } from './sorted';
import { oldestAvailable, priorities } from './stats';
import { createTask, viewTask } from './tasks';

export abstract class OperationsObject extends CronObject implements OperationsApi {
  async patch(_queue: string, request: PatchRequest): Promise<Outcome<JobView>> {
    return this.change(request.id, (q, now) => patch(q, request, now));
  }

  async count(_queue: string, request: Parameters<OperationsApi['count']>[1]): Promise<Outcome<CountResult>> {
    const q = this.present();
    return q ? outcomeOf(() => count(q, request, Date.now())) : { ok: true, value: { count: 0 } };
  }

  async sorted(_queue: string, request: SortedRequest): Promise<Outcome<SortedPart>> {
    const q = this.present();
    if (!q) return { ok: true, value: { entries: [], matched: 0, looked: 0 } };
    return outcomeOf(() => sorted(q, request, Date.now()));
  }

  async bulk(_queue: string, request: BulkRequest): Promise<Outcome<BulkAnswer>> {
    const written = this.writeIfExists((q, now) => bulk(q, request, now));
    return written ?? { ok: true, value: { items: noneOf(request.ids), applied: !request.atomic } };
  }

  async judge(_queue: string, request: { action: BulkAction; ids: string[] }): Promise<Outcome<BulkItem[]>> {
    const q = this.present();
    if (!q) return { ok: true, value: noneOf(request.ids) };
    return outcomeOf(() => request.ids.map((id) => judge(q, request.action, id, Date.now())));
  }

  async judgeMatching(_queue: string, request: MatchingRequest): Promise<Outcome<BulkItem[]>> {
    const q = this.present();
    return q ? outcomeOf(() => judgeMatching(q, request, Date.now())) : { ok: true, value: [] };
  }

  async bulkMatching(_queue: string, request: MatchingRequest): Promise<Outcome<BulkAnswer>> {
    const written = this.writeIfExists((q, now) => bulkMatching(q, request, now));
    return written ?? { ok: true, value: { items: [], applied: true } };
  }

  async prepareBulk(
    _queue: string,
    batch: string,
    coordinator: string,
    request: { action: BulkAction; ids: string[] },
  ): Promise<Outcome<BulkAnswer>> {
    const written = this.writeIfExists((q, now) => {
      refuseGivenUp(q, batch, now);
      return prepareBulk(q, batch, coordinator, request, now);
    });
    return written ?? { ok: true, value: { items: noneOf(request.ids), applied: false } };
  }

  async decideBulk(
    queue: string,
    batch: string,
    others: string[],
    answer?: RememberedAnswer<BulkAnswer>,
  ): Promise<Outcome<BulkAnswer | null>> {
    return this.write(queue, (q, now) => decideBatch<BulkAnswer>(q, batch, others, now, answer));
  }

  async recallBulk(_queue: string, idempotency: IdempotencyKey): Promise<Outcome<BulkAnswer | null>> {
    const q = this.present();
    if (!q) return { ok: true, value: null };
    return outcomeOf(() => recallAnswer<BulkAnswer>(q, idempotency, Date.now()) ?? null);
  }

  async operate(_queue: string, request: OperationRequest, waitMs: number): Promise<Outcome<OperationView>> {
    const known = this.engine && viewTask(this.engine.q, request.id);
    if (known?.done) return { ok: true, value: known };
    const written = this.writeIfExists((q, now) => createTask(q, request, now));
    const duties = this.engine?.operations;
    if (!written || !duties) return { ok: true, value: nothingToDo(request) };
    const outcome = await written;
    if (!outcome.ok) return outcome;
    duties.began(request.id);
    return { ok: true, value: (await duties.view(request.id, waitMs)) ?? nothingToDo(request) };
  }

  async operation(_queue: string, id: string, waitMs: number, items?: boolean): Promise<OperationView | null> {
    const q = this.present();
    if (!q || !viewTask(q, id)) return null;
    return (await this.engine?.operations?.view(id, waitMs, items)) ?? null;
  }

  async drain(queue: string): Promise<Outcome<QueueStatus>> {
    return this.write(queue, (q, now) => setMode(q, 'draining', now));
  }

  async remove(queue: string, request: RemovalRequest, waitMs: number): Promise<Outcome<RemovalView>> {
    const begun = this.writeIfExists((q, now) => beginRemoval(q, request, now));
    if (!begun) return { ok: false, error: notFound('queue', queue).data };
    const outcome = await begun;
    if (!outcome.ok) return outcome;
    const gone = (await this.engine?.operations?.removed(waitMs)) ?? true;
    return { ok: true, value: { ...outcome.value, ...(gone && { state: 'deleted' as const }) } };
  }

  async adopt(queue: string, move: string, jobs: MovedJob[], ticket?: string): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => adopt(q, move, jobs, ticket, now));
  }

  async moveDeadLetter(_queue: string, id: string, request: MoveRequest): Promise<Outcome<JobView>> {
    const { engine } = this;
    if (!engine) return { ok: false, error: notFound('dead letter', id).data };
    const q = engine.tidied();
    const planned = outcomeOf(() => planMove(q, id, request, Date.now()));
    if (!planned.ok) return planned;
    if (!planned.value.open) {
      const peer = queueObject(this.env, request.target);
      const considered = await peer.considerMoved(request.target, planned.value.job);
      if (!considered.ok) return considered;
    }
    const begun = await this.change(id, (at, now) => beginMove(at, id, request, uuidv7(), now));
    return begun.ok ? engine.operations.moves.finish(begun.value) : begun;
  }

  async considerMoved(queue: string, job: MovedJob): Promise<Outcome<void>> {
    const q = this.present();
    if (q) return outcomeOf(() => considerMove(q, job));
    const lower = await this.lowerLayers();
    return outcomeOf(() => considerMoveIntoNew(queue, lower, job));
  }

  async adoptMoved(queue: string, move: string, job: MovedJob, ticket?: string): Promise<Outcome<Adoption>> {
    return this.write(queue, (q, now) => adoptMoved(q, move, job, ticket, now));
  }

  async priorities(_queue: string): Promise<{ priority: number; count: number }[]> {
    const q = this.present();
    return q ? priorities(q) : [];
  }

  async activity(_queue: string): Promise<QueueActivity> {
    const q = this.present();
    const now = Date.now();
    return {
      oldest_available_at: (q && oldestAvailable(q, now)) ?? null,
      completed_per_minute: q?.events.completions.perMinute(now) ?? 0,
    };
  }

  async enqueueEach(queue: string, jobs: NewJob[], idempotency?: IdempotencyKey): Promise<Outcome<EachReceipt>> {
    const refused = await this.refusals(queue, jobs);
    if (refused.length > 0) return { ok: true, value: { outcomes: refused } };
    return this.write(queue, (q, now) => enqueueEach(q, jobs, idempotency, now));
  }

  async recall(_queue: string, idempotency: IdempotencyKey): Promise<Outcome<EnqueueReceipt | null>> {
    const q = this.present();
    if (!q) return { ok: true, value: null };
    return outcomeOf(() => recallAnswer<EnqueueReceipt>(q, idempotency, Date.now()) ?? null);
  }
}

function noneOf(ids: readonly string[]): BulkItem[] {
  return ids.map((job_id) => ({ job_id, status: 'failed', reason: 'not_found' }));
}

function nothingToDo({ id, action }: OperationRequest): OperationView {
  const none = { matched: 0, succeeded: 0, skipped: 0, failed: 0 };
  return { id, action, done: true, ...none, errors: [], started_at: Date.now() };
}
