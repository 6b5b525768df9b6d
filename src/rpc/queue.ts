/**
 * What a queue object answers over RPC. Other rooms talk to this interface and nothing else.
 *
 * Rules of all methods: errors of the product's rules come back as `{ ok: false, error }`, only defects throw; reading
 * never writes; a write is answered only when it is durable (the runtime's output gate).
 */

import type { QueueEvent } from '../durable/event-log';
import type { Outcome } from '../job/errors';
import type { JobFilter } from '../job/filter';
import type { LogLine } from '../job/log';
import type { SentJobs } from '../job/message';
import type { JobView, NewJob, UniquePolicy } from '../job/record';
import type { QueueConfig, QueueDefaults, SettingsChange } from '../job/settings';
import type { JobState } from '../job/states';
import type { AllowanceHolderApi } from './allowances';
import type { CronQueueApi } from './cron';
import type { LookedAfterApi } from './due-queues';
import type { ExportApi } from './export';
import type { DeadLetterPlace, FailuresPart, FailuresRequest } from './failures';
import type { GroupsApi } from './groups';
import type { LimitsApi } from './limits';
import type { MetricsApi } from './metrics';
import type { OperationsApi, Override, PatchRequest } from './operations';
import type { EnqueueReceipt, IdempotencyKey, QueueStatus, RememberedAnswer, SentReceipt } from './receipts';
import type { QueueStats, StateCounts } from './stats';
import type { TargetsApi } from './targets';
import type { UniquesApi } from './uniques';
import type { ProgressReport, StoredCheckpoint, WorkersApi } from './workers';
import type { StepStart } from './workflow';

/** Asks about a fingerprint on behalf of a new job in another queue. */
export type UniqueQuestion = Pick<UniquePolicy, 'fingerprint' | 'states' | 'period_ms'>;

/** What one queue knows of a fingerprint. */
export interface UniqueConflicts {
  /** Is there any job with it, in whatever state? */
  known: boolean;
  /** A batch that is not decided yet has one that may be in conflict. */
  undecided: boolean;
  /** Those in conflict, newest first. Of many large ones, the later come without what they carry. */
  blocking: JobView[];
}

/** A ticket is honoured until this age, ms. */
export const MAX_TICKET_AGE_MS = 60_000;

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
  /** Bytes of the page at most, if that is less than an answer may have; a single job may be larger. */
  max_bytes?: number;
  /** Jobs looked at for the page at most, if that is less than the queue's own bound; for the total twice as many. */
  budget?: number;
  /** 1 … 200; of places, more. */
  limit: number;
}

/** A page without the jobs themselves. */
export interface ListPlaces {
  places: { position: number; created_at: number }[];
  /** As in {@link ListPage}. */
  next?: number;
}

export interface ListPage {
  jobs: (JobView & { position: number })[];
  /** How many match in all. */
  total: number;
  /** False: a lower bound; counting all would have meant reading too much. */
  total_is_exact?: false;
  /** There may be more: the page is full, or too much was read without filling it. */
  has_more: boolean;
  /** Where the next page begins: `before` of the next request. */
  next?: number;
  /** How many jobs were looked at for the page, and the cost: a large one whose text was read counts for several. */
  looked: number;
  spent: number;
}

/** Asks how many jobs that match are in each state. `before`: where the call before ended. */
export interface StatesRequest {
  filter: JobFilter;
  before?: number;
  /** Jobs looked at at most. */
  budget?: number;
}

export interface StatesCounted {
  counts: StateCounts;
  looked: number;
  /** Where the next call continues; absent when all were counted. */
  next?: number;
}

/** Asks for recent events of some types (absent: all), after an event id. */
export interface EventsRequest {
  types?: string[];
  after?: string;
  /** Epoch ms. */
  since?: number;
  limit: number;
}

export interface DeadLetterRequest {
  type?: string;
  error_type?: string;
  group?: string;
  /** Discarded at or after / before, epoch ms. */
  since?: number;
  until?: number;
  /** Only those after this place in the order of the list. */
  before?: DeadLetterPlace;
  /** How many to return, from the newest. */
  limit: number;
  /** False: do not count how many match in all. */
  total?: boolean;
}

