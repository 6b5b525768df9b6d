/**
 * What a queue object answers over RPC. The HTTP layer talks to this interface and nothing else; every method takes
 * the queue's name first, because an object that was never used does not know its own.
 *
 * Rules of all methods: errors of the product's rules come back as `{ ok: false, error }`, only defects throw; reading
 * never writes; a write is answered only when it is durable (the runtime's output gate).
 */
import type { Outcome } from '../job/errors';
import type { Limits } from '../job/limits/policy';
import type { JobRecord, JobState, JobView, LowerLayers, NewJob, RetryInput, UniquePolicy } from '../job/record';
import type { StepStart, WorkflowSummary } from '../workflow/api';
import type { StoredCheckpoint } from './checkpoint-table';
import type { CronDirectoryApi, CronQueueApi } from './cron-api';
import type { JobFilter } from './filter';
import type { LimitStanding, LimitsApi } from './limits/api';
import type { IdempotencyKey, OperationsApi, RememberedAnswer } from './operations-api';

/** What the producer needs to build its envelopes: one entry for each job, in the order given. */
export interface EnqueueReceipt {
  jobs: EnqueuedJob[];
}

/** The job that an entry of an enqueue has led to. */
export interface EnqueuedJob {
  record: JobRecord;
  layers: LowerLayers;
  /** It existed already, and the unique policy of the entry said to leave it at that. */
  deduplicated?: true;
  /** In the first of a request: the queue is nearly full. */
  pressure?: QueuePressure;
  /** In the only one of a request: where it leaves the key that limits it. */
  standing?: LimitStanding;
}

/** How full a bounded queue is. */
export interface QueuePressure {
  /** Jobs that have not ended. */
  depth: number;
  bound: number;
}

/** Asks about a fingerprint on behalf of a newcomer to another queue. */
export type UniqueQuestion = Pick<UniquePolicy, 'fingerprint' | 'states' | 'period_ms'>;

/** What one queue knows of a fingerprint. */
export interface UniqueRivals {
  /** Is there any job with it, in whatever state? */
  known: boolean;
  /** A batch that is not decided yet has one that may stand in the way. */
  undecided: boolean;
  /** Those in the way, newest first. */
  blocking: JobView[];
}

/** A ticket is honoured for so long after it was made, ms. */
export const MAX_TICKET_AGE_MS = 60_000;

/** Names the attempt that a report is about; absent members are not checked. */
export interface AttemptName {
  attempt?: number;
  delivery_id?: string;
  worker_id?: string;
}

/** A claim by a worker that pulls. */
export interface ClaimRequest {
  /** 1 … 100. */
  count: number;
  worker_id?: string;
  /** Lease length in ms; absent: the job's, else the queue's, else 30 minutes. */
  visibility_timeout_ms?: number;
  /** Wait up to this long for work, 0 … 20000 ms. */
  wait_ms?: number;
}

/** A failure as a handler or worker reports it (`error` of nack, or of a push answer). */
export interface ReportedError {
  code?: string;
  type?: string;
  message?: string;
  retryable?: boolean;
  details?: unknown;
  /** Class names, own class first. */
  classes?: string[];
  kill?: boolean;
  /** A duration, see `job/duration`. */
  retry_in?: unknown;
  /** RFC 3339 or epoch ms. */
  retry_at?: unknown;
}

export interface AckRequest extends AttemptName {
  job_id: string;
  /** JSON text of the result, if one was given. */
  result?: string;
}

export interface NackRequest extends AttemptName {
  job_id: string;
  error: ReportedError;
  /** Give the job back without an error; the attempt stays counted. */
  requeue?: boolean;
}

/** A page of jobs, newest first. */
export interface ListRequest {
  states?: JobState[];
  /** Exact type, or a prefix ending in `*`. */
  type?: string;
  /** Only jobs before this position (exclusive), from a former page. */
  before?: number;
  /** Only jobs created at or before this time, epoch ms. */
  createdUntil?: number;
  /** Further conditions. */
  filter?: JobFilter;
  /** False: do not count how many match in all. */
  total?: boolean;
  /** 1 … 200. */
  limit: number;
}

export interface ListPage {
  jobs: (JobView & { position: number })[];
  /** How many match in all. */
  total: number;
  /** False: at least so many; counting all would have meant reading too much. */
  total_is_exact?: false;
  /** There may be more: the page is full, or too much was read without filling it. */
  has_more: boolean;
  /** Where the next page begins: `before` of the next request. */
  next?: number;
}

