/**
 * The queue object: one per queue. It wires the outside (RPC, the alarm, being woken up) to the operations, one file each
 * beside this one.
 *
 * How it lives: it is constructed when touched and evicted when idle, at any moment and without notice. So everything that
 * matters is in SQLite, and what is in memory can be rebuilt ({@link QueueEngine}). An object that was never written to
 * has no tables, no alarm and no name; the first job registers it in the directory and creates them.
 */
import { type Config, type Env, readConfig } from '../config';
import { notFound, type Outcome, outcomeOf } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import type { JobView, NewJob } from '../job/record';
import { enqueueEntries } from '../routing/unique';
import type { StepStart, WorkflowApi } from '../workflow/api';
import { activate } from './activate';
import type {
  AckRequest,
  AttemptName,
  CheckpointRequest,
  ClaimRequest,
  DeadLetterRequest,
  EnqueuedJob,
  EnqueueReceipt,
  HeartbeatRequest,
  HeldJob,
  ListPage,
  ListRequest,
  NackRequest,
  ProgressReport,
  ProgressRequest,
  QueueApi,
  QueueConfig,
  QueueEvent,
  QueueStats,
  QueueStatus,
  UniqueQuestion,
  UniqueRivals,
} from './api';
import { awaitEnd } from './await-end';
import { abortBatch, commitBatch, confirmBatch, decideBatch, decisionOf, prepareBatch, refuseGivenUp } from './batch';
import { cancel } from './cancel';
import { checkpointOf, deleteCheckpoint, saveCheckpoint } from './checkpoint';
import type { StoredCheckpoint } from './checkpoint-table';
import { QueueEngine } from './engine';
import { checkJobs, checkPolicies, enqueue } from './enqueue';
import { ENDED_JOBS_HINT, mustFind, viewOf, viewOfRow } from './find';
import { getMany } from './get-many';
import { heartbeat } from './heartbeat';
import { heldBy, releaseHeld } from './held';
import { once } from './idempotency';
import { LimitsObject } from './limits/object';
import { deadLetters, list } from './list';
import type { OperationDuties } from './operation-duties';
import type { IdempotencyKey, RememberedAnswer } from './operations-api';
import { progressOf, reportProgress } from './progress';
import { deadLetterRow, deleteDeadLetter, type RedriveOptions, redrive } from './redrive';
import { ack, nack } from './report';
import { isInitialised, migrate, writeMeta } from './schema';
import { configure, type SettingsChange, setPaused } from './settings';
import { SilencedWorkers } from './silenced';
import type { QueueState } from './state';
import { emptyStats, stats } from './stats';
import { rivalsHere } from './unique';
import { knownFingerprints } from './unique-keys';
import { AlarmClock } from './wake';
import { cancelSteps, startSteps } from './workflow-steps';

type Operation<T> = (q: QueueState, now: number) => T;