export interface DeadLetterPlaces {
  places: DeadLetterPlace[];
  /** How many match in all. */
  total: number;
  /** False: a lower bound; counting all would have meant reading too much. */
  total_is_exact?: false;
  /** Too much was looked at to continue: everything up to this place was seen. */
  next?: DeadLetterPlace;
}

export interface DeadLettersAt {
  jobs: (JobView & { key: number })[];
  /** Keys that were not looked at, because the message is full. */
  rest: number[];
}

/** How many dead letters there are of each type and each error type, the most frequent first. */
export interface DeadLetterKinds {
  total: number;
  types: [name: string, count: number][];
  errors: [name: string, count: number][];
  /** False: there are more than were looked at, or more names than are given. */
  complete: boolean;
  /** When the first and the last of them were discarded, epoch ms. */
  oldest?: number;
  newest?: number;
}

/** A job and what lies beside it. */
export interface JobStory {
  job: JobView;
  /** The newest lines. */
  log: LogLine[];
  checkpoint: StoredCheckpoint | null;
  /** JSON text of its recorded steps. */
  steps: string;
  /** Its last progress report. */
  progress?: ProgressReport;
}

/** What an operator puts in the place of a job's own before it runs again. */
export interface Edit {
  /** JSON. */
  args?: string;
  /** JSON. */
  meta?: string;
  /** Of a unique job: the one that it has by these. */
  fingerprint?: string;
}

export interface RedriveOptions {
  edit?: Edit;
  /** What else to change, as of any job that waits. */
  change?: Omit<PatchRequest, 'id'>;
  /** Answer 404 unless the job is a dead letter. */
  deadLetterOnly: boolean;
  override?: Override;
}

/** The settings of one queue: those it has itself, and those that hold, without what is built in. */
export interface QueueSettings {
  own: QueueConfig;
  effective: QueueConfig;
  /** What the deployment's code declares for the queue; its own settings go before it. */
  declared?: QueueConfig;
}

