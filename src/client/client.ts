/** The client: enqueues jobs, and has one object for each kind of thing that the server knows. */
import { defaultsIn } from '../handler/runnable';
import { ignoreRejection, safely } from '../job/thrown';
import type { JobEnvelope } from '../producer/envelope';
import { jobIds, uuidv7 } from '../producer/id';
import type { CronJobOptions, EnqueueOptions, JobOptions, NewJob, StepOptions } from '../producer/job';
import { refuseUnknown } from '../producer/known';
import { type Alerts, createAlerts } from './alerts';
import { type Audit, createAudit } from './audit';
import { type Bulk, createBulk } from './bulk';
import { type CronGroups, type Crons, createCronGroups, createCrons } from './cron';
import { createDeadLetters, type DeadLetters } from './dead-letters';
import { createDial } from './dial';
import { type BatchOptions, type BulkEnqueued, type BulkEnqueueOptions, Enqueuer, MAX_BATCH } from './enqueue';
import { createEvents, type Events } from './events';
import { createFailures, type Failures } from './failures';
import type { Following } from './follow';
import { createStoredJobs, type StoredJobs } from './jobs';
import { createKeys, type Keys } from './keys';
import { createMaintenance, type Maintenance } from './maintenance';
import { CLIENT_OPTIONS, type ClientOptions } from './options';
import type { ListOptions } from './pages';
import type { JobPatch } from './patch';
import { createPools, type Pools } from './pools';
import { ProducerSockets } from './producer-sockets';
import { PullWorker } from './pull';
import type { WorkerOptions } from './pull-types';
import type { WorkerConnection } from './puller';
import type { JobQuery } from './queries';
import { createQueues, type Queues } from './queues';
import { createRateLimits, type RateLimits } from './rate-limits';
import { createRequests, type Requests } from './requests';
import { createSchemas, type Schemas } from './schemas';
import { createServer, type Server } from './server';
import { createStatistics, type Statistics } from './stats';
import { JobStream, type StreamOptions } from './stream';
import { createTargets, type Targets } from './targets';
import { createTokens, type TokenOptions, type Tokens } from './tokens';
import { addressOf, createOpen, createSend } from './transport';
import { createWebhooks, type Webhooks } from './webhooks';
import { createWorkers, type Workers } from './workers';
import { type Flow, flow } from './workflow';
import { createWorkflows, type Workflows } from './workflows';

/** Job arguments by type. Without the type parameter any arguments are accepted. */
export type AnyJobs = Record<string, readonly unknown[]>;

/** A job of any type of a job map. */
export type JobOf<Jobs extends Record<keyof Jobs, readonly unknown[]>, Options = JobOptions> = {
  [Type in keyof Jobs & string]: NewJob<Type, Jobs[Type], Options>;
}[keyof Jobs & string];

/** A stored job of any type of a job map; its `type` determines its `args`. */
export type StoredJobOf<Jobs extends Record<keyof Jobs, readonly unknown[]>> = string extends keyof Jobs
  ? JobEnvelope
  : { [Type in keyof Jobs & string]: JobEnvelope<Jobs[Type]> & { type: Type } }[keyof Jobs & string];

/**
 * Enqueues jobs from a Worker with a service binding, or from anywhere by URL. Enqueues made in the same turn share a
 * request.
 *
 * @example
 * type Jobs = { 'email.send': [{ to: string; subject: string }] };
 *
 * const tocsin = new TocsinClient<Jobs>({ service: env.TOCSIN, key: env.TOCSIN_KEY });
 * const job = await tocsin.enqueue('email.send', [{ to: 'a@example.com', subject: 'Hello' }], { delay: '10s' });
 * console.log(job.id, job.state); // "0190…" "scheduled"
 */
export class TocsinClient<Jobs extends Record<keyof Jobs, readonly unknown[]> = AnyJobs> {
  readonly #options: ClientOptions;
  readonly #requests: Requests;
  readonly #enqueuer: Enqueuer;
  /** Shared with the clients that are made from this one. */
  #sockets: ProducerSockets | undefined;

  /** Makes workflows: `const { chain, group, batch, graph } = tocsin.flow;` */
  readonly flow: Flow<JobOf<Jobs, StepOptions>> = flow as unknown as Flow<JobOf<Jobs, StepOptions>>;