export interface DeadLetterRequest {
  type?: string;
  error_type?: string;
  /** Discarded at or after / before, epoch ms. */
  since?: number;
  until?: number;
  /** How many to return, from the newest. */
  limit: number;
}

export type StateCounts = Record<JobState, number>;

export interface QueueStats {
  queue: string;
  exists: boolean;
  paused: boolean;
  /** Gives out the jobs it has and takes none. */
  draining?: boolean;
  counts: StateCounts;
  /** Dead letters, part of `discarded`. */
  dead: number;
  created_at?: number;
  computed_at: number;
}

export interface QueueStatus {
  name: string;
  paused: boolean;
  draining: boolean;
  /** Epoch ms of the last change. */
  changed_at: number;
}

/** An event of the live feed. Kept in memory only. */
export interface QueueEvent {
  /** `evt_` + UUIDv7: sorts by time. */
  id: string;
  type: string;
  queue: string;
  /** Job id, or the queue's name. */
  subject: string;
  /** Epoch ms. */
  time: number;
  data: Record<string, unknown>;
}

/** Settings of one queue. Absent: the deployment's default. */
export interface QueueConfig {
  /** How many pushed jobs may run at once, 1 … 10000. Default 10. */
  concurrency?: number;
  /** Lease length in ms. Default 30 minutes. */
  visibility_timeout_ms?: number;
  /** Execution limit in ms for jobs without one. */
  default_timeout_ms?: number;
  /** The queue layer of the retry policy. */
  default_retry?: RetryInput;
  /** Retention in ms of each terminal state. */
  retention?: { completed?: number; discarded?: number; cancelled?: number };
  dead_letter?: { max_age?: number; max_count?: number };
  /** What holds for all its jobs together: attempts at once, starts in a period. */
  rate_limit?: Pick<Limits, 'concurrency' | 'rate'>;
  /** Jobs that have not ended, at most. */
  max_depth?: number;
  /** Bytes of their bodies, at most. */
  max_bytes?: number;
  /** What becomes of a job for which there is no room. Default `reject`. */
  overflow?: 'reject' | 'drop_oldest';
  /** From this part of `max_depth` on producers are warned, 0 … 1. Default 0.8. */
  warning_threshold?: number;
  /** Types that are taken; an entry may end in `*`. Default: all. */
  allowed_job_types?: string[];
}

export interface HeartbeatRequest {
  worker_id: string;
  /** The jobs to extend; absent: every lease the worker holds in this queue. */
  job_ids?: string[];
  visibility_timeout_ms?: number;
}

/** A progress report. */
export interface ProgressRequest extends AttemptName {
  job_id: string;
  /** 0 … 1. */
  progress: number;
  message?: string;
  data?: Record<string, unknown>;
  /** JSON text of a `CheckpointContent` to save with it, all or nothing. */
  checkpoint?: string;
}

/** What was last reported about a job; members that nobody reported are absent. */
export interface ProgressReport {
  job_id: string;
  state: JobState;
  /** 0 … 1. */
  progress?: number;
  message?: string;
  data?: Record<string, unknown>;
  /** Epoch ms. */
  at?: number;
  /** The checkpoint that this report saved. */
  checkpoint?: { sequence: number; created_at: number };
}

export interface CheckpointRequest extends AttemptName {
  job_id: string;
  /** JSON text of a `CheckpointContent`, at most 1 MiB. */
  content: string;
}

/** A job that a worker holds. Times in epoch ms. */
export interface HeldJob {
  id: string;
  type: string;
  queue: string;
  attempt: number;
  started_at: number;
  lease_expires_at: number;
}

