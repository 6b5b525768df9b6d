/** What several parts of a queue's interface answer, and the key under which an answer is remembered. */
import type { RequestKey } from '../durable/inbox';
import type { JobRecord, LowerLayers } from '../job/record';
import type { LimitStanding } from './limits';

/** What the producer needs to build its envelopes: one entry for each job, in the order given. */
export interface EnqueueReceipt {
  jobs: EnqueuedJob[];
}

/** The job that an entry of an enqueue has led to. */
export interface EnqueuedJob {
  /** Its body is empty where it is the one that the entry brought: the sender has that, and many do not fit into a message. */
  record: JobRecord;
  layers: LowerLayers;
  /** When a job with an empty body starts and expires, if it says so; epoch ms. Relative times count from the first request. */
  scheduled_at?: number;
  expires_at?: number;
  /** It existed already, and the unique policy of the entry said to leave it at that. */
  deduplicated?: true;
  /** In the first of a request: the queue is nearly full. */
  pressure?: QueuePressure;
  /** In the first of its type in a request: no handler takes the type, so the job will not run. For humans. */
  warning?: string;
  /** In the only one of a request: where it leaves the key that limits it. */
  standing?: LimitStanding;
}

/** How full a bounded queue is, in the unit of the bound that is nearer. */
export interface QueuePressure {
  /** Jobs that have not ended, or bytes of their bodies. */
  depth: number;
  bound: number;
}

export interface QueueStatus {
  name: string;
  paused: boolean;
  draining: boolean;
  /** Epoch ms of the last change. */
  changed_at: number;
}

/** A request that may be sent again. */
export type IdempotencyKey = RequestKey;

/** An answer to remember under a key. */
export interface RememberedAnswer<T = EnqueueReceipt> {
  idempotency: IdempotencyKey;
  receipt: T;
}
