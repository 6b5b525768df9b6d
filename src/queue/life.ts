/**
 * The life of one queue inside its object: creation, end, access modes of verbs. The object is constructed when touched
 * and evicted at any moment, so all that matters is in SQLite, and memory can be rebuilt ({@link QueueEngine}).
 */
import type { Here } from '../across/batch';
import { mayConnect } from '../across/bounds';
import { keyWithId } from '../across/known-keys';
import { takeHeartbeat } from '../across/workers';
import { type Env, usableConfig } from '../config';
import { AlarmClock } from '../durable/alarm-clock';
import type { FollowRequest } from '../durable/feed-messages';
import { Followers } from '../durable/followers';
import { QUEUE, Schema } from '../durable/schema';
import { readFact } from '../durable/sql';
import { Timers } from '../durable/timers';
import { defined } from '../job/envelope/fields';
import { eventualOutcomeOf, jobNotFound, notFound, type Outcome, outcomeOf, unwrap } from '../job/errors';
import type { JobView, RunnerView } from '../job/record';
import { renderHeartbeat } from '../job/worker/heartbeat';
import type { Connection } from '../job/worker/socket';
import { misplacement } from '../rpc/place';
import type { QueueSettings } from '../rpc/queue';
import { directoryObject } from '../rpc/stubs';
import type { ClaimRequest, StreamReceipt, StreamRequest } from '../rpc/workers';
import { below, over } from '../settings';
import { type Creation, createQueue, type Operation, tryCreation } from './creation';
import { QueueEngine } from './engine';
import type { About } from './feature';
import { QuietWorkers } from './features/pull/quiet-workers';
import { enqueueFromSocket } from './features/pull/socket/enqueue';
import { WorkerSockets } from './features/pull/socket/sockets';
import { KeyRates } from './jobs/key-rates';
import { writePulled } from './jobs/streams';
import { type Others, othersOf } from './others';
import { followedJob, keyOf } from './read/find';
import type { QueueParts } from './store/parts';

/** Interval at which a waiting fetch checks whether its queue exists by now, ms. */
const LOOK_EVERY_MS = 250;

export class QueueLife {
  /** The alarm's own calls do not bring it: it is stored. */
  name: string;
  private opened: QueueEngine | undefined;
  private readonly schema: Schema;
  /** Why the stored queue could not be opened: this code must leave it as it is, or its storage failed. */
  private refusal: unknown;
  private clock!: AlarmClock;
  /** The queue is being created. */
  private creation: Promise<unknown> | undefined;
  /** Claims under way, by the names of their waiters. */
  private readonly early = new Map<string, { isGone: boolean }>();
  readonly followers: Followers;
  readonly others: Others;
  readonly rates = new KeyRates();
  readonly workers: WorkerSockets;
  readonly now = () => Date.now();
  readonly after = new Timers(this.now).after;
  private readonly silenced = new QuietWorkers(() => directoryObject(this.env).silencedWorkers(), this.now);

  /** @param own the object's own answers */
  constructor(
    private readonly ctx: DurableObjectState,
    private readonly env: Env,
    own: Here['object'],
  ) {
    this.others = othersOf(env, this);
    this.followers = new Followers(ctx, this.now);
    this.workers = new WorkerSockets({
      ctx,
      now: this.now,
      keepAlive: (promise) => ctx.waitUntil(promise),
      isSilenced: (workerId) => this.silenced.hasNow(workerId),
      askSilenced: async (workerId) => this.silenced.has(workerId),
      heartbeat: async (heard, bounds) => {
        const asked = { queues: [this.name], ...heard };
        return renderHeartbeat(await takeHeartbeat(env, asked, `queue ${this.name}`, bounds), Date.now());
      },
      enqueue: (batch, creator, by) =>
        enqueueFromSocket(env, { queue: this.name, object: own }, batch, { creator, by, now: Date.now() }),
      keyOf: async ({ key, ...worker }) => {
        const found = key && (await keyWithId(env, key.id, Date.now(), key.hash));
        return found && mayConnect(found.bounds, this.name, worker) ? { ...found, hash: key.hash } : undefined;
      },
      writeStream: async (request) => unwrap(await this.writeStream(request)),
      directiveOf: async (workerId) => (await directoryObject(env).worker(workerId))?.directive ?? 'running',
    });
    this.schema = new Schema(ctx.storage, QUEUE, ctx.id.name, misplacement(ctx.id, env));
    this.name = ctx.id.name ?? '';
    void ctx.blockConcurrencyWhile(async () => {
      this.clock = new AlarmClock(ctx.storage, await ctx.storage.getAlarm());
      this.openStored();
    });
  }

