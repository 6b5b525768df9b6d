/** A worker that pulls, as `GET /admin/workers` lists it. */
export interface Worker {
  id: string;
  hostname: string | null;
  pid: number | null;
  queues: readonly string[];
  concurrency: number | null;
  version: string | null;
  /** `running`, `quiet`, `terminate`, or `stale` when it is silent. */
  state: string;
  reported_state: string;
  /** What it was told. */
  directive: string;
  active_jobs: number;
  started_at: string;
  last_heartbeat_at: string;
  metadata: { labels?: unknown };
}

/** A job that a worker holds. */
export interface HeldJob {
  id: string;
  type: string;
  queue: string;
  attempt: number;
  started_at: string;
  lease_expires_at: string;
}

export interface WorkerList {
  items: readonly Worker[];
  summary: { total: number; running: number; quiet: number; terminate: number; stale: number };
}

/** What a queue, or the worst of all queues, knows of a target. */
export interface TargetState {
  state: 'up' | 'paused' | 'stopped';
  since?: string;
  last_tried_at?: string;
  last_error?: string;
  next_try_at?: string;
  types?: readonly string[];
}

export interface Target extends TargetState {
  name: string;
  patterns: readonly string[];
  queue_states: Record<'up' | 'paused' | 'stopped', number>;
}

export interface TargetInQueue extends TargetState {
  queue: string;
}

export interface TargetList {
  items: readonly Target[];
}