export interface QueueApi
  extends WorkersApi,
    CronQueueApi,
    ExportApi,
    OperationsApi,
    LimitsApi,
    AllowanceHolderApi,
    GroupsApi,
    LookedAfterApi,
    MetricsApi,
    TargetsApi,
    UniquesApi {
  /**
   * All or nothing. Errors carry `details.index` when there is more than one job.
   * @param ticket UUIDv7 under which fingerprints are reserved, see `src/locks/object.ts`; 503 once it is given up
   */
  enqueue(jobs: SentJobs, ticket?: string, idempotency?: IdempotencyKey): Promise<Outcome<SentReceipt>>;
  /** Would this queue take these jobs? Writes nothing; `details.index` names the first it would not. */
  checkJobs(jobs: NewJob[]): Promise<Outcome<void>>;
  /**
   * Takes jobs of a workflow, each once: their ids in order, null where a job is refused for good. Undefined, where the
   * start is divisible: there is no room now.
   */
  startSteps(start: StepStart): Promise<Outcome<(string | null | undefined)[]>>;
  /** Cancels those of these jobs that have not ended. */
  cancelSteps(ids: string[]): Promise<Outcome<void>>;
  /** Which jobs here have these fingerprints, and are in conflict by these criteria? One answer for each question. */
  uniqueConflicts(questions: UniqueQuestion[]): Promise<UniqueConflicts[]>;
  /** Which of these fingerprints have a job here? */
  knownFingerprints(fingerprints: string[]): Promise<string[]>;
  /** Holds this queue's share of a batch over several queues, see `features/shares/batch.ts`. */
  prepareBatch(batch: string, coordinator: string, jobs: SentJobs): Promise<Outcome<EnqueueReceipt>>;
  /** The same unless the queue does not exist: null when it would be created and hold them. */
  prepareBatchIfExists(batch: string, coordinator: string, jobs: SentJobs): Promise<Outcome<EnqueueReceipt | null>>;
  /**
   * Decides a batch and commits this queue's share. Answers when the others have committed theirs, or after 5 s. 503
   * when it was abandoned meanwhile. With an answer to remember: an earlier answer under the same key, if there is one;
   * the batch is then abandoned.
   */
  decideBatch<T = EnqueueReceipt>(
    batch: string,
    others: string[],
    answer?: RememberedAnswer<T>,
  ): Promise<Outcome<T | null>>;
  commitBatch(batch: string): Promise<Outcome<void>>;
  abortBatch(batch: string): Promise<Outcome<void>>;
  /** What this coordinator decided; a batch (or ticket) that is still open is thereby given up. */
  batchDecision(batch: string): Promise<Outcome<'committed' | 'aborted'>>;
  /** The same, asked by who drives the batch and will not have it decided any more: a queue is not created for it. */
  giveUpBatch(batch: string): Promise<Outcome<'committed' | 'aborted'>>;
  /** The job; one that waits says what for. */
  get(id: string): Promise<Outcome<JobView>>;
  /** The job with all that lies beside it. */
  story(id: string): Promise<Outcome<JobStory>>;
  cancel(id: string): Promise<Outcome<JobView>>;
  activate(id: string): Promise<Outcome<JobView>>;
  /** A pending, delayed or retried job becomes available now. */
  runNow(id: string): Promise<Outcome<JobView>>;
  /** The job, after waiting up to `waitMs` (0 … 60000) for its end. 410 when it ended and nothing of it is kept. */
  awaitEnd(id: string, waitMs: number): Promise<Outcome<JobView>>;
  /** Those of these jobs that are here. `omitted` are here too, but did not fit into one message. */
  getMany(ids: string[]): Promise<{ jobs: JobView[]; omitted: string[] }>;
  /** Those of these ids that are written down here, because they do not lead to their jobs by themselves. */
  knownIds(ids: string[]): Promise<string[]>;
  /** The next of them after this one, in order; none: that was all. */
  chosenIds(after: string): Promise<string[]>;
  /** Those of these jobs that run here. */
  runningOf(ids: string[]): Promise<string[]>;
  list(request: ListRequest): Promise<Outcome<ListPage>>;
  countStates(request: StatesRequest): Promise<Outcome<StatesCounted>>;
  /** Groups of failures, a step of them. */
  failures(request: FailuresRequest): Promise<Outcome<FailuresPart>>;
  /** Where the jobs of a list lie, for a reader that passes over them. */
  listPlaces(request: ListRequest): Promise<Outcome<ListPlaces>>;
  /** Where the newest dead letters lie. */
  deadLetterPlaces(request: DeadLetterRequest): Promise<Outcome<DeadLetterPlaces>>;
  /** The dead letters with these keys, in this order. */
  deadLettersAt(keys: number[]): Promise<Outcome<DeadLettersAt>>;
  deadLetterKinds(): Promise<Outcome<DeadLetterKinds>>;
  deadLetter(id: string): Promise<Outcome<JobView>>;
  /** `discarded`, `cancelled` or `retryable` → `available`, attempt 0. With `deadLetterOnly`: 404 unless dead. */
  redrive(id: string, options: RedriveOptions): Promise<Outcome<JobView>>;
  deleteDeadLetter(id: string): Promise<Outcome<{ job_id: string }>>;
  stats(): Promise<Outcome<QueueStats>>;
  pause(): Promise<Outcome<QueueStatus>>;
  resume(): Promise<Outcome<QueueStatus>>;
  /** What the queue says itself. */
  config(): Promise<Outcome<QueueConfig>>;
  settings(): Promise<Outcome<QueueSettings>>;
  /**
   * Merges `change` into the stored settings; `null` members return to the default.
   * @param mayPurge false: 403 when ended jobs would be kept for less time than now
   */
  configure(change: SettingsChange, mayPurge?: boolean): Promise<Outcome<QueueConfig>>;
  /**
   * The deployment's settings for all queues have changed. A queue that does not exist gets them when it is created.
   */
  takeDefaults(defaults: QueueDefaults): Promise<Outcome<void>>;
  events(request: EventsRequest): Promise<QueueEvent[]>;
  /** Empties the object: rows, alarm, memory. Only reachable with `TEST_HOOKS`. */
  reset(): Promise<void>;
}
