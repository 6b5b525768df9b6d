/**
 * The queue object: one per queue. It is constructed when touched and evicted when idle, at any moment and without notice. So
 * everything that matters is in SQLite, and what is in memory can be rebuilt ({@link QueueEngine}).
 *
 * Every verb is a line or two on one of four helpers: `read` and `look` read, `write` may bring the queue into being, `change`
 * is about a job that must exist. A queue comes into being in the transaction that first writes to it (`birth.ts`); until then
 * the object has no tables and no alarm, and nobody knows the queue.
 */
import { DurableObject } from 'cloudflare:workers';
import { v7 as uuidv7 } from 'uuid';
import { enqueueEntries } from '../across/enqueue';
import { Reservations } from '../across/reservation';
import { type Config, type Env, readConfig } from '../config';
import { AlarmClock } from '../durable/alarm-clock';
import type { QueueEvent } from '../durable/event-log';
import { type CronDefinition, jobOf } from '../job/cron/definition';
import { notFound, type Outcome, outcomeOf } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import type { JobView, NewJob } from '../job/record';
import type { QueueConfig, QueueDefaults, SettingsChange } from '../job/settings';
import type { CronExecutionView, CronSkip, CronSummary, CronView, PutCron } from '../rpc/cron';
import type { RateLimitView } from '../rpc/limits';
import type {
  Adoption,
  BulkAction,
  BulkAnswer,
  BulkItem,
  BulkRequest,
  CountRequest,
  CountResult,
  EachReceipt,
  IdempotencyKey,
  MatchingRequest,
  MovedJob,
  MoveRequest,
  OperationRequest,
  OperationView,
  PatchRequest,
  QueueActivity,
  RememberedAnswer,
  RemovalRequest,
  RemovalView,
  SortedPart,
  SortedRequest,
} from '../rpc/operations';
import type {
  DeadLetterRequest,
  EnqueuedJob,
  EnqueueReceipt,
  ListPage,
  ListRequest,
  QueueApi,
  QueueSettings,
  QueueStats,
  QueueStatus,
  RedriveOptions,
  UniqueConflicts,
  UniqueQuestion,
} from '../rpc/queue';
import { directoryObject, queueObject, workflowObject } from '../rpc/stubs';
import type {
  AckRequest,
  AttemptName,
  CheckpointRequest,
  ClaimRequest,
  HeartbeatReceipt,
  HeartbeatRequest,
  HeldJob,
  NackRequest,
  ProgressReport,
  ProgressRequest,
  StoredCheckpoint,
} from '../rpc/workers';
import type { StepStart } from '../rpc/workflow';
import { type Birth, giveBirth, type Operation, tryUnborn } from './birth';
import { QueueEngine } from './engine';
import { bulkMatching, judgeMatching } from './features/bulk/matching';
import { createTask, viewTask } from './features/bulk/tasks';
import { mustReadCron, noSuchCron, noteTriggered, triggerHere } from './features/cron/fire';
import {
  checkCron,
  confirmCron,
  cronHistory,
  cronsNamed,
  enableCron,
  handOffCron,
  putCron,
  readCron,
  removeCron,
} from './features/cron/manage';
import { beginRemoval } from './features/lifecycle/remove';
import { configure, setMode, setPaused, takeDefaults } from './features/lifecycle/settings';
import { limitKeys, rateLimits, removeOwnOverride } from './features/limits/report';
import { SilencedWorkers } from './features/pull/silenced';
import {
  abortBatch,
  commitBatch,
  confirmBatch,
  decideBatch,
  decisionOf,
  prepareBatch,
  refuseGivenUp,
} from './features/shares/batch';
import { prepareBulk } from './features/shares/bulk';
import { adopt } from './features/transfer/adopt';
import { adoptMoved, beginMove, considerMove, planMove } from './features/transfer/moves';
import { cancelSteps, startSteps } from './features/workflow/steps';
import { bulk, judge } from './jobs/act';
import { activate } from './jobs/activate';
import { cancel } from './jobs/cancel';
import { checkpointOf, deleteCheckpoint, saveCheckpoint } from './jobs/checkpoint';
import { conflictsHere } from './jobs/conflicts';
import { checkJobs, enqueue } from './jobs/enqueue';
import { enqueueEach } from './jobs/enqueue-each';
import { heartbeat } from './jobs/heartbeat';
import { heldBy, releaseHeld } from './jobs/held';
import { once, recallAnswer } from './jobs/idempotency';
import { refuseLocked } from './jobs/lock';
import { patch } from './jobs/patch';
import { progressOf, reportProgress } from './jobs/progress';
import { deadLetterRow, deleteDeadLetter, redrive } from './jobs/redrive';
import { ack, nack } from './jobs/report';
import { awaitEnd } from './read/await-end';
import { ENDED_JOBS_HINT, mustFind, runningOf, viewOf, viewOfRow } from './read/find';
import { getMany } from './read/get-many';
import { count, deadLetters, list } from './read/list';
import { sorted } from './read/sorted';
import { emptyStats, oldestAvailable, priorities, stats } from './read/stats';
import { isInitialised, readMeta } from './store/schema';
import type { QueueState } from './store/state';
import { knownFingerprints } from './store/unique-keys';

