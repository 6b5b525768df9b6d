/** The workers that pull, as operators see and direct them. */
import type { Directive, ReportedState } from '../job/worker/heartbeat';
import type { Also } from '../ojs/names';
import type { CursorQuery, Page, Time } from './common';
import { del, get, post } from './route';

export type { Directive };

interface WorkerMembers {
  id: string;
  /** `stale`: no heartbeat for 60 s. Else what it does, or what a directive says, whichever is stronger. */
  state: Directive | 'stale';
  /** Its state as it reported it. */
  reported_state: ReportedState;
  /** The directive that it was given. */
  directive: Directive;
  /** Jobs that it runs. */
  active_jobs: number;
  hostname: string | null;
  pid: number | null;
  queues: string[];
  concurrency: number | null;
  version: string | null;
  started_at: Time;
  last_heartbeat_at: Time;
  metadata: { labels?: unknown };
}

/** A worker, known from its heartbeats. */
export interface WorkerStatus extends Also<'WorkerStatus', WorkerMembers> {}

/** How many workers there are, in all and in each state. */
export type WorkerCounts = Record<WorkerMembers['state'] | 'total', number>;

export interface WorkerList extends Also<'WorkerList', Omit<Page<WorkerStatus>, 'total'>> {
  /** Of all workers. */
  summary: WorkerCounts;
}

/** A job that a worker has leased. */
export interface LeasedJob {
  id: string;
  type: string;
  queue: string;
  state: 'active';
  attempt: number;
  started_at: Time;
  lease_expires_at: Time;
}

/** A worker with its leased jobs. */
export interface WorkerDetail extends WorkerStatus {
  jobs: LeasedJob[];
}

/** Is a worker at work? */
export interface WorkerHealth extends Omit<WorkerStatus, 'id' | 'state'> {
  worker_id: string;
  state: WorkerStatus['state'] | 'draining' | 'shutting_down';
  /** Does it run, or finish its jobs? */
  healthy: boolean;
}

/** Tells workers what to do. */
export interface Direction {
  /** `resume` is another word for `running`. */
  directive: Directive | 'resume';
  /** Default: all that are known. */
  worker_id?: string;
}

export interface Directed {
  directive: Directive;
  /** How many got it. */
  updated: number;
}

/** Below `/ojs/v1`. */
export const workers = {
  /** Shows whether a worker is healthy: 503 once it shuts down or is stale. */
  health: get<{ 200: WorkerHealth; 503: WorkerHealth; errors: 404 }>('/workers/:id/health'),
};

/** Below `/ojs/v1/admin`. */
export const adminWorkers = {
  /** Lists the workers that sent a heartbeat. */
  list: get<{ query: CursorQuery; 200: WorkerList }>('/workers'),
  /** Sends a directive to a worker, or to all workers. */
  direct: post<{ body: Direction; 200: Directed; errors: 404 }>('/workers/directive', { audit: 'worker.direct' }),
  /** Shows a worker with its leased jobs. */
  show: get<{ 200: WorkerDetail; errors: 404 }>('/workers/:id'),
  /** Makes a worker finish its jobs and get no more. */
  quiet: post<{ 200: WorkerStatus; errors: 404 }>('/workers/:id/quiet', { audit: 'worker.quiet' }),
  /** Removes a worker that is gone; its jobs run elsewhere immediately. */
  forget: del<{ 204: null; errors: 404 | 409 }>('/workers/:id', { audit: 'worker.forget' }),
};
