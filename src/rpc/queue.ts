/** What a queue object answers over RPC, and what it is asked. */

import type { Answers } from '../durable/answering';
import type { Outcome } from '../job/errors';
import type { JobFilter } from '../job/filter';
import type { LogLine } from '../job/log';
import type { JobView, UniquePolicy } from '../job/record';
import type { JobState } from '../job/states';
import type { QueueConfig } from '../settings';
import type { DeadLetterPlace } from './failures';
import type { IdPlace } from './ids';
import type { Override, PatchRequest } from './operations';
import type { EnqueueReceipt, IdempotencyKey, RememberedAnswer } from './receipts';
import type { StateCounts } from './stats';
import type { VerbTables } from './tables';
import type { ProgressReport, StoredCheckpoint } from './workers';

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

export interface DeadLetterRequest extends Pick<JobFilter, 'types' | 'error_type' | 'group' | 'groups'> {
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

/** What a queue object answers: its table of verbs says what each means. */
export type QueueApi = Omit<Answers<VerbTables['queue']>, 'decideBatch' | 'recall'> & {
  decideBatch<T = EnqueueReceipt>(
    ...args: [batch: string, others: string[], answer?: RememberedAnswer<T>, replaced?: IdPlace[]]
  ): Promise<Outcome<T | null>>;
  recall<T = EnqueueReceipt>(idempotency: IdempotencyKey): Promise<Outcome<T | null>>;
};