export class QueueObject extends DurableObject<Env> implements QueueApi {
  /** Undefined while the queue does not exist. */
  private engine: QueueEngine | undefined;
  private readonly name: string;
  private clock!: AlarmClock;
  /** The queue is coming into being. */
  private birth: Promise<unknown> | undefined;
  private readonly silenced = new SilencedWorkers(
    () => directoryObject(this.env).silencedWorkers(),
    () => Date.now(),
  );

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const exists = isInitialised(ctx.storage.sql);
    this.name = exists ? (readMeta(ctx.storage.sql).get('name') as string) : (ctx.id.name ?? '');
    void ctx.blockConcurrencyWhile(async () => {
      this.clock = new AlarmClock(ctx.storage, await ctx.storage.getAlarm());
      if (!exists) return;
      this.engine = this.open();
      this.engine.armNext();
    });
  }

  override async alarm(): Promise<void> {
    if (this.engine) this.engine.alarm();
    else this.clock.fired(Date.now());
  }

  async reset(): Promise<void> {
    this.silenced.forget();
    this.engine?.close();
    this.engine = undefined;
    this.birth = undefined;
    await this.clock.clear();
    await this.ctx.storage.deleteAll();
    this.clock = new AlarmClock(this.ctx.storage, null);
  }

  // ---- producers ---------------------------------------------------------------------------------------------------

  async enqueue(jobs: NewJob[], ticket?: string, idempotency?: IdempotencyKey): Promise<Outcome<EnqueueReceipt>> {
    return this.write((q, now) => {
      if (ticket !== undefined) refuseGivenUp(q, ticket, now);
      return once(q, idempotency, now, () => enqueue(q, jobs, now));
    });
  }

  async enqueueEach(jobs: NewJob[], idempotency?: IdempotencyKey): Promise<Outcome<EachReceipt>> {
    const accepts = ({ outcomes }: EachReceipt) => outcomes.some(({ ok }) => ok);
    return this.write((q, now) => enqueueEach(q, jobs, idempotency, now), accepts);
  }

  async checkJobs(jobs: NewJob[]): Promise<Outcome<void>> {
    return this.consider((q, now) => checkJobs(q, jobs, now));
  }

  async recall<T = EnqueueReceipt>(idempotency: IdempotencyKey): Promise<Outcome<T | null>> {
    return this.read((q, now) => recallAnswer<T>(q, idempotency, now) ?? null, null);
  }

  async get(id: string): Promise<Outcome<JobView>> {
    return this.readJob(id, (q, now) => viewOf(q, mustFind(q, id), now));
  }

  async cancel(id: string): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => cancel(q, id, now));
  }

  async activate(id: string): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => activate(q, id, now));
  }

  async patch(request: PatchRequest): Promise<Outcome<JobView>> {
    return this.change(request.id, (q, now) => patch(q, request, now));
  }

  // ---- reading -----------------------------------------------------------------------------------------------------

  async awaitEnd(id: string, waitMs: number): Promise<Outcome<JobView>> {
    const read = () => this.readJob(id, (q, now) => viewOf(q, mustFind(q, id), now));
    if (!this.engine) return read();
    return awaitEnd(this.engine.q.events, id, Date.now() + waitMs, () => Date.now(), read);
  }

  async getMany(ids: string[]): Promise<{ jobs: JobView[]; omitted: string[] }> {
    return this.look((q, now) => getMany(q, ids, now), { jobs: [], omitted: [] });
  }

  async runningOf(ids: string[]): Promise<string[]> {
    return this.look((q) => runningOf(q, ids), []);
  }

  async list(request: ListRequest): Promise<Outcome<ListPage>> {
    return this.read((q, now) => list(q, request, now), { jobs: [], total: 0, has_more: false });
  }

  async sorted(request: SortedRequest): Promise<Outcome<SortedPart>> {
    return this.read((q, now) => sorted(q, request, now), { entries: [], matched: 0, looked: 0 });
  }

  async count(request: CountRequest): Promise<Outcome<CountResult>> {
    return this.read((q, now) => count(q, request, now), { count: 0 });
  }

  async deadLetters(request: DeadLetterRequest): Promise<Outcome<{ jobs: JobView[]; total: number }>> {
    return this.read((q, now) => deadLetters(q, request, now), { jobs: [], total: 0 });
  }

  async deadLetter(id: string): Promise<Outcome<JobView>> {
    return this.readJob(id, (q, now) => viewOfRow(q, deadLetterRow(q, id), now));
  }

  async stats(): Promise<Outcome<QueueStats>> {
    return this.read((q, now) => stats(q, now), emptyStats(this.name, Date.now()));
  }

  async priorities(): Promise<{ priority: number; count: number }[]> {
    return this.look((q) => priorities(q), []);
  }

  async activity(): Promise<QueueActivity> {
    return this.look(
      (q, now) => ({
        oldest_available_at: oldestAvailable(q, now) ?? null,
        completed_per_minute: q.events.completions.perMinute(now),
      }),
      { oldest_available_at: null, completed_per_minute: 0 },
    );
  }

  async events(request: { types?: string[]; after?: string; limit: number }): Promise<QueueEvent[]> {
    return this.look((q) => q.events.read(request), []);
  }

  // ---- workers that pull -------------------------------------------------------------------------------------------

  async claim(request: ClaimRequest): Promise<Outcome<JobView[]>> {
    const deadline = Date.now() + (request.wait_ms ?? 0);
    const { worker_id } = request;
    if (worker_id !== undefined && this.engine && (await this.silenced.has(worker_id))) return { ok: true, value: [] };
    // A queue that does not exist may be created by the time the wait is over.
    while (!this.engine && Date.now() < deadline) await scheduler.wait(Math.min(250, deadline - Date.now()));
    const unwanted = () => worker_id !== undefined && this.silenced.hasNow(worker_id);
    return this.engine?.pull.claim(request, deadline, unwanted) ?? { ok: true, value: [] };
  }

  async ack(request: AckRequest): Promise<Outcome<JobView>> {
    return this.change(request.job_id, (q, now) => ack(q, request, now));
  }

  async nack(request: NackRequest): Promise<Outcome<JobView>> {
    return this.change(request.job_id, (q, now) => nack(q, request, now, Math.random));
  }

  async heartbeat(request: HeartbeatRequest): Promise<Outcome<HeartbeatReceipt>> {
    return this.writeIfExists((q, now) => heartbeat(q, request, now), { extended: [] });
  }

  async reportProgress(request: ProgressRequest): Promise<Outcome<ProgressReport>> {
    return this.change(request.job_id, (q, now) => reportProgress(q, request, now));
  }

  async progress(id: string): Promise<Outcome<ProgressReport>> {
    return this.readJob(id, (q, now) => progressOf(q, id, now));
  }

  async saveCheckpoint(request: CheckpointRequest): Promise<Outcome<StoredCheckpoint>> {
    return this.change(request.job_id, (q, now) => saveCheckpoint(q, request, now));
  }

  async checkpoint(id: string): Promise<Outcome<StoredCheckpoint | null>> {
    return this.readJob(id, (q) => checkpointOf(q, id));
  }

  async deleteCheckpoint(request: AttemptName & { job_id: string }): Promise<Outcome<{ job_id: string }>> {
    return this.change(request.job_id, (q, now) => deleteCheckpoint(q, request, now));
  }

  async heldBy(workerId: string): Promise<HeldJob[]> {
    return this.look((q) => heldBy(q, workerId), []);
  }

  async releaseHeld(workerId: string): Promise<Outcome<string[]>> {
    return this.writeIfExists((q, now) => releaseHeld(q, workerId, now, Math.random), []);
  }

  async silence(workerIds: string[], silenced: boolean): Promise<void> {
    this.silenced.change(workerIds, silenced);
    this.engine?.pull.callWaiters();
  }

  // ---- operators: jobs ---------------------------------------------------------------------------------------------

  async redrive(id: string, options: RedriveOptions): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => redrive(q, id, options, now));
  }

  async deleteDeadLetter(id: string): Promise<Outcome<{ job_id: string }>> {
    return this.change(id, (q, now) => deleteDeadLetter(q, id, now));
  }

  async bulk(request: BulkRequest): Promise<Outcome<BulkAnswer>> {
    const absent = { items: noneOf(request.ids), applied: !request.atomic };
    return this.writeIfExists((q, now) => bulk(q, request, now), absent);
  }

  async judge(request: { action: BulkAction; ids: string[] }): Promise<Outcome<BulkItem[]>> {
    const { action, ids } = request;
    return this.read((q, now) => ids.map((id) => judge(q, action, id, now)), noneOf(ids));
  }

  async judgeMatching(request: MatchingRequest): Promise<Outcome<BulkItem[]>> {
    return this.read((q, now) => judgeMatching(q, request, now), []);
  }

  async bulkMatching(request: MatchingRequest): Promise<Outcome<BulkAnswer>> {
    return this.writeIfExists((q, now) => bulkMatching(q, request, now), { items: [], applied: true });
  }

  async operate(request: OperationRequest, waitMs: number): Promise<Outcome<OperationView>> {
    const { engine } = this;
    const known = engine && viewTask(engine.q, request.id);
    if (known?.done) return { ok: true, value: known };
    if (!engine) return { ok: true, value: nothingToDo(request) };
    const begun = await this.writeIfExists((q, now) => createTask(q, request, now), undefined);
    if (!begun.ok) return begun;
    engine.bulk.began(request.id);
    return { ok: true, value: (await engine.bulk.view(request.id, waitMs)) ?? nothingToDo(request) };
  }

  async operation(id: string, waitMs: number, items?: boolean): Promise<OperationView | null> {
    const q = this.present();
    if (!q || !viewTask(q, id)) return null;
    return (await this.engine?.bulk.view(id, waitMs, items)) ?? null;
  }

  // ---- operators: the queue ----------------------------------------------------------------------------------------

  async pause(): Promise<Outcome<QueueStatus>> {
    return this.write((q, now) => setPaused(q, true, now));
  }

  async resume(): Promise<Outcome<QueueStatus>> {
    return this.write((q, now) => setPaused(q, false, now));
  }

  async drain(): Promise<Outcome<QueueStatus>> {
    return this.write((q, now) => setMode(q, 'draining', now));
  }

  async config(): Promise<Outcome<QueueConfig>> {
    return { ok: true, value: this.engine?.q.own ?? {} };
  }

  async settings(): Promise<Outcome<QueueSettings>> {
    const { engine } = this;
    if (engine) return { ok: true, value: { own: engine.q.own, effective: engine.q.settings } };
    const defaults = await directoryObject(this.env).queueDefaults();
    return { ok: true, value: { own: {}, effective: defaults?.config ?? {} } };
  }

  async configure(change: SettingsChange): Promise<Outcome<QueueConfig>> {
    return this.write((q) => configure(q, change));
  }

  async takeDefaults(defaults: QueueDefaults): Promise<Outcome<void>> {
    await this.born();
    return this.writeIfExists((q) => takeDefaults(q, defaults), undefined);
  }

  async remove(request: RemovalRequest, waitMs: number): Promise<Outcome<RemovalView>> {
    if (!this.engine) return { ok: false, error: notFound('queue', this.name).data };
    const begun = await this.write((q, now) => beginRemoval(q, request, now));
    if (!begun.ok) return begun;
    const gone = (await this.engine?.removal.removed(waitMs)) ?? true;
    return { ok: true, value: { ...begun.value, ...(gone && { state: 'deleted' as const }) } };
  }

  async limitKeys(): Promise<string[]> {
    return this.look((q) => limitKeys(q), []);
  }

  async rateLimits(keys: string[]): Promise<RateLimitView[]> {
    return this.look((q, now) => rateLimits(q, keys, now), []);
  }

  async removeOwnOverride(key: string): Promise<Outcome<void>> {
    return this.writeIfExists((q, now) => removeOwnOverride(q, key, now), undefined);
  }

  // ---- several queues: all or nothing ------------------------------------------------------------------------------

  async prepareBatch(batch: string, coordinator: string, jobs: NewJob[]): Promise<Outcome<EnqueueReceipt>> {
    return this.write((q, now) => prepareBatch(q, batch, coordinator, jobs, now));
  }

  async prepareBatchIfExists(
    batch: string,
    coordinator: string,
    jobs: NewJob[],
  ): Promise<Outcome<EnqueueReceipt | null>> {
    await this.born();
    const prepare: Operation<EnqueueReceipt> = (q, now) => prepareBatch(q, batch, coordinator, jobs, now);
    if (this.engine) return this.write(prepare);
    const tried = await this.consider(prepare);
    return tried.ok ? { ok: true, value: null } : tried;
  }

  async decideBatch<T = EnqueueReceipt>(
    batch: string,
    others: string[],
    answer?: RememberedAnswer<T>,
  ): Promise<Outcome<T | null>> {
    return this.write((q, now) => decideBatch(q, batch, others, now, answer));
  }

  async commitBatch(batch: string): Promise<Outcome<void>> {
    return this.writeIfExists((q, now) => commitBatch(q, batch, now), undefined);
  }

  async abortBatch(batch: string): Promise<Outcome<void>> {
    await this.born();
    return this.writeIfExists((q, now) => abortBatch(q, batch, now), undefined);
  }

  async giveUpBatch(batch: string): Promise<Outcome<'committed' | 'aborted'>> {
    await this.born();
    return this.writeIfExists((q, now) => decisionOf(q, batch, now), 'aborted');
  }

  async batchDecision(batch: string): Promise<Outcome<'committed' | 'aborted'>> {
    return this.write((q, now) => decisionOf(q, batch, now));
  }

  async confirmBatch(batch: string, queues: string[]): Promise<Outcome<void>> {
    return this.writeIfExists((q, now) => confirmBatch(q, batch, queues, now), undefined);
  }

  async prepareBulk(
    batch: string,
    coordinator: string,
    request: { action: BulkAction; ids: string[] },
  ): Promise<Outcome<BulkAnswer>> {
    return this.writeIfExists(
      (q, now) => {
        refuseGivenUp(q, batch, now);
        return prepareBulk(q, batch, coordinator, request, now);
      },
      { items: noneOf(request.ids), applied: false },
    );
  }

  async uniqueConflicts(questions: UniqueQuestion[]): Promise<UniqueConflicts[]> {
    return this.look(
      (q, now) => questions.map((question) => conflictsHere(q, question, now)),
      questions.map(() => ({ known: false, undecided: false, blocking: [] })),
    );
  }

  async knownFingerprints(fingerprints: string[]): Promise<string[]> {
    return this.look((q) => knownFingerprints(q.sql, fingerprints), []);
  }

  // ---- several queues: jobs that move ------------------------------------------------------------------------------

  async adopt(move: string, jobs: MovedJob[], ticket?: string): Promise<Outcome<void>> {
    return this.write((q, now) => adopt(q, move, jobs, ticket, now));
  }

  async moveDeadLetter(id: string, request: MoveRequest): Promise<Outcome<JobView>> {
    const { engine } = this;
    if (!engine) return { ok: false, error: notFound('dead letter', id).data };
    const planned = await this.read((q, now) => planMove(q, id, request, now));
    if (!planned.ok) return planned;
    if (!planned.value.open) {
      const considered = await queueObject(this.env, request.target).considerMoved(planned.value.job);
      if (!considered.ok) return considered;
    }
    const begun = await this.change(id, (q, now) => beginMove(q, id, request, uuidv7(), now));
    return begun.ok ? engine.moves.finish(begun.value) : begun;
  }

  async considerMoved(job: MovedJob): Promise<Outcome<void>> {
    return this.consider((q) => considerMove(q, job));
  }

  async adoptMoved(move: string, job: MovedJob, ticket?: string): Promise<Outcome<Adoption>> {
    return this.write((q, now) => adoptMoved(q, move, job, ticket, now));
  }

  // ---- workflows ---------------------------------------------------------------------------------------------------

  async startSteps(start: StepStart): Promise<Outcome<(string | null)[]>> {
    return this.write((q, now) => startSteps(q, start, now));
  }

  async cancelSteps(ids: string[]): Promise<Outcome<void>> {
    return this.writeIfExists((q, now) => cancelSteps(q, ids, now), undefined);
  }

  // ---- cron entries ------------------------------------------------------------------------------------------------

  async putCron(request: PutCron): Promise<Outcome<CronView & { created: boolean }>> {
    return this.write((q, now) => putCron(q, request, now));
  }

  async checkCron(definition: CronDefinition): Promise<Outcome<void>> {
    return this.consider((q, now) => checkCron(q, definition, now));
  }

  async cron(name: string): Promise<Outcome<CronView>> {
    return this.engine ? this.read((q) => readCron(q, name)) : missing(name);
  }

  async cronSummaries(): Promise<CronSummary[]> {
    return this.look((q) => q.crons.summaries(), []);
  }

  async cronsNamed(names: string[]): Promise<{ crons: CronView[]; omitted: string[] }> {
    return this.look((q) => cronsNamed(q, names), { crons: [], omitted: [] });
  }

  async removeCron(name: string, version: number): Promise<Outcome<CronView | null>> {
    return this.write((q, now) => removeCron(q, name, version, now));
  }

  async enableCron(name: string, enabled: boolean): Promise<Outcome<CronView>> {
    return this.engine ? this.write((q, now) => enableCron(q, name, enabled, now)) : missing(name);
  }

  async triggerCron(name: string): Promise<Outcome<EnqueuedJob>> {
    if (!this.engine) return missing(name);
    const made = await this.read((q, now) => jobOf(mustReadCron(q, name).definition, { now }));
    if (!made.ok) return made;
    const job = made.value;
    if (job.unique?.scope !== 'global') return this.write((q, now) => triggerHere(q, name, job, now));
    const outcome = await this.enqueueAcross(job);
    if (outcome.ok) await this.write((q, now) => noteTriggered(q, name, outcome.value, now));
    return outcome;
  }

  async cronHistory(
    name: string,
    limit: number,
  ): Promise<Outcome<{ executions: CronExecutionView[]; skipped: CronSkip[] }>> {
    return this.engine ? this.read((q, now) => cronHistory(q, name, limit, now)) : missing(name);
  }

  async handOffCron(definition: CronDefinition, version: number): Promise<Outcome<CronView | null>> {
    return this.write((q, now) => handOffCron(q, definition, version, now));
  }

  async confirmCron(name: string, version: number): Promise<Outcome<void>> {
    return this.write((q, now) => confirmCron(q, name, version, now));
  }

  // ---- what the verbs stand on -------------------------------------------------------------------------------------

  /** The state to read from; undefined when the queue does not exist. */
  private present(): QueueState | undefined {
    return this.engine?.tidied();
  }

  /** Reads; a queue that does not exist answers `absent`. */
  private look<T>(operation: Operation<T>, absent: T): T {
    const q = this.present();
    return q ? operation(q, Date.now()) : absent;
  }

  /** Reads what may be refused. */
  private read<T>(operation: Operation<T>, absent?: T): Outcome<T> {
    const q = this.present();
    return q ? outcomeOf(() => operation(q, Date.now())) : { ok: true, value: absent as T };
  }

  /** Reads a job that must exist here. */
  private readJob<T>(id: string, operation: Operation<T>): Outcome<T> {
    return this.engine ? this.read(operation) : noJob(id);
  }

  /**
   * Runs a writing operation, in the transaction that brings the queue into being if need be. A refused one leaves nothing.
   * @param creates is this result worth a queue that does not exist yet?
   */
  private async write<T>(operation: Operation<T>, creates: (value: T) => boolean = () => true): Promise<Outcome<T>> {
    while (!this.engine && this.birth) await this.birth;
    if (this.engine) return this.run(this.engine, operation);
    const born = giveBirth(this.birthPlace(), operation, creates);
    this.birth = born
      .catch(() => undefined)
      .finally(() => {
        this.birth = undefined;
      });
    return born;
  }

  /** Writes; a queue that does not exist answers `absent`. */
  private async writeIfExists<T>(operation: Operation<T>, absent: T): Promise<Outcome<T>> {
    return this.engine ? this.run(this.engine, operation) : { ok: true, value: absent };
  }

  /** Changes a job that must exist here. */
  private async change<T>(id: string, operation: Operation<T>): Promise<Outcome<T>> {
    if (!this.engine || !isUuidV7(id)) return noJob(id);
    return this.run(this.engine, (q, now) => {
      refuseLocked(q, id);
      return operation(q, now);
    });
  }

  /** What would the queue say to this, whether it exists or not? Nothing stays written. */
  private async consider<T>(operation: Operation<T>): Promise<Outcome<T>> {
    return this.engine ? this.read(operation) : tryUnborn(this.birthPlace(), operation);
  }

  private run<T>(engine: QueueEngine, operation: Operation<T>): Promise<Outcome<T>> {
    return engine.write((now) => operation(engine.q, now));
  }

  // ---- the object's own life ---------------------------------------------------------------------------------------

  /** Waits while the queue is coming into being. */
  private async born(): Promise<void> {
    await this.birth;
  }

  private birthPlace(): Birth {
    return {
      name: this.name,
      storage: this.ctx.storage,
      clock: this.clock,
      variables: this.usableConfig().retryVariables,
      directory: directoryObject(this.env),
      open: () => {
        this.engine = this.open();
        return this.engine;
      },
      abandon: () => {
        this.engine = undefined;
      },
    };
  }

  private open(): QueueEngine {
    return new QueueEngine({
      storage: this.ctx.storage,
      clock: this.clock,
      config: this.usableConfig(),
      random: Math.random,
      now: () => Date.now(),
      keepAlive: (promise) => this.ctx.waitUntil(promise),
      others: {
        queue: (name) => queueObject(this.env, name),
        workflow: (id) => workflowObject(this.env, id),
        enqueueAcross: (job) => this.enqueueAcross(job),
        reservations: (coordinator) => new Reservations(this.env, uuidv7(), coordinator),
        destroy: (at) => this.destroy(at),
      },
    });
  }

  /** A deployment with mistakes in its settings answers them to requests; jobs that exist stay where they are. */
  private usableConfig(): Pick<Config, 'retryVariables' | 'targets'> {
    try {
      return readConfig(this.env);
    } catch (error) {
      console.error('tocsin: invalid configuration', error);
      return { retryVariables: {}, targets: [] };
    }
  }

  /** Other queues and the lock objects have a say in what is unique across queues. */
  private async enqueueAcross(job: NewJob): Promise<Outcome<EnqueuedJob>> {
    const outcome = await enqueueEntries(this.env, [{ queue: this.name, job }], false);
    return outcome.ok ? { ok: true, value: outcome.value[0] as EnqueuedJob } : outcome;
  }

  /** The last step of a deletion. Nothing else happens here meanwhile. */
  private async destroy(at: number): Promise<void> {
    await directoryObject(this.env).unregister(this.name, at);
    await this.ctx.blockConcurrencyWhile(() => this.reset());
  }
}

function noJob(id: string): Outcome<never> {
  return { ok: false, error: notFound('job', id, ENDED_JOBS_HINT).data };
}

function missing(name: string): Outcome<never> {
  return { ok: false, error: noSuchCron(name).data };
}

function noneOf(ids: readonly string[]): BulkItem[] {
  return ids.map((job_id) => ({ job_id, status: 'failed', reason: 'not_found' }));
}

function nothingToDo({ id, action }: OperationRequest): OperationView {
  const none = { matched: 0, succeeded: 0, skipped: 0, failed: 0 };
  return { id, action, done: true, ...none, errors: [], started_at: Date.now() };
}