  /** Jobs that exist: `await tocsin.jobs.wait(job.id);` */
  readonly jobs: StoredJobs;

  /** Operations on many jobs: `await tocsin.bulk.cancel({ queue: 'mail', type: 'email.*' });` */
  readonly bulk: Bulk;

  /** Schedules: `await tocsin.cron.put({ name, expression: '@daily', job: { type: 'report.build', args: [] } });` */
  readonly cron: Crons<JobOf<Jobs, CronJobOptions>>;

  /** All schedules of an application at once: `await tocsin.cronGroups.put('billing', entries);` */
  readonly cronGroups: CronGroups<JobOf<Jobs, CronJobOptions>>;

  /** Starts and reads workflows: `await tocsin.workflows.start(chain(first, second));` */
  readonly workflows: Workflows<JobOf<Jobs, StepOptions>>;

  /** Discarded jobs that wait for a human: `await tocsin.deadLetters.retry(id);` */
  readonly deadLetters: DeadLetters;

  /** Failed jobs in groups: `const { items } = await tocsin.failures.list();` */
  readonly failures: Failures;

  /** Queues as a whole: `await tocsin.queues.pause('mail');` */
  readonly queues: Queues;

  /** Keys that jobs count under: `await tocsin.rateLimits.override('stripe', { concurrency: 0 });` */
  readonly rateLimits: RateLimits;

  /** Workers that pull, as operators see them: `await tocsin.workers.quiet(id);` */
  readonly workers: Workers;

  /** The handler Workers that jobs are pushed to: `await tocsin.targets.resume('EMAIL');` */
  readonly targets: Targets;

  /** Events, as they happen or recently: `for await (const event of tocsin.events.follow({ queue: 'mail' })) …` */
  readonly events: Events;

  /** The deployment: `await tocsin.server.health();` */
  readonly server: Server;

  /** Numbers of queues: `const { errorRate } = await tocsin.stats.get('mail');` */
  readonly stats: Statistics;

  /** Maintenance: `await tocsin.maintenance.begin({ reason: 'The database moves.', duration: '20m' });` */
  readonly maintenance: Maintenance;

  /** Who is notified of events: `await tocsin.webhooks.create({ url, events: ['job.discarded'] });` */
  readonly webhooks: Webhooks;

  /** Numbers that are watched: `await tocsin.alerts.create({ name, metric: 'depth', above: 10_000 });` */
  readonly alerts: Alerts;

  /** Who changed what: `for await (const entry of tocsin.audit.list({ since: '24h' })) …` */
  readonly audit: Audit;

  /** Schemas of job arguments: `await tocsin.schemas.put('email.send', 1, schema);` */
  readonly schemas: Schemas;

  /** Queues that share their workers: `await tocsin.pools.put('mail', { queues: ['urgent', 'bulk'] });` */
  readonly pools: Pools;

  /** API keys made at run time: `await tocsin.keys.create({ name: 'acme web', role: 'viewer' });` */
  readonly keys: Keys;

  /** Tokens for browsers: `const { token } = await tocsin.tokens.create({ job: id, read: true });` */
  readonly tokens: Tokens;
  readonly #following: Following;

