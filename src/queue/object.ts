/**
 * The queue object: one per queue. It wires the outside (RPC, the alarm, being woken up) to the operations, one file each
 * beside this one.
 *
 * How it lives: it is constructed when touched and evicted when idle, at any moment and without notice. So everything that
 * matters is in SQLite; what is in memory can be rebuilt ({@link QueueState.open}). Time is a comparison: every
 * transaction first treats what is due as due, so nothing depends on the alarm being on time. The alarm only makes happen
 * what nobody asks for; it claims, starts deliveries, arms the next one and returns, and never throws.
 */
import { DurableObject } from 'cloudflare:workers';
import { type Config, type Env, readConfig } from '../config';
import type { StoppedTarget } from '../dispatch/health';
import { ApiError, notFound, type Outcome, outcomeOf, unwrap } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import type { JobView, NewJob } from '../job/record';
import { activate } from './activate';
import type {
  AckRequest,
  ClaimRequest,
  DeadLetterRequest,
  EnqueueReceipt,
  HeartbeatRequest,
  ListPage,
  ListRequest,
  NackRequest,
  QueueApi,
  QueueConfig,
  QueueEvent,
  QueueStats,
  QueueStatus,
} from './api';
import {
  abortBatch,
  commitBatch,
  confirmBatch,
  decideBatch,
  decisionOf,
  dueBatches,
  nextBatchCheck,
  prepareBatch,
} from './batch';
import { cancel } from './cancel';
import { claim } from './claim';
import { Committer } from './commit';
import { checkPolicies, enqueue } from './enqueue';
import { expireDue } from './expire';
import { ENDED_JOBS_HINT, mustFind, viewOf, viewOfRow } from './find';
import { heartbeat } from './heartbeat';
import { nextDue } from './lanes';
import { deadLetters, list } from './list';
import { nextPrune, prune } from './prune';
import { Pump } from './pump';
import { deadLetterRow, deleteDeadLetter, type RedriveOptions, redrive } from './redrive';
import { ack, nack } from './report';
import { rescueOverdue } from './rescue';
import { isInitialised, migrate, readMeta, writeMeta } from './schema';
import { configure, type SettingsChange, setPaused } from './settings';
import { QueueState } from './state';
import { emptyStats, stats } from './stats';
import { Waiters } from './waiters';
import { AlarmClock, planWake } from './wake';

/** After an enqueue that is pushed at once, the alarm stands by in case this object dies before the push is on record. */
const STANDBY_MS = 1_000;

/** Everything that exists once the queue has been used. */
interface Opened {
  q: QueueState;
  committer: Committer;
  pump: Pump;
}