  /** Undefined while the queue does not exist. @throws why the stored queue cannot be opened */
  get engine(): QueueEngine | undefined {
    if (this.refusal) this.openStored();
    if (this.refusal) throw this.refusal;
    return this.opened;
  }

  async alarm(): Promise<void> {
    await this.clock.ring(() => {
      if (this.engine) this.engine.alarm();
      else this.clock.fired(Date.now());
    });
  }

  /** Opens the queue if one is stored. Never throws: an object whose constructor fails has no alarm for long. */
  private openStored(): void {
    this.refusal = undefined;
    try {
      if (!this.schema.exist()) return;
      this.name = readFact(this.ctx.storage.sql, 'name') as string;
      this.opened = this.open();
      this.opened.armNext();
    } catch (error) {
      this.refusal = error;
      this.opened = undefined;
    }
  }

  /** Empties the object: rows, alarm, memory. */
  async reset(): Promise<void> {
    this.silenced.forget();
    this.followers.dismiss();
    this.workers.dismiss();
    this.opened?.close();
    this.opened = undefined;
    this.creation = undefined;
    await this.clock.clear();
    await this.ctx.storage.deleteAll();
    this.clock = new AlarmClock(this.ctx.storage, null);
  }

  /** The state to read from; undefined when the queue does not exist. @param about the jobs to be read */
  present(about?: About): QueueParts | undefined {
    return this.engine?.tidied(about);
  }

  /** A read that may be refused; undefined when the queue does not exist. @param about the jobs to be read */
  read<T>(operation: Operation<T>, about?: About): Outcome<T> | undefined {
    const q = this.present(about);
    return q && outcomeOf(() => operation(q, Date.now()));
  }

  /** As {@link read}, of the whole queue: waits a while if much is overdue. */
  async readAll<T>(operation: Operation<T>): Promise<Outcome<T> | undefined> {
    const late = await this.engine?.caughtUp();
    return late ? { ok: false, error: late.data } : this.read(operation);
  }

  /**
   * Runs a writing operation, creating the queue if need be. A refused one leaves nothing.
   * @param creates does this result need a queue that does not exist yet? @param about the jobs that it names
   */
  async write<T>(
    operation: Operation<T>,
    creates: (value: T) => boolean = () => true,
    about?: About,
  ): Promise<Outcome<T>> {
    while (!this.engine && this.creation) await this.creation;
    const written = this.writeIfExists(operation, about);
    if (written) return written;
    const created = createQueue(this.creationPlace(), operation, creates);
    this.creation = created
      .catch(() => undefined)
      .finally(() => {
        this.creation = undefined;
      });
    return created;
  }

  /** Runs a writing operation; undefined when the queue does not exist. @param about the jobs that it names */
  writeIfExists<T>(operation: Operation<T>, about?: About): Promise<Outcome<T>> | undefined {
    const { engine } = this;
    return engine?.write((now) => operation(engine.q, now), about);
  }

  /** The result that an operation would have, whether the queue exists or not. Nothing stays written. */
  async consider<T>(operation: Operation<T>): Promise<Outcome<T>> {
    return this.read(operation) ?? tryCreation(this.creationPlace(), operation);
  }

  /** Waits while the queue is being created. */
  async created(): Promise<void> {
    await this.creation;
  }

  // ---- verbs that need more than the engine ----------------------------------------------------