  /** @throws {TypeError} when there is neither binding nor valid url, or a setting is unknown or out of range. */
  constructor(options: ClientOptions) {
    refuseUnknown(options, CLIENT_OPTIONS, 'TocsinClient has no option');
    const {
      answers = 'minimal',
      key,
      signal,
      maxBatch = 100,
      linger,
      timeoutMs = 30_000,
      random = Math.random,
      now = Date.now,
    } = options;
    const retry = options.retry === false ? { attempts: 1 } : options.retry;
    if (!Number.isInteger(maxBatch) || maxBatch < 1 || maxBatch > MAX_BATCH) {
      throw new TypeError(`TocsinClient: maxBatch must be a whole number of 1 to ${MAX_BATCH}`);
    }
    if (answers !== 'minimal' && answers !== 'full')
      throw new TypeError('TocsinClient: answers must be minimal or full');
    const retrier = {
      attempts: retry?.attempts ?? 4,
      baseMs: retry?.baseMs ?? 100,
      maxMs: retry?.maxMs ?? 10_000,
      random,
      sleep: options.sleep ?? ((ms) => new Promise((resolve) => setTimeout(resolve, ms))),
      signal,
    };
    const defaultsOf = options.handlers ? defaultsIn(options.handlers) : () => undefined;
    const { onWarning: warn = warnOnce } = options;
    const onWarning = (warning: string) => safely(() => ignoreRejection(warn(warning)), undefined);
    const settings = { key, timeoutMs, signal, now, onWarning };
    const dial = createDial(options, settings);
    const address = addressOf(options, key);
    const requests = createRequests(createSend(options, settings), retrier, timeoutMs, now, dial, address);
    const open = createOpen(options, settings);
    const newId = () => uuidv7(now(), random);
    this.#options = options;
    this.#requests = requests;
    if (options.socket && dial)
      this.#sockets = new ProducerSockets({ dial, timeoutMs, id: `producer-${newId()}`, onWarning });
    this.#enqueuer = new Enqueuer(requests, {
      ...{ maxBatch, linger, otel: options.otel, answers, signal, sockets: () => this.#sockets },
      newId: options.safeRetries ? jobIds(now, random) : () => undefined,
      defaultsOf,
    });
    this.jobs = createStoredJobs(requests);
    this.bulk = createBulk(requests);
    this.cron = createCrons(requests, defaultsOf);
    this.cronGroups = createCronGroups(requests, defaultsOf);
    this.workflows = createWorkflows(requests, newId, defaultsOf);
    this.deadLetters = createDeadLetters(requests);
    this.failures = createFailures(requests);
    this.queues = createQueues(requests, open);
    this.rateLimits = createRateLimits(requests);
    this.workers = createWorkers(requests);
    this.targets = createTargets(requests);
    this.#following = { open, retrier };
    this.events = createEvents(requests, this.#following);
    this.server = createServer(requests);
    this.stats = createStatistics(requests);
    this.maintenance = createMaintenance(requests);
    this.webhooks = createWebhooks(requests);
    this.alerts = createAlerts(requests);
    this.audit = createAudit(requests);
    this.schemas = createSchemas(requests);
    this.pools = createPools(requests);
    this.keys = createKeys(requests);
    this.tokens = createTokens(requests);
  }

