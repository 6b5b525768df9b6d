/**
 * How a queue object lives: it is constructed when touched and evicted when idle, at any moment and without notice. So everything
 * that matters is in SQLite, and what is in memory can be rebuilt ({@link QueueEngine}). An object that was never written to
 * has no tables, no alarm and no name; the first job registers it in the directory and creates them.
 */
import { DurableObject } from 'cloudflare:workers';
import { v7 as uuidv7 } from 'uuid';
import { type Config, type Env, readConfig } from '../config';
import { type ErrorData, notFound, type Outcome, outcomeOf } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import type { NewJob } from '../job/record';
import { directoryObject } from '../routing/objects';
import { enqueueEntries } from '../routing/unique';
import { Reservations } from '../unique/reservation';
import type { WorkflowApi } from '../workflow/api';
import type { EnqueuedJob, QueueApi } from './api';
import { QueueEngine } from './engine';
import { type NewQueueLayers, refuseForNewQueue } from './jobs/enqueue';
import { ENDED_JOBS_HINT } from './jobs/find';
import { refuseLocked } from './jobs/lock';
import type { QueueState } from './state';
import { isInitialised, migrate, writeMeta } from './storage/schema';
import { AlarmClock } from './wake';

/** What is done to a queue in a transaction at `now` (epoch ms). */
export type Operation<T> = (q: QueueState, now: number) => T;

export abstract class QueueHost extends DurableObject<Env> {
  /** Undefined while the queue does not exist. */
  protected engine: QueueEngine | undefined;
  private opening: Promise<QueueEngine> | undefined;
  private clock!: AlarmClock;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    void ctx.blockConcurrencyWhile(async () => {
      this.clock = new AlarmClock(ctx.storage, await ctx.storage.getAlarm());
      if (!isInitialised(ctx.storage.sql)) return;
      this.engine = this.open();
      this.engine.armNext();
    });
  }

  async reset(_queue: string): Promise<void> {
    this.engine?.close();
    this.engine = undefined;
    this.opening = undefined;
    await this.clock.clear();
    await this.ctx.storage.deleteAll();
    this.clock = new AlarmClock(this.ctx.storage, null);
  }

  /** The last step of a deletion. Nothing else happens here meanwhile. */
  private async destroy(at: number): Promise<void> {
    const name = this.engine?.q.name ?? '';
    await directoryObject(this.env).unregister(name, at);
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
      reservations: (coordinator) => new Reservations(this.env, uuidv7(), coordinator),
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

  /** Waits for a creation that is under way. */
  protected async opened(): Promise<void> {
    await this.opening?.catch(() => undefined);
  }

  private async create(name: string): Promise<QueueEngine> {
    const { storage } = this.ctx;
    const known = await directoryObject(this.env).register(name);
    storage.transactionSync(() => {
      migrate(storage);
      writeMeta(storage.sql, 'name', name);
      writeMeta(storage.sql, 'route', known.route);
      writeMeta(storage.sql, 'created_at', Date.now());
      if (known.defaults) writeMeta(storage.sql, 'defaults', known.defaults);
    });
    this.engine = this.open();
    return this.engine;
  }

  /** A queue that does not exist yet is not created by jobs that are refused anyway. */
  protected async refusal(
    queue: string,
    jobs: readonly NewJob[],
  ): Promise<(Outcome<never> & { ok: false }) | undefined> {
    if (this.engine) return undefined;
    const lower = await this.lowerLayers();
    const checked = outcomeOf(() => refuseForNewQueue(queue, jobs, lower, Date.now()));
    return checked.ok ? undefined : checked;
  }

  /** Neither is it by jobs that stand each for itself, when each of them is refused: why, of each. */
  protected async refusals(queue: string, jobs: readonly NewJob[]): Promise<{ ok: false; error: ErrorData }[]> {
    if (this.engine) return [];
    const lower = await this.lowerLayers();
    const refused = jobs.flatMap((job) => {
      const checked = outcomeOf(() => refuseForNewQueue(queue, [job], lower, Date.now()));
      return checked.ok ? [] : [checked];
    });
    return refused.length === jobs.length ? refused : [];
  }

  /** What holds in a queue that says nothing itself. */
  protected async lowerLayers(): Promise<NewQueueLayers> {
    const defaults = await directoryObject(this.env).queueDefaults();
    return { settings: defaults?.config ?? {}, variables: this.usableConfig().retryVariables };
  }

  // ---- transactions ------------------------------------------------------------------------------------------------

  /** Runs a writing operation, creating the queue if need be. */
  protected async write<T>(queue: string, operation: Operation<T>): Promise<Outcome<T>> {
    const engine = await this.openOrCreate(queue);
    return engine.write((now) => operation(engine.q, now));
  }

  /** The same unless the queue does not exist. */
  protected writeIfExists<T>(operation: Operation<T>): Promise<Outcome<T>> | undefined {
    const { engine } = this;
    return engine?.write((now) => operation(engine.q, now));
  }

  /** Runs a writing operation on a job that must exist here. */
  protected async change<T>(id: string, operation: Operation<T>): Promise<Outcome<T>> {
    const { engine } = this;
    if (!engine || !isUuidV7(id)) return { ok: false, error: notFound('job', id, ENDED_JOBS_HINT).data };
    return engine.write((now) => {
      refuseLocked(engine.q, id);
      return operation(engine.q, now);
    });
  }

  /** The state to read from; undefined when the queue does not exist. */
  protected present(): QueueState | undefined {
    return this.engine?.tidied();
  }

  /** Through the front door, because other queues and the lock objects have a say in it. */
  protected async enqueueAcross(queue: string, job: NewJob): Promise<Outcome<EnqueuedJob>> {
    const outcome = await enqueueEntries(this.env, [{ queue, job }], false);
    return outcome.ok ? { ok: true, value: outcome.value[0] as EnqueuedJob } : outcome;
  }

  /** Reads a job that must exist here. */
  protected read<T>(id: string, operation: Operation<T>): Outcome<T> {
    const q = this.present();
    if (!q) return { ok: false, error: notFound('job', id, ENDED_JOBS_HINT).data };
    return outcomeOf(() => operation(q, Date.now()));
  }
}