  /** A claim that may wait, also for the queue itself. */
  async claim(request: ClaimRequest): Promise<Outcome<JobView[]>> {
    const deadline = Date.now() + (request.wait_ms ?? 0);
    const { worker_id, waiter } = request;
    const early = { isGone: false };
    if (waiter !== undefined) this.early.set(waiter, early);
    if (worker_id !== undefined && this.engine) {
      const silenced = this.silenced.has(worker_id);
      // An answer known at once costs no turn, so that a claim stays in the transaction of the reports before it.
      if (typeof silenced === 'boolean' ? silenced : await silenced) early.isGone = true;
    }
    while (!this.engine && !early.isGone && Date.now() < deadline) {
      await scheduler.wait(Math.min(LOOK_EVERY_MS, deadline - Date.now()));
    }
    const isUnwanted = () => early.isGone || (worker_id !== undefined && this.silenced.hasNow(worker_id));
    let claimed: Outcome<RunnerView[]> = { ok: true, value: [] };
    // Jobs may wait for what a desk is about to answer: a worker that asks seldom must not come too early each time.
    for (let tries = 0; tries < 2 && claimed.ok && claimed.value.length === 0; tries++) {
      if (early.isGone || !this.engine || (tries > 0 && !(await this.engine.desksAnswer()))) break;
      claimed = await this.engine.pull.claim(request, deadline, isUnwanted);
    }
    if (waiter !== undefined) this.early.delete(waiter);
    // The body crosses as text.
    return claimed.ok ? { ok: true, value: claimed.value.map(({ record, layers }) => ({ record, layers })) } : claimed;
  }

  withdraw(waiter: string): void {
    const early = this.early.get(waiter);
    if (early) early.isGone = true;
    this.engine?.pull.withdraw(waiter);
  }

  /** These workers must get no more jobs, or may again. */
  silence(workerIds: readonly string[], silenced: boolean): void {
    this.silenced.change(workerIds, silenced);
    this.engine?.pull.dismissUnwanted();
    this.workers.directed(workerIds, silenced);
  }

  async connectWorker(worker: Connection): Promise<Outcome<Response>> {
    await this.created();
    await this.silenced.has(worker.worker_id);
    return outcomeOf(() => {
      void this.engine;
      return this.workers.accept(worker);
    });
  }

  /** Shows chunks of an output stream. @returns once they are written */
  async writeStream(request: StreamRequest): Promise<Outcome<StreamReceipt>> {
    await this.created();
    const { job_id } = request;
    const taken = this.read(
      (_, now) => this.engine && writePulled(this.engine.around, request, now),
      (q) => [keyOf(q, job_id)],
    );
    if (!taken?.ok) return taken ?? jobNotFound(job_id);
    return eventualOutcomeOf(async () => (await taken.value) as StreamReceipt);
  }

  /** Answers the upgrade of a follower: of the queue, or of one job in it. */
  async follow(wanted: FollowRequest): Promise<Outcome<Response>> {
    await this.created();
    const { job } = wanted;
    if (job === undefined) {
      return this.read(() => this.followers.accept(wanted)) ?? { ok: false, error: notFound('queue', this.name).data };
    }
    const answer = this.read(
      (q, now) => this.followers.accept(wanted, followedJob(q, job, now)),
      (q) => [keyOf(q, job)],
    );
    return answer ?? jobNotFound(job);
  }

  async settings(): Promise<Outcome<QueueSettings>> {
    // A queue that does not exist would be created with those of the deployment.
    const ofNew = () => directoryObject(this.env).queueDefaults(this.name);
    const { own, defaults } = this.engine?.q.config ?? { own: {}, defaults: (await ofNew()) ?? undefined };
    const value = { own, effective: over(own, below(defaults)), declared: defaults?.declared };
    return { ok: true, value: defined(value) };
  }

  // ---- creation and deletion -------------------------------------------------------------------

  private creationPlace(): Creation {
    return {
      name: this.name,
      storage: this.ctx.storage,
      clock: this.clock,
      variables: usableConfig(this.env).retryVariables,
      directory: directoryObject(this.env),
      open: () => {
        this.opened = this.open();
        return this.opened;
      },
      abandon: () => {
        this.opened = undefined;
        this.workers.detach();
      },
    };
  }

  private open(): QueueEngine {
    const engine = new QueueEngine({
      storage: this.ctx.storage,
      clock: this.clock,
      config: usableConfig(this.env),
      random: Math.random,
      now: this.now,
      analytics: this.env.ANALYTICS,
      keepAlive: (promise) => this.ctx.waitUntil(promise),
      after: this.after,
      others: this.others,
    });
    this.followers.attach(engine.q.observed.events);
    engine.q.store.streams.show = (job, shown) => this.followers.show(job, shown);
    this.workers.attach({ q: engine.q, pull: engine.pull, write: (operation) => engine.write(operation) });
    return engine;
  }

  /** The last step of a deletion. Nothing else happens here meanwhile. */
  async destroy(at: number): Promise<void> {
    await directoryObject(this.env).unregister(this.name, at);
    await this.ctx.blockConcurrencyWhile(() => this.reset());
  }
}