  /**
   * A client with some settings changed; its enqueues are gathered apart.
   * @example
   * await tocsin.with({ signal: request.signal }).jobs.wait(id);
   */
  with(settings: Partial<Omit<ClientOptions, 'service' | 'url' | 'fetch'>>): TocsinClient<Jobs> {
    const client = new TocsinClient<Jobs>({ ...this.#options, ...settings });
    if (settings.key === undefined && settings.socket === undefined) client.#sockets = this.#sockets;
    return client;
  }

  /** Closes its sockets once pending requests have been answered. Later enqueues go over HTTP. */
  async close(): Promise<void> {
    await this.#sockets?.close();
  }

  /**
   * Enqueues a job. When it resolves, the job is stored durably.
   *
   * @returns the job; with a unique policy that ignores duplicates possibly the one that existed, `deduplicated: true`
   * @throws {InvalidJobError} {@link DuplicateJobError} {@link QueueFullError} {@link UnavailableError} and others
   * @example
   * await tocsin.enqueue('image.resize', [{ key: 'a.png', width: 800 }], { queue: 'images', maxAttempts: 5 });
   */
  async enqueue<Type extends keyof Jobs & string>(
    type: Type,
    args: Jobs[Type],
    options: EnqueueOptions = {},
  ): Promise<JobEnvelope<Jobs[Type]>> {
    const envelope: JobEnvelope<readonly unknown[]> = await this.#enqueuer.one(type, args, options);
    // The server returns the arguments that it was given.
    return envelope as JobEnvelope<Jobs[Type]>;
  }

  /**
   * Enqueues jobs all or none, in one request of at most 1000 jobs and 16 MiB.
   * @throws {InvalidJobError} with `details.index` of the first job that is wrong; then none was enqueued
   * @example
   * await tocsin.enqueueMany(users.map((user) => ({ type: 'email.send', args: [{ to: user.email }] })));
   */
  async enqueueMany(jobs: readonly JobOf<Jobs>[], options: BatchOptions = {}): Promise<JobEnvelope[]> {
    return await this.#enqueuer.batch(jobs, options);
  }

  /**
   * Enqueues jobs each on its own, in one request of at most 1000 jobs and 16 MiB, and returns each outcome.
   * @example
   * const { items } = await tocsin.enqueueEach(jobs);
   * for (const item of items) if (item.status === 'failed') console.error(item.index, item.error.message);
   */
  async enqueueEach(jobs: readonly JobOf<Jobs>[], options: BulkEnqueueOptions = {}): Promise<BulkEnqueued> {
    return await this.#enqueuer.each(jobs, options);
  }

  /** `jobs.get`. @throws {NotFoundError} when there is none, or its retention has passed */
  async get(id: string): Promise<JobEnvelope> {
    return await this.jobs.get(id);
  }

  /** `jobs.cancel`. @throws {NotFoundError} {@link ConflictError} when the job has ended */
  async cancel(id: string): Promise<JobEnvelope> {
    return await this.jobs.cancel(id);
  }

  /** Signals a job that waits for the signal, or will: `jobs.signal`. @throws {NotFoundError} {@link ConflictError} */
  async signal(id: string, name: string, payload?: unknown): Promise<JobEnvelope> {
    return await this.jobs.signal(id, name, payload);
  }

  /**
   * An output stream of a job, until the job ends: `ctx.stream` writes it. Lost connections are made again.
   * @throws {NotFoundError} when there is no such job, or it has ended without the stream
   * @example
   * let text = '';
   * for await (const { data, isReset } of tocsin.stream<string>(id, 'tokens')) text = isReset ? data : text + data;
   * @example
   * return new Response(tocsin.stream(id, 'tokens').readable({ format: 'sse' }));
   */
  stream<T = unknown>(id: string, name: string, options: StreamOptions = {}): JobStream<T> {
    return new JobStream(this.#following, id, name, options);
  }

  /** A token for a browser: that of `tokens.create`. */
  async token(options: TokenOptions): Promise<string> {
    return (await this.tokens.create(options)).token;
  }

  /** Changes a waiting job: `jobs.patch`. @throws {NotFoundError} {@link ConflictError} {@link InvalidJobError} */
  async patch(id: string, change: JobPatch): Promise<JobEnvelope> {
    return await this.jobs.patch(id, change);
  }

  /**
   * Every job that matches, newest first, read page by page: `jobs.list`.
   * @example
   * for await (const job of tocsin.list({ queue: 'mail', state: 'discarded', where: { 'args.0.user_id': 42 } })) {
   *   console.log(job.id, job.error?.message);
   * }
   */
  list(query: JobQuery = {}, options: ListOptions = {}): AsyncGenerator<JobEnvelope> {
    return this.jobs.list(query, options);
  }

  /** How many jobs match, without reading them: `jobs.count`. */
  async count(query: JobQuery = {}): Promise<number> {
    return await this.jobs.count(query);
  }

  /**
   * A worker that pulls jobs.
   * @param id its name for itself, 1 … 255 characters
   * @example
   * const worker = tocsin.worker('greeter-1', { queues: ['greetings'] });
   * for (const job of await worker.fetch({ count: 10, waitMs: 10_000 })) await worker.ack(job, greet(job));
   */
  worker(id: string, options: WorkerOptions): PullWorker<StoredJobOf<Jobs>> {
    const connect = ({ signal, ...settings }: WorkerConnection) => {
      const signals = [this.#options.signal, signal].filter((given) => given !== undefined);
      return this.with({ ...settings, ...(signals.length > 0 && { signal: AbortSignal.any(signals) }) }).#requests;
    };
    return new PullWorker(connect, id, options);
  }
}

const MAX_TEXTS = 200;

const warned = new Set<string>();

/** Writes a warning to the console, each text once: a producer sends the same wrong job again and again. */
function warnOnce(warning: string): void {
  if (warned.has(warning) || warned.size >= MAX_TEXTS) return;
  warned.add(warning);
  console.warn(`tocsin: ${warning}`);
}