export class QueueObject extends LimitsObject implements QueueApi {
  private engine: QueueEngine | undefined;
  private opening: Promise<QueueEngine> | undefined;
  private clock!: AlarmClock;
  private readonly silenced = new SilencedWorkers(
    () => this.env.DIRECTORY.getByName('directory').silencedWorkers(),
    () => Date.now(),
  );

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      this.clock = new AlarmClock(ctx.storage, await ctx.storage.getAlarm());
      if (!isInitialised(ctx.storage.sql)) return;
      this.engine = this.open();
      this.engine.armNext();
    });
  }

  // ---- producers ---------------------------------------------------------------------------------------------------

  async enqueue(
    queue: string,
    jobs: NewJob[],
    ticket?: string,
    idempotency?: IdempotencyKey,
  ): Promise<Outcome<EnqueueReceipt>> {
    return (
      this.refusal(jobs) ??
      this.write(queue, (q, now) => {
        if (ticket !== undefined) refuseGivenUp(q, ticket, now);
        return once(q, idempotency, now, () => enqueue(q, jobs, now));
      })
    );
  }

  async checkJobs(_queue: string, jobs: NewJob[]): Promise<Outcome<void>> {
    const { engine } = this;
    if (!engine) return this.refusal(jobs) ?? { ok: true, value: undefined };
    return outcomeOf(() => checkJobs(engine.q, jobs, Date.now()));
  }

  async startSteps(queue: string, start: StepStart): Promise<Outcome<(string | null)[]>> {
    return this.write(queue, (q, now) => startSteps(q, start, now));
  }

  async cancelSteps(queue: string, ids: string[]): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => cancelSteps(q, ids, now));
  }

  async uniqueRivals(_queue: string, questions: UniqueQuestion[]): Promise<UniqueRivals[]> {
    const q = this.engine?.tidied();
    if (!q) return questions.map(() => ({ known: false, undecided: false, blocking: [] }));
    return questions.map((question) => rivalsHere(q, question, Date.now()));
  }

  async knownFingerprints(_queue: string, fingerprints: string[]): Promise<string[]> {
    return this.engine ? knownFingerprints(this.engine.q.sql, fingerprints) : [];
  }

  async prepareBatch(
    queue: string,
    batch: string,
    coordinator: string,
    jobs: NewJob[],
  ): Promise<Outcome<EnqueueReceipt>> {
    return this.refusal(jobs) ?? this.write(queue, (q, now) => prepareBatch(q, batch, coordinator, jobs, now));
  }

  async decideBatch(
    queue: string,
    batch: string,
    others: string[],
    answer?: RememberedAnswer,
  ): Promise<Outcome<EnqueueReceipt | null>> {
    return this.write(queue, (q, now) => decideBatch(q, batch, others, now, answer));
  }

  async commitBatch(queue: string, batch: string): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => commitBatch(q, batch, now));
  }

  async abortBatch(queue: string, batch: string): Promise<Outcome<void>> {
    return this.write(queue, (q) => abortBatch(q, batch));
  }

  async batchDecision(queue: string, batch: string): Promise<Outcome<'committed' | 'aborted'>> {
    return this.write(queue, (q, now) => decisionOf(q, batch, now));
  }

  async confirmBatch(queue: string, batch: string, queues: string[]): Promise<Outcome<void>> {
    return this.write(queue, (q, now) => confirmBatch(q, batch, queues, now));
  }

  async get(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.read(id, (q, now) => viewOf(q, mustFind(q, id), now));
  }

  async cancel(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => cancel(q, id, now));
  }

  async activate(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => activate(q, id, now));
  }

  // ---- workers that pull -------------------------------------------------------------------------------------------

  async claim(_queue: string, request: ClaimRequest): Promise<Outcome<JobView[]>> {
    const deadline = Date.now() + (request.wait_ms ?? 0);
    const { worker_id } = request;
    if (worker_id !== undefined && this.engine && (await this.silenced.has(worker_id))) return { ok: true, value: [] };
    // A queue that does not exist may be created by the time the wait is over.
    while (!this.engine && Date.now() < deadline) await scheduler.wait(Math.min(250, deadline - Date.now()));
    const unwanted = () => worker_id !== undefined && this.silenced.hasNow(worker_id);
    return this.engine?.claim(request, deadline, unwanted) ?? { ok: true, value: [] };
  }

  async ack(_queue: string, request: AckRequest): Promise<Outcome<JobView>> {
    return this.change(request.job_id, (q, now) => ack(q, request, now));
  }

  async nack(_queue: string, request: NackRequest): Promise<Outcome<JobView>> {
    return this.change(request.job_id, (q, now) => nack(q, request, now, Math.random));
  }

  async heartbeat(
    _queue: string,
    request: HeartbeatRequest,
  ): Promise<Outcome<{ extended: string[]; directive?: string }>> {
    const { engine } = this;
    if (!engine) return { ok: true, value: { extended: [] } };
    return engine.write((now) => heartbeat(engine.q, request, now));
  }

  async reportProgress(_queue: string, request: ProgressRequest): Promise<Outcome<ProgressReport>> {
    return this.change(request.job_id, (q, now) => reportProgress(q, request, now));
  }

  async progress(_queue: string, id: string): Promise<Outcome<ProgressReport>> {
    return this.read(id, (q, now) => progressOf(q, id, now));
  }

  async saveCheckpoint(_queue: string, request: CheckpointRequest): Promise<Outcome<StoredCheckpoint>> {
    return this.change(request.job_id, (q, now) => saveCheckpoint(q, request, now));
  }

  async checkpoint(_queue: string, id: string): Promise<Outcome<StoredCheckpoint | null>> {
    return this.read(id, (q) => checkpointOf(q, id));
  }

  async deleteCheckpoint(
    _queue: string,
    request: AttemptName & { job_id: string },
  ): Promise<Outcome<{ job_id: string }>> {
    return this.change(request.job_id, (q, now) => deleteCheckpoint(q, request, now));
  }

  async heldBy(_queue: string, workerId: string): Promise<HeldJob[]> {
    const q = this.engine?.tidied();
    return q ? heldBy(q, workerId) : [];
  }

  async releaseHeld(_queue: string, workerId: string): Promise<Outcome<string[]>> {
    const { engine } = this;
    return engine?.write((now) => releaseHeld(engine.q, workerId, now, Math.random)) ?? { ok: true, value: [] };
  }

  async silence(_queue: string, workerIds: string[], silenced: boolean): Promise<void> {
    this.silenced.change(workerIds, silenced);
    this.engine?.callWaiters();
  }

  // ---- reading -----------------------------------------------------------------------------------------------------

  async awaitEnd(_queue: string, id: string, waitMs: number): Promise<Outcome<JobView>> {
    const read = () => this.read(id, (q, now) => viewOf(q, mustFind(q, id), now));
    if (!this.engine) return read();
    return awaitEnd(this.engine.q.events, id, Date.now() + waitMs, () => Date.now(), read);
  }

  async getMany(_queue: string, ids: string[]): Promise<{ jobs: JobView[]; omitted: string[] }> {
    const q = this.engine?.tidied();
    return q ? getMany(q, ids, Date.now()) : { jobs: [], omitted: [] };
  }

  async list(_queue: string, request: ListRequest): Promise<Outcome<ListPage>> {
    const q = this.engine?.tidied();
    if (!q) return { ok: true, value: { jobs: [], total: 0, has_more: false } };
    return outcomeOf(() => list(q, request, Date.now()));
  }

  async deadLetters(_queue: string, request: DeadLetterRequest): Promise<Outcome<{ jobs: JobView[]; total: number }>> {
    const q = this.engine?.tidied();
    if (!q) return { ok: true, value: { jobs: [], total: 0 } };
    return outcomeOf(() => deadLetters(q, request, Date.now()));
  }

  async deadLetter(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.read(id, (q, now) => viewOfRow(q, deadLetterRow(q, id), now));
  }

  async stats(queue: string): Promise<Outcome<QueueStats>> {
    const q = this.engine?.tidied();
    if (!q) return { ok: true, value: emptyStats(queue, Date.now()) };
    return outcomeOf(() => stats(q, Date.now()));
  }

  async events(_queue: string, request: { types?: string[]; after?: string; limit: number }): Promise<QueueEvent[]> {
    return this.engine?.tidied().events.read(request) ?? [];
  }

  // ---- operators ---------------------------------------------------------------------------------------------------

  async redrive(_queue: string, id: string, options: RedriveOptions): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => redrive(q, id, options, now));
  }

  async deleteDeadLetter(_queue: string, id: string): Promise<Outcome<{ job_id: string }>> {
    return this.change(id, (q) => deleteDeadLetter(q, id));
  }

  async pause(queue: string): Promise<Outcome<QueueStatus>> {
    return this.write(queue, (q, now) => setPaused(q, true, now));
  }

  async resume(queue: string): Promise<Outcome<QueueStatus>> {
    return this.write(queue, (q, now) => setPaused(q, false, now));
  }

  async config(_queue: string): Promise<Outcome<QueueConfig>> {
    return { ok: true, value: this.engine?.q.settings ?? {} };
  }

  async configure(queue: string, change: SettingsChange): Promise<Outcome<QueueConfig>> {
    return this.write(queue, (q) => configure(q, change));
  }

  async reset(_queue: string): Promise<void> {
    this.engine?.close();
    this.engine = undefined;
    this.opening = undefined;
    this.silenced.forget();
    await this.clock.clear();
    await this.ctx.storage.deleteAll();
    this.clock = new AlarmClock(this.ctx.storage, null);
  }

  /** The last step of a deletion. Nothing else happens here meanwhile. */
  private async destroy(at: number): Promise<void> {
    const name = this.engine?.q.name ?? '';
    await this.env.DIRECTORY.getByName('directory').unregister(name, at);
    await this.ctx.blockConcurrencyWhile(() => this.reset(name));
  }

  override async alarm(): Promise<void> {
    if (this.engine) this.engine.alarm();
    else this.clock.fired(Date.now());
  }

  // ---- opening -----------------------------------------------------------------------------------------------------

  private open(): QueueEngine {
    return new QueueEngine({
      storage: this.ctx.storage,
      clock: this.clock,
      config: this.usableConfig(),
      random: Math.random,
      now: () => Date.now(),
      keepAlive: (promise) => this.ctx.waitUntil(promise),
      peer: (queue) => this.env.QUEUES.getByName(queue) as unknown as QueueApi,
      destroy: (at) => this.destroy(at),
      enqueueAcross: (job) => this.enqueueAcross(this.engine?.q.name ?? '', job),
      workflow: (id) => this.env.WORKFLOWS.getByName(id) as unknown as WorkflowApi,
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

  /** Opens the queue, creating it at its first use: registered in the directory first, so that its ids have a route. */
  private async openOrCreate(name: string): Promise<QueueEngine> {
    if (this.engine) return this.engine;
    this.opening ??= this.create(name).finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  private async create(name: string): Promise<QueueEngine> {
    const { storage } = this.ctx;
    const known = await this.env.DIRECTORY.getByName('directory').register(name);
    storage.transactionSync(() => {
      migrate(storage);
      writeMeta(storage.sql, 'name', name);
      writeMeta(storage.sql, 'route', known.route);
      writeMeta(storage.sql, 'created_at', Date.now());
    });
    this.engine = this.open();
    return this.engine;
  }

  /** A queue that does not exist yet is not created by jobs that are refused anyway. */
  protected refusal(jobs: readonly NewJob[]): (Outcome<never> & { ok: false }) | undefined {
    if (this.engine) return undefined;
    const { retryVariables } = this.usableConfig();
    const checked = outcomeOf(() => checkPolicies(jobs, () => ({ variables: retryVariables })));
    return checked.ok ? undefined : checked;
  }

  // ---- transactions ------------------------------------------------------------------------------------------------

  /** Runs a writing operation, creating the queue if need be. */
  protected async write<T>(queue: string, operation: Operation<T>): Promise<Outcome<T>> {
    const engine = await this.openOrCreate(queue);
    return engine.write((now) => operation(engine.q, now));
  }

  protected writeIfExists<T>(operation: Operation<T>): Promise<Outcome<T>> | undefined {
    const { engine } = this;
    return engine?.write((now) => operation(engine.q, now));
  }

  protected operations(): OperationDuties | undefined {
    return this.engine?.operations;
  }

  protected present(): QueueState | undefined {
    return this.engine?.tidied();
  }

  /** Through the front door, because other queues and the lock objects have a say in it. */
  protected async enqueueAcross(queue: string, job: NewJob): Promise<Outcome<EnqueuedJob>> {
    const outcome = await enqueueEntries(this.env, [{ queue, job }], false);
    return outcome.ok ? { ok: true, value: outcome.value[0] as EnqueuedJob } : outcome;
  }

  /** Runs a writing operation on a job that must exist here. */
  private async change<T>(id: string, operation: Operation<T>): Promise<Outcome<T>> {
    const { engine } = this;
    if (!engine || !isUuidV7(id)) return { ok: false, error: notFound('job', id, ENDED_JOBS_HINT).data };
    return engine.write((now) => operation(engine.q, now));
  }

  /** Reads a job that must exist here. */
  private read<T>(id: string, operation: Operation<T>): Outcome<T> {
    const q = this.engine?.tidied();
    if (!q) return { ok: false, error: notFound('job', id, ENDED_JOBS_HINT).data };
    return outcomeOf(() => operation(q, Date.now()));
  }
}
