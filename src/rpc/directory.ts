/** What the directory answers over RPC, and what it is asked. */

import type { WorkerStatus } from '../contract/workers';
import type { Answers } from '../durable/answering';
import type { ErrorData } from '../job/errors';
import type { WorkerFacts } from '../job/worker/heartbeat';
import type { VerbTables } from './tables';
import type { WorkflowSummary } from './workflow';

export interface KnownQueue {
  name: string;
  /** 32-bit number in the ids of its jobs. */
  route: number;
  created_at: number;
}

/** Queues that one request asks at most: its calls are bounded, and some requests make several for each queue. */
export const MAX_QUEUES_AT_ONCE = 200;

/** Queues that stand for all of them. */
export interface BusiestQueues {
  names: string[];
  /** How many there are besides. */
  leftOut: number;
}

/** A page of the list of queues, by name. */
export interface QueueListRequest {
  after?: string;
  offset?: number;
  limit: number;
  /** Only queues with this in their name. */
  part?: string;
  /** Only these. */
  names?: readonly string[];
}

export interface QueuePage {
  queues: KnownQueue[];
  /** Of all queues that are meant. */
  total: number;
  more: boolean;
}

/** A worker that pulls, as operators see it. Times in epoch ms. */
export interface WorkerView
  extends WorkerFacts,
    Pick<WorkerStatus, 'id' | 'state' | 'reported_state' | 'directive' | 'active_jobs'> {
  started_at: number;
  last_heartbeat_at: number;
}

/** How many workers there are, in all and in each state. */
export type WorkerSummary = Record<WorkerView['state'] | 'total', number>;

export interface DirectoryHealth {
  /** What this object has met that fails requests: a daily limit that is used up. */
  trouble?: Pick<ErrorData, 'code' | 'message' | 'headers'>;
  queues: { total: number; paused: number };
  workers: WorkerSummary;
}

export interface WorkflowListRequest {
  states?: string[];
  /** Only workflows made before the one with this id. */
  before?: string;
  offset: number;
  limit: number;
}

export interface WorkflowPage {
  workflows: WorkflowSummary[];
  /** How many match in all. */
  total: number;
  more: boolean;
}

/** A page of the list of workers, by id. */
export interface WorkerListRequest {
  after?: string;
  offset: number;
  limit: number;
}

export interface WorkerPage {
  workers: WorkerView[];
  summary: WorkerSummary;
  more: boolean;
}

/** An operation on many jobs that was begun under an idempotency key. */
export interface KeyedOperation {
  /** UUIDv7. */
  id: string;
  /** Epoch ms. */
  started_at: number;
  /** The queues that there were; absent: too many, so the request must name those that it means. */
  queues?: string[];
  /** The queue that decides, where it is all or nothing and has come so far. */
  coordinator?: string;
  /** The request was sent before. */
  replayed: boolean;
}

/** What objects of the directory's class answer: it, its shards, webhooks, pools. Their verbs tell what each means. */
export type DirectoryApi = Answers<VerbTables['directory']>;

/** From the moment at which a queue is due until the directory looks after it, at least, ms. */
export const LOOK_AFTER_MS = 3_600_000;

/** As {@link LOOK_AFTER_MS}, at most, ms. A queue that is due earlier than that must report again. */
export const LONGEST_LOOK_AFTER_MS = 2.5 * LOOK_AFTER_MS;