export interface QueueApi extends CronQueueApi, OperationsApi, LimitsApi {
  /**
   * All or nothing. Errors carry `details.index` when there is more than one job.
   * @param ticket UUIDv7 under which fingerprints are reserved, see `src/unique/object.ts`; 503 once it is given up
   */
  enqueue(
    queue: string,
    jobs: NewJob[],
    ticket?: string,
    idempotency?: IdempotencyKey,
  ): Promise<Outcome<EnqueueReceipt>>;
  /** Would this queue take these jobs? Writes nothing; `details.index` names the first it would not. */
  checkJobs(queue: string, jobs: NewJob[]): Promise<Outcome<void>>;
  /** Takes jobs of a workflow, each once: their ids in order, null where a job is refused for good. */
  startSteps(queue: string, start: StepStart): Promise<Outcome<(string | null)[]>>;
  /** Cancels those of these jobs that have not ended. */
  cancelSteps(queue: string, ids: string[]): Promise<Outcome<void>>;
  /** Who has these fingerprints here, and stands in the way by these criteria? One answer for each question. */
  uniqueRivals(queue: string, questions: UniqueQuestion[]): Promise<UniqueRivals[]>;
  /** Which of these fingerprints have a job here? */
  knownFingerprints(queue: string, fingerprints: string[]): Promise<string[]>;
  /** Holds this queue's share of a batch over several queues, see `batch.ts`. */
  prepareBatch(queue: string, batch: string, coordinator: string, jobs: NewJob[]): Promise<Outcome<EnqueueReceipt>>;
  /**
   * Decides for a batch and commits this queue's share; 503 when it was given up in the meantime. With an answer to
   * remember: an earlier answer under the same key, when there is one; the batch is then given up.
   */
  decideBatch(
    queue: string,
    batch: string,
    others: string[],
    answer?: RememberedAnswer,
  ): Promise<Outcome<EnqueueReceipt | null>>;
  commitBatch(queue: string, batch: string): Promise<Outcome<void>>;
  abortBatch(queue: string, batch: string): Promise<Outcome<void>>;
  /** What this coordinator decided; a batch (or ticket) that is still open is thereby given up. */
  batchDecision(queue: string, batch: string): Promise<Outcome<'committed' | 'aborted'>>;
  /** These queues have committed: the coordinator need not tell them. */
  confirmBatch(queue: string, batch: string, queues: string[]): Promise<Outcome<void>>;
  get(queue: string, id: string): Promise<Outcome<JobView>>;
  cancel(queue: string, id: string): Promise<Outcome<JobView>>;
  activate(queue: string, id: string): Promise<Outcome<JobView>>;
  claim(queue: string, request: ClaimRequest): Promise<Outcome<JobView[]>>;
  ack(queue: string, request: AckRequest): Promise<Outcome<JobView>>;
  nack(queue: string, request: NackRequest): Promise<Outcome<JobView>>;
  /** Ids whose leases were extended, and a test directive found on a held job. */
  heartbeat(queue: string, request: HeartbeatRequest): Promise<Outcome<{ extended: string[]; directive?: string }>>;
  /** Records progress and extends the lease; a job that does not run ignores it. */
  reportProgress(queue: string, request: ProgressRequest): Promise<Outcome<ProgressReport>>;
  progress(queue: string, id: string): Promise<Outcome<ProgressReport>>;
  saveCheckpoint(queue: string, request: CheckpointRequest): Promise<Outcome<StoredCheckpoint>>;
  /** Null when the job has none. */
  checkpoint(queue: string, id: string): Promise<Outcome<StoredCheckpoint | null>>;
  deleteCheckpoint(queue: string, request: AttemptName & { job_id: string }): Promise<Outcome<{ job_id: string }>>;
  /** The job, after waiting up to `waitMs` (0 … 60000) for its end. 410 when it ended and nothing of it is kept. */
  awaitEnd(queue: string, id: string, waitMs: number): Promise<Outcome<JobView>>;
  /** Those of these jobs that are here. `omitted` are here too, but did not fit into one message. */
  getMany(queue: string, ids: string[]): Promise<{ jobs: JobView[]; omitted: string[] }>;
  /** The jobs that this worker holds. */
  heldBy(queue: string, workerId: string): Promise<HeldJob[]>;
  /** Gives the jobs of a worker that is gone to others. @returns their ids */
  releaseHeld(queue: string, workerId: string): Promise<Outcome<string[]>>;
  /** These workers are to get no jobs from now on, or may again. */
  silence(queue: string, workerIds: string[], silenced: boolean): Promise<void>;
  list(queue: string, request: ListRequest): Promise<Outcome<ListPage>>;
  deadLetters(queue: string, request: DeadLetterRequest): Promise<Outcome<{ jobs: JobView[]; total: number }>>;
  deadLetter(queue: string, id: string): Promise<Outcome<JobView>>;
  /** `discarded`, `cancelled` or `retryable` → `available`, attempt 0. With `deadLetterOnly`: 404 unless dead. */
  redrive(
    queue: string,
    id: string,
    options: { deadLetterOnly: boolean; override?: { meta?: Record<string, unknown>; retry?: RetryInput } },
  ): Promise<Outcome<JobView>>;
  deleteDeadLetter(queue: string, id: string): Promise<Outcome<{ job_id: string }>>;
  stats(queue: string): Promise<Outcome<QueueStats>>;
  pause(queue: string): Promise<Outcome<QueueStatus>>;
  resume(queue: string): Promise<Outcome<QueueStatus>>;
  config(queue: string): Promise<Outcome<QueueConfig>>;
  /** Merges `change` into the stored settings; `null` members return to the default. */
  configure(queue: string, change: { [K in keyof QueueConfig]?: QueueConfig[K] | null }): Promise<Outcome<QueueConfig>>;
  events(queue: string, request: { types?: string[]; after?: string; limit: number }): Promise<QueueEvent[]>;
  /** Empties the object: rows, alarm, memory. Only reachable with `TEST_HOOKS`. */
  reset(queue: string): Promise<void>;
}

