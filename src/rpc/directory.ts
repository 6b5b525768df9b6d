/** What the directory answers over RPC: which queues, workers, cron entries and workflows there are. */

import type { QueueEvent } from '../durable/event-log';
import type { ErrorData, Outcome } from '../job/errors';
import type { LimitOverrides } from '../job/limits/overrides';
import type { LimitOverride } from '../job/limits/policy';
import type { Maintenance, MaintenanceNotice } from '../job/maintenance';
import type { QueueConfig, QueueDefaults, SettingsChange } from '../job/settings';
import type { Directive, ReportedState, WorkerBeat, WorkerFacts } from '../job/worker/heartbeat';
import type { AlertsApi } from './alerts';
import type { AuditApi } from './audit';
import type { CronDirectoryApi } from './cron';
import type { StoredDeclaration } from './deployment';
import type { RevivedApi } from './due-queues';
import type { IdsApi } from './ids';
import type { ReadingsApi } from './metrics';
import type { PoolApi, PoolListApi } from './pools';
import type { EventsRequest } from './queue';
import type { IdempotencyKey } from './receipts';
import type { SchemasApi } from './schemas';
import type { WebhookListApi, WebhookSenderApi } from './webhooks';
import type { WorkflowSummary } from './workflow';

/** A queue the directory knows. */
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
  /** Only queues after this name. */
  after?: string;
  offset?: number;
  limit: number;
  /** Only queues with this in their name. */
  part?: string;
}

export interface QueuePage {
  queues: KnownQueue[];
  /** Of all queues that are meant. */
  total: number;
  more: boolean;
}

/** A queue that has just asked for its number. */
export interface RegisteredQueue extends KnownQueue {
  /** What holds in all queues, when anybody has said so. */
  defaults?: QueueDefaults;
}

/** A worker that pulls, as operators see it. Times in epoch ms. */
export interface WorkerView extends WorkerFacts {
  id: string;
  /** `stale`: silent for longer than 60 s. Otherwise its own state or its directive, whichever is stronger. */
  state: Directive | 'stale';
  reported_state: ReportedState;
  directive: Directive;
  active_jobs: number;
  started_at: number;
  last_heartbeat_at: number;
}

/** How many workers there are, in all and in each state. */
export type WorkerSummary = Record<WorkerView['state'] | 'total', number>;

/** The answer to a probe. */
export interface DirectoryHealth {
  /** What this object has met that fails requests: a daily limit that is used up. */
  trouble?: Pick<ErrorData, 'code' | 'message' | 'headers'>;
  queues: { total: number; paused: number };
  workers: WorkerSummary;
}

/** A page of the list of workflows. */
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
  /** Only workers after this id. */
  after?: string;
  offset: number;
  limit: number;
}

export interface WorkerPage {
  workers: WorkerView[];
  /** Of all workers. */
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

export interface DirectoryApi
  extends CronDirectoryApi,
    IdsApi,
    WebhookListApi,
    WebhookSenderApi,
    AlertsApi,
    AuditApi,
    SchemasApi,
    PoolListApi,
    PoolApi,
    ReadingsApi,
    RevivedApi {
  /** Registers a queue once; answers its route, and the settings of all queues. */
  register(name: string): Promise<RegisteredQueue>;
  /** May this key bring these queues into being, as one of at most `most` a day? Refuses with 429. */
  admitQueues(by: string, names: string[], most: number): Promise<Outcome<void>>;
  /** Queues by name, a page of them. */
  list(request: QueueListRequest): Promise<QueuePage>;
  /** As many queues as may be asked at once: those that change most, then the oldest. */
  busiest(): Promise<BusiestQueues>;
  /** The queues with these routes, those that exist. */
  resolve(routes: number[]): Promise<KnownQueue[]>;
  /** Forgets a queue that was registered at or before `until` (epoch ms). */
  unregister(name: string, until: number): Promise<void>;
  /**
   * How many there are of what; of the queues that are paused, as it was a minute ago at most.
   * @param mustWrite something is written first: fails where storage cannot be written
   */
  health(mustWrite?: boolean): Promise<DirectoryHealth>;
  /** The settings of all queues; null when there are none. @param queue with its declarations */
  queueDefaults(queue?: string): Promise<QueueDefaults | null>;
  /** What the code of the deployment declares; null: nothing ever. */
  declaration(): Promise<StoredDeclaration | null>;
  /**
   * Stores the code's new declarations and notifies the queues. Waits a moment for that. @returns how many have not
   * confirmed yet
   */
  declare(declared: StoredDeclaration): Promise<number>;
  /**
   * Merges a change into the settings of all queues and tells them; waits a moment for that.
   * @returns the settings, and how many queues have not confirmed them yet
   */
  changeQueueDefaults(
    change: SettingsChange,
    mayPurge: boolean,
  ): Promise<Outcome<{ config: QueueConfig; untold: number }>>;
  /** The maintenance under way. */
  maintenance(): Promise<Maintenance | null>;
  /**
   * Begins maintenance, changes the one under way, or ends it (null), and tells the queues; waits a moment for that.
   * @returns what holds now, and how many queues have not confirmed yet
   */
  declareMaintenance(notice: MaintenanceNotice | null): Promise<{ maintenance: Maintenance | null; untold: number }>;
  /** What operators put in the place of the limits of keys, as it holds now. */
  limitOverrides(): Promise<LimitOverrides>;
  /**
   * Overrides a key's own limits in all queues, or removes the override (null), and notifies the queues; waits a moment
   * for that.
   * @returns whether there was an override, and how many queues have not confirmed yet; 409 when there are too many
   */
  overrideLimit(key: string, override: LimitOverride | null): Promise<Outcome<{ existed: boolean; untold: number }>>;
  /**
   * A worker is alive. Answers its directive, and whether queues must be notified that it may (or may not) get jobs.
   */
  beat(beat: WorkerBeat): Promise<{ directive: Directive; silenced: boolean; silencedChanged: boolean }>;
  /** Workers by id, a page of them. */
  workers(request: WorkerListRequest): Promise<WorkerPage>;
  worker(id: string): Promise<WorkerView | null>;
  /** Tells these workers, or all, what to do. @returns the ids of those that are known */
  direct(directive: Directive, ids?: string[]): Promise<string[]>;
  /** Forgets a worker that is stale; `alive` when it is not. */
  removeWorker(id: string): Promise<'removed' | 'unknown' | 'alive'>;
  /** Ids of the workers that are to get no jobs. */
  silencedWorkers(): Promise<string[]>;
  /** What happened to workers lately, from memory. */
  workerEvents(request: EventsRequest): Promise<QueueEvent[]>;
  /**
   * The operation of this key, begun if need be under this id. @returns 409 when the key was used for another request
   */
  beginOperation(idempotency: IdempotencyKey, id: string): Promise<Outcome<KeyedOperation>>;
  /** Which queue decides: `queue`, unless another was chosen before; null when the operation is not known. */
  coordinateOperation(key: string, id: string, queue: string): Promise<string | null>;
  /** The operation changed nothing: its key may be used again. */
  forgetOperation(key: string, id: string): Promise<void>;
  /** Puts a workflow on the list, or notes its new state. */
  noteWorkflow(summary: WorkflowSummary): Promise<void>;
  /** Takes a workflow off the list. */
  forgetWorkflow(id: string): Promise<void>;
  /** Workflows, the latest first, a page of them. */
  workflows(request: WorkflowListRequest): Promise<WorkflowPage>;
}