export class QueueObject extends DurableObject<Env> implements QueueApi {
  private opened: Opened | undefined;
  private opening: Promise<Opened> | undefined;
  private clock!: AlarmClock;
  private readonly waiters = new Waiters();
  private readonly now = () => Date.now();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      this.clock = new AlarmClock(ctx.storage, await ctx.storage.getAlarm());
      if (!isInitialised(ctx.storage.sql)) return;
      this.opened = this.open();
      this.armNext();
    });
  }

  // ---- producers ---------------------------------------------------------------------------------------------------

  async enqueue(queue: string, jobs: NewJob[]): Promise<Outcome<EnqueueReceipt>> {
    const refused = this.refusedBeforeCreation(jobs);
    if (refused) return refused;
    const { q } = await this.openOrCreate(queue);
    return this.write(q, (now) => enqueue(q, jobs, now));
  }

  async prepareBatch(
    queue: string,
    batch: string,
    coordinator: string,
    jobs: NewJob[],
  ): Promise<Outcome<EnqueueReceipt>> {
    const refused = this.refusedBeforeCreation(jobs);
    if (refused) return refused;
    const { q } = await this.openOrCreate(queue);
    return this.write(q, (now) => prepareBatch(q, batch, coordinator, jobs, now));
  }

  async decideBatch(queue: string, batch: string, others: string[]): Promise<Outcome<null>> {
    return this.inBatch(queue, (q, now) => decideBatch(q, batch, others, now));
  }

  async commitBatch(queue: string, batch: string): Promise<Outcome<null>> {
    return this.inBatch(queue, (q, now) => commitBatch(q, batch, now));
  }

  async abortBatch(queue: string, batch: string): Promise<Outcome<null>> {
    return this.inBatch(queue, (q) => abortBatch(q, batch));
  }

  async batchDecision(queue: string, batch: string): Promise<Outcome<'committed' | 'aborted'>> {
    const { q } = await this.openOrCreate(queue);
    return this.write(q, (now) => decisionOf(q, batch, now));
  }

  async confirmBatch(queue: string, batch: string, queues: string[]): Promise<Outcome<null>> {
    return this.inBatch(queue, (q, now) => confirmBatch(q, batch, queues, now));
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
    const opened = this.opened;
    const deadline = this.now() + (request.wait_ms ?? 0);
    if (opened) {
      const outcome = await this.write(opened.q, (now) => claim(opened.q, request, now));
      if (!outcome.ok || outcome.value.length > 0) return outcome;
    }
    return this.waitAndClaim(request, deadline);
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
    const q = this.opened?.q;
    if (!q) return { ok: true, value: { extended: [] } };
    return this.write(q, (now) => heartbeat(q, request, now));
  }

  // ---- reading -----------------------------------------------------------------------------------------------------

  async list(_queue: string, request: ListRequest): Promise<Outcome<ListPage>> {
    const q = this.tidied();
    if (!q) return { ok: true, value: { jobs: [], total: 0, has_more: false } };
    return outcomeOf(() => list(q, request, this.now()));
  }

  async deadLetters(_queue: string, request: DeadLetterRequest): Promise<Outcome<{ jobs: JobView[]; total: number }>> {
    const q = this.tidied();
    if (!q) return { ok: true, value: { jobs: [], total: 0 } };
    return outcomeOf(() => deadLetters(q, request, this.now()));
  }

  async deadLetter(_queue: string, id: string): Promise<Outcome<JobView>> {
    return this.read(id, (q, now) => viewOfRow(q, deadLetterRow(q, id), now));
  }

  async stats(queue: string): Promise<Outcome<QueueStats>> {
    const q = this.tidied();
    if (!q) return { ok: true, value: emptyStats(queue, this.now()) };
    return outcomeOf(() => stats(q, this.now()));
  }

  async events(_queue: string, request: { types?: string[]; after?: string; limit: number }): Promise<QueueEvent[]> {
    return this.tidied()?.events.read(request) ?? [];
  }

  // ---- operators ---------------------------------------------------------------------------------------------------

  async redrive(_queue: string, id: string, options: RedriveOptions): Promise<Outcome<JobView>> {
    return this.change(id, (q, now) => redrive(q, id, options, now));
  }

  async deleteDeadLetter(_queue: string, id: string): Promise<Outcome<{ job_id: string }>> {
    return this.change(id, (q) => deleteDeadLetter(q, id));
  }

  async pause(queue: string): Promise<Outcome<QueueStatus>> {
    const { q } = await this.openOrCreate(queue);
    return this.write(q, (now) => setPaused(q, true, now));
  }

  async resume(queue: string): Promise<Outcome<QueueStatus>> {
    const { q } = await this.openOrCreate(queue);
    return this.write(q, (now) => setPaused(q, false, now));
  }

  async config(_queue: string): Promise<Outcome<QueueConfig>> {
    return { ok: true, value: this.opened?.q.settings ?? {} };
  }

  async configure(queue: string, change: SettingsChange): Promise<Outcome<QueueConfig>> {
    const { q } = await this.openOrCreate(queue);
    return this.write(q, () => configure(q, change));
  }

  async reset(_queue: string): Promise<void> {
    this.opened?.committer.close();
    this.opened = undefined;
    this.opening = undefined;
    await this.clock.clear();
    await this.ctx.storage.deleteAll();
    this.clock = new AlarmClock(this.ctx.storage, null);
  }

  // ---- the alarm ---------------------------------------------------------------------------------------------------

  override async alarm(): Promise<void> {
    try {
      this.clock.fired(this.now());
      const opened = this.opened;
      if (!opened) return;
      opened.committer.runNow((now) => prune(opened.q, now));
      if (opened.q.leases.trim()) opened.q.recordSequence(opened.q.nextSequence);
      opened.pump.start();
      this.waiters.notify();
      this.ctx.waitUntil(
        this.finishBatches().catch((error) => console.error('tocsin: a batch could not be finished yet', error)),
      );
    } catch (error) {
      console.error('tocsin: the alarm could not do all its work', error);
      this.clock.forget();
      this.clock.arm(this.now() + 1_000, this.now());
    } finally {
      this.armNextSafely();
    }
  }

  private armNextSafely(): void {
    try {
      this.armNext();
    } catch (error) {
      console.error('tocsin: the next wake could not be planned', error);
      this.clock.forget();
      this.clock.arm(this.now() + 1_000, this.now());
    }
  }

  /** Plans the next wake from all that is stored, and arms the alarm for it. */
  private armNext(): void {
    const opened = this.opened;
    if (!opened) return;
    const { q, pump } = opened;
    const now = this.now();
    const next = planWake({
      job: nextDue(q, now),
      lease: Number.isFinite(q.leases.earliest) ? q.leases.earliest : undefined,
      expiry: Number.isFinite(q.nextExpiry) ? q.nextExpiry : undefined,
      prune: nextPrune(q),
      batch: nextBatchCheck(q),
      target: pump.nextTrial(now),
      push: pump.hasWork(now) ? now : undefined,
    });
    if (next !== null) this.clock.arm(next, now);
  }

  // ---- opening, transactions ---------------------------------------------------------------------------------------

  private open(): Opened {
    const { storage } = this.ctx;
    migrate(storage);
    const config = this.safeConfig();
    const q = QueueState.open(storage.sql, config.retryVariables);
    const stopped = (readMeta(storage.sql).get('stopped') as StoppedTarget[] | undefined) ?? [];
    const committer = new Committer(storage, this.clock, q, {
      now: this.now,
      tidy: (state, now) => {
        rescueOverdue(state, now, Math.random);
        expireDue(state, now);
      },
      workArrived: () => {
        opened.pump.start();
        this.waiters.notify();
      },
    });
    const pump = new Pump(
      {
        q,
        targets: config.targets,
        random: Math.random,
        now: this.now,
        write: (operation) => committer.run(operation),
        keepAlive: (promise) => this.ctx.waitUntil(promise),
        wakeAt: (at) => this.clock.arm(at, this.now()),
      },
      stopped,
    );
    const opened = { q, committer, pump };
    return opened;
  }

  /** A deployment with mistakes in its settings answers them to requests; jobs that exist stay where they are. */
  private safeConfig(): Pick<Config, 'retryVariables' | 'targets'> {
    try {
      return readConfig(this.env);
    } catch (error) {
      console.error('tocsin: invalid configuration', error);
      return { retryVariables: {}, targets: [] };
    }
  }

  /** A queue that does not exist yet is not created by jobs that are refused anyway. */
  private refusedBeforeCreation(jobs: readonly NewJob[]): (Outcome<never> & { ok: false }) | undefined {
    if (this.opened) return undefined;
    const checked = outcomeOf(() => checkPolicies(jobs, () => ({ variables: this.safeConfig().retryVariables })));
    return checked.ok ? undefined : checked;
  }

  /** Opens the queue, creating it at its first use: registered in the directory first, so that its ids have a route. */
  private async openOrCreate(name: string): Promise<Opened> {
    if (this.opened) return this.opened;
    this.opening ??= this.create(name).finally(() => {
      this.opening = undefined;
    });
    return this.opening;
  }

  private async create(name: string): Promise<Opened> {
    const known = await this.env.DIRECTORY.getByName('directory').register(name);
    if (this.opened) return this.opened;
    this.ctx.storage.transactionSync(() => {
      migrate(this.ctx.storage);
      writeMeta(this.ctx.storage.sql, 'name', name);
      writeMeta(this.ctx.storage.sql, 'route', known.route);
      writeMeta(this.ctx.storage.sql, 'created_at', this.now());
    });
    this.opened = this.open();
    return this.opened;
  }

  /** Runs a writing operation in the next shared transaction. */
  private async write<T>(q: QueueState, operation: (now: number) => T): Promise<Outcome<T>> {
    const { committer } = this.opened as Opened;
    try {
      return { ok: true, value: await committer.run((now) => this.standingBy(q, now, () => operation(now))) };
    } catch (error) {
      if (error instanceof ApiError) return { ok: false, error: error.data };
      throw error;
    }
  }

  private standingBy<T>(q: QueueState, now: number, operation: () => T): T {
    const value = operation();
    if (q.workArrived && this.opened?.pump.pushes && !q.paused) q.wake(now + STANDBY_MS);
    return value;
  }

  private async inBatch(queue: string, operation: (q: QueueState, now: number) => void): Promise<Outcome<null>> {
    const { q } = await this.openOrCreate(queue);
    return this.write(q, (now) => {
      operation(q, now);
      return null;
    });
  }

  /** Unfinished batches over several queues: asks who decides, tells who has not heard. */
  private async finishBatches(): Promise<void> {
    const opened = this.opened;
    const checkAt = opened && nextBatchCheck(opened.q);
    if (!opened || checkAt === undefined || checkAt > this.now()) return;
    const { q } = opened;
    const duties = await opened.committer.run((now) => dueBatches(q, now));
    for (const { batch, coordinator } of duties.ask) {
      const decided = unwrap(await this.env.QUEUES.getByName(coordinator).batchDecision(coordinator, batch));
      await opened.committer.run((now) =>
        decided === 'committed' ? commitBatch(q, batch, now) : abortBatch(q, batch),
      );
    }
    for (const { batch, queues } of duties.tell) {
      for (const queue of queues) unwrap(await this.env.QUEUES.getByName(queue).commitBatch(queue, batch));
      await opened.committer.run((now) => confirmBatch(q, batch, queues, now));
    }
  }

  /** Runs a writing operation on a job that must exist here. */
  private async change<T>(id: string, operation: (q: QueueState, now: number) => T): Promise<Outcome<T>> {
    const q = this.opened?.q;
    if (!q || !isUuidV7(id)) return { ok: false, error: notFound('job', id, ENDED_JOBS_HINT).data };
    return this.write(q, (now) => operation(q, now));
  }

  private read<T>(id: string, operation: (q: QueueState, now: number) => T): Outcome<T> {
    const q = this.tidied();
    if (!q) return { ok: false, error: notFound('job', id, ENDED_JOBS_HINT).data };
    return outcomeOf(() => operation(q, this.now()));
  }

  /** The queue with everything due treated as due; undefined when it was never used. */
  private tidied(): QueueState | undefined {
    const opened = this.opened;
    if (!opened) return undefined;
    const now = this.now();
    if (now >= opened.q.leases.earliest || now >= opened.q.nextExpiry) opened.committer.runNow(() => undefined);
    this.watch(now);
    return opened.q;
  }

  /** An alarm that should have fired long ago has been lost: arm it again. */
  private watch(now: number): void {
    const armed = this.clock.armedAt;
    if (armed !== null && armed + 5_000 < now) this.armNextSafely();
  }

  /** Long poll: waits in memory, costing no rows, until work may have arrived or the time is up. */
  private async waitAndClaim(request: ClaimRequest, deadline: number): Promise<Outcome<JobView[]>> {
    for (;;) {
      const now = this.now();
      if (now >= deadline) return { ok: true, value: [] };
      const q = this.opened?.q;
      const next = q ? Math.min(nextDue(q, now) ?? deadline, q.leases.earliest, deadline) : deadline;
      await this.waiters.wait(Math.max(1, next - now));
      const opened = this.opened;
      if (!opened) continue;
      const outcome = await this.write(opened.q, (at) => claim(opened.q, request, at));
      if (!outcome.ok || outcome.value.length > 0) return outcome;
    }
  }
}