/** A queue the directory knows. */
export interface KnownQueue {
  name: string;
  /** 32-bit number in the ids of its jobs. */
  route: number;
  created_at: number;
}

/** What a worker says about itself; absent members keep what it said before. */
export interface WorkerFacts {
  hostname?: string;
  pid?: number;
  queues?: string[];
  concurrency?: number;
  labels?: unknown;
  version?: string;
}

/** How a worker describes what it is doing. */
export type ReportedState = 'running' | 'quiet' | 'draining' | 'shutting_down';

/** What an operator wants a worker to do. */
export type Directive = 'running' | 'quiet' | 'terminate';

/** A heartbeat, as far as it is about the worker and not about its jobs. `stopped`: its last one. */
export interface WorkerBeat {
  worker_id: string;
  state: ReportedState | 'stopped';
  facts: WorkerFacts;
  /** How many jobs it runs, when it says so. */
  active_jobs?: number;
}

/** A worker that pulls, as operators see it. Times in epoch ms. */
export interface WorkerView extends WorkerFacts {
  id: string;
  /** `stale`: silent for longer than 60 s. Else what it does or has been told to do, whichever is stronger. */
  state: Directive | 'stale';
  reported_state: ReportedState;
  directive: Directive;
  active_jobs: number;
  started_at: number;
  last_heartbeat_at: number;
}

export interface WorkerSummary {
  total: number;
  running: number;
  quiet: number;
  terminate: number;
  stale: number;
}

/** A page of the list of workflows. */
export interface WorkflowListRequest {
  states?: string[];
  offset: number;
  limit: number;
}

export interface DirectoryApi extends CronDirectoryApi {
  /** Registers a queue once; answers its route. */
  register(name: string): Promise<KnownQueue>;
  list(): Promise<KnownQueue[]>;
  resolve(route: number): Promise<KnownQueue | null>;
  /** Forgets a queue that was registered at or before `until` (epoch ms). */
  unregister(name: string, until: number): Promise<void>;
  /**
   * A worker is alive. Answers what it is to do, and whether queues must be told that it may (or may not) get jobs.
   */
  beat(beat: WorkerBeat): Promise<{ directive: Directive; silenced: boolean; silencedChanged: boolean }>;
  /** Workers by id, a page of them. */
  workers(page: { offset: number; limit: number }): Promise<{ workers: WorkerView[]; summary: WorkerSummary }>;
  worker(id: string): Promise<WorkerView | null>;
  /** Tells these workers, or all, what to do. @returns the ids of those that are known */
  direct(directive: Directive, ids?: string[]): Promise<string[]>;
  /** Forgets a worker that is stale; `alive` when it is not. */
  removeWorker(id: string): Promise<'removed' | 'unknown' | 'alive'>;
  /** Ids of the workers that are to get no jobs. */
  silencedWorkers(): Promise<string[]>;
  /** What happened to workers lately, from memory. */
  workerEvents(request: { types?: string[]; after?: string; limit: number }): Promise<QueueEvent[]>;
  /** Puts a workflow on the list, or notes its new state. */
  noteWorkflow(summary: WorkflowSummary): Promise<void>;
  /** Takes a workflow off the list. */
  forgetWorkflow(id: string): Promise<void>;
  /** Workflows, the latest first, a page of them. */
  workflows(request: WorkflowListRequest): Promise<{ workflows: WorkflowSummary[]; total: number }>;
  reset(): Promise<void>;
}
