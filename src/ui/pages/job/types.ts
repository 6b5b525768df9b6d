import type { WaitingReason } from '../../../job/waiting';
import type { JobError } from '../../components/error';
import type { JobItem } from '../jobs/types';

export interface Attempt {
  attempt: number;
  state: 'failed' | 'active' | 'completed';
  started_at?: string;
  ended_at?: string;
  duration_ms?: number;
  delay_ms?: number;
  worker_id?: string;
  target?: string;
  error?: JobError;
}

/** One thing that happened, with members of its own. */
export interface Entry {
  at: string;
  kind: string;
  [member: string]: unknown;
}

export interface LogLine {
  /** Epoch ms. */
  at: number;
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  fields?: Readonly<Record<string, unknown>>;
}

/** A job beside another. */
export interface Relative {
  id: string;
  type?: string;
  queue?: string;
  state?: string;
}

/** What is on record of a durable step. */
export interface Step {
  result?: unknown;
  error?: unknown;
  until?: number;
  signal?: { payload: unknown; at: number };
  timed_out?: boolean;
}

export interface WaitingFor {
  reason: WaitingReason;
  since: string;
  until?: string;
  detail: string;
  target?: string;
  signal?: string;
}

/** A job with its whole story: `GET /admin/jobs/:id?timeline=true`. */
export interface Job extends Omit<JobItem, 'error'> {
  args: readonly unknown[];
  meta: Readonly<Record<string, unknown>>;
  result?: unknown;
  error?: JobError;
  errors: readonly JobError[];
  enqueued_at?: string;
  first_started_at?: string;
  last_heartbeat_at?: string;
  lease_expires_at?: string;
  expires_at?: string;
  timeout_ms?: number;
  visibility_timeout_ms?: number;
  retry?: unknown;
  retry_policy?: Readonly<Record<string, unknown>>;
  retention?: unknown;
  unique?: unknown;
  rate_limit?: { key?: string };
  target_url?: string;
  worker_id?: string;
  fingerprint?: string;
  waiting_for?: WaitingFor;
  attempts: readonly Attempt[];
  timeline: readonly Entry[];
  log: readonly LogLine[];
  steps: Readonly<Record<string, Step>>;
  checkpoint: (Readonly<Record<string, unknown>> & { sequence: number; created_at: string }) | null;
  progress_message?: string;
  progress_data?: unknown;
  parent?: Relative;
  children: { items: readonly Relative[]; more: boolean };
  workflow?: { id: string; step: number };
  cron_name?: string;
}
