/**
 * The data of each event, as it travels in lists, streams and webhooks; API documents derive from these types. Any
 * event may have `truncated: true`: a long member was cut or left out.
 */
import type { JobState } from './states';
import type { RunOfEvent, StepKind } from './timeline';
import type { Directive, WorkerFacts } from './worker/heartbeat';
import type { NodeKind } from './workflow/plan';

/** RFC 3339, in UTC. @format date-time */
type Time = string;

/**
 * Why a fire enqueued nothing. `overlap_skip`: the previous job has not ended. `waiting_full`: too many fires wait for
 * that already. `missed`: the time was missed, and the policy drops it. `unique`: the unique policy found an existing
 * job. `refused`: the queue did not accept the job.
 */
export type SkipReason = 'overlap_skip' | 'waiting_full' | 'missed' | 'unique' | 'refused';

export const ALERT_METRICS = ['error_rate', 'oldest_age', 'depth', 'dead_letters'] as const;

/**
 * `error_rate`: part of the attempts of the last five minutes that failed, 0 … 1. `oldest_age`: how long the job that
 * waits longest could have run, s. `depth`: jobs that have not ended. `dead_letters`: as it says.
 */
export type AlertMetric = (typeof ALERT_METRICS)[number];

/** What every event of a job says. */
interface OfJob {
  job_type: string;
  /** Whose job it is; absent: it has no group. */
  group?: string;
  /** Attempts begun; that which the event is about, where it is about one. */
  attempt: number;
}

/** A job that has ended without success. */
interface Undone {
  /** The job that undoes its steps. */
  undo_job_id?: string;
}

/** Why an attempt failed, or why a job ended without one. */
export interface EventError {
  code: string;
  type: string;
  message: string;
}

/** An attempt that failed, or none. */
interface OfFailure extends OfJob {
  /** Of the attempt; null: none was running, or it is not known. */
  duration_ms: number | null;
  error: EventError;
}

/** What every event of a workflow says. */
interface OfWorkflow {
  workflow_id: string;
  name?: string;
  /** Its outermost form; absent: a graph. */
  workflow_type?: Exclude<NodeKind, 'job' | 'graph'>;
}

/** What every event of a schedule says. */
interface OfCron {
  cron_name: string;
  cron_expression: string;
  timezone: string;
}

/** A number of a queue, and the rule about it. */
interface OfAlert {
  alert_id: string;
  name: string;
  metric: AlertMetric;
  /** The bound. */
  above: number;
  /** How long the number must be above it: ISO 8601. */
  for: string;
  /** The number when the alert changed. */
  value: number;
  subscription_id?: string;
}

/** By the type of an event: its data. Here, of what happens to jobs. */
export interface JobEvents {
  /** A job may start now. */
  'job.enqueued': OfJob & {
    /** It was a dead letter. */
    redrive?: true;
    /** The signal that it had waited for. */
    signal?: string | null;
  };
  /** A job will start later. */
  'job.scheduled': OfJob & { scheduled_at?: Time; reason?: 'rate_limited' };
  /** New jobs have become a part of one that waits: how many. */
  'job.accumulated': OfJob & { accumulated: number; scheduled_at?: Time };
  /** An attempt began. */
  'job.started': OfJob & { worker_id?: string };
  /** An attempt succeeded, and the job is over. Its result is in the job. */
  'job.completed': OfJob & { duration_ms: number; result: null };
  /** An attempt failed, and another one follows. */
  'job.failed': OfFailure;
  /** A failed job waits for its next attempt. */
  'job.retrying': OfJob & { backoff_ms: number | null; run_at: Time };
  /** A job is over without success. */
  'job.discarded': OfFailure &
    Undone & {
      /** Why: `max_attempts`, `purged` and others. */
      reason?: string | null;
      /** Is it kept for a human? */
      dead_letter: boolean;
    };
  /** A job was cancelled. */
  'job.cancelled': OfJob & Undone;
  /** A job was not started in time. */
  'job.expired': OfFailure & Undone & { reason: 'expired' };
  /** A handler put its job to sleep. */
  'job.snoozed': OfJob & {
    scheduled_at?: Time;
    /** The signal that it waits for. */
    signal?: string | null;
    /** Names of the runs that it waits for. */
    runs?: string[];
  };
  /** The protocol's name; there are no such events. */
  'job.heartbeat': OfJob;
  /** A handler reported how far it is. */
  'job.progress': OfJob & {
    /** 0 … 100. */
    progress: number;
    message?: string;
    data?: unknown;
  };
  /** A handler logged something. `GET /jobs/{id}/log` has it. */
  'job.log': OfJob & { lines: number };
  /** Something was recorded under the name of a step or a sleep. `GET /jobs/{id}/steps/{name}` has it. */
  'job.step': OfJob & {
    name: string;
    /** The member of its record that says what it is. */
    is: Exclude<StepKind, 'signal'>;
  };
  /** Jobs that a handler waits for were started, or have ended; or it stopped waiting for them. */
  'job.run': OfJob & {
    name: string;
    /** The member of the record that says what became of them; `until`: they run. */
    is: Exclude<StepKind, 'signal'>;
    run: RunOfEvent;
  };
  /** A signal was recorded. */
  'job.signal': OfJob & { name: string };
  /** A job changed its state. */
  'job.state_changed': OfJob;
}

/** Of what happens in queues beside their jobs. */
interface QueueEvents {
  /** A queue was paused. */
  'queue.paused': object;
  /** A queue was resumed. */
  'queue.resumed': object;
  /** A target failed again and again, and is sent no jobs for a while. */
  'queue.push_suspended': { target: string };
  /** A target works again. */
  'queue.push_resumed': { target: string };
  /** Jobs that were over were removed before their time, because the storage was nearly full; 0: none may go. */
  'queue.storage_pruned': {
    jobs: number;
    /** Up to when those had ended that were removed: epoch ms. */
    until: number;
  };
  /** The oldest dead letters were removed, because there were too many. */
  'queue.dead_letters_evicted': { evicted: number; max_count: number };
  /** A row of completed jobs cannot be read. */
  'queue.archive_damaged': {
    chunk: number;
    /** How many it had. */
    jobs: number;
    /** The sequence numbers in their ids: `3-5, 9`. */
    numbers: string;
  };
  /** The first step of a workflow was enqueued. */
  'workflow.started': { workflow_id: string };
  /** A step of a workflow succeeded. */
  'workflow.step_completed': OfWorkflow & { step: string; job_id?: string };
  /** All steps of a workflow succeeded. */
  'workflow.completed': OfWorkflow & { state: 'completed' };
  /** A step of a workflow failed, so that it ended. */
  'workflow.failed': OfWorkflow & { state: 'failed' };
  /** A schedule enqueued a job. */
  'cron.triggered': OfCron & {
    job_id: string;
    job_type: string;
    run_count: number;
    /** When it was due; absent: an operator triggered it. */
    scheduled_time?: Time;
    actual_time: Time;
  };
  /** A schedule was due and enqueued nothing. */
  'cron.skipped': OfCron & {
    reason: SkipReason;
    scheduled_time: Time;
    /** The last one, where several were skipped. */
    scheduled_until?: Time;
    /** The job in the way. */
    active_job_id?: string;
    message?: string;
  };
  /** A number was above the bound of a rule for too long. */
  'alert.firing': OfAlert;
  /** The number is well below the bound again, or nothing watches it any more. */
  'alert.resolved': OfAlert & {
    /** Why it ended although the number did not fall: the rule was deleted, disabled or given another queue. */
    reason?: 'queue_deleted' | 'rule_removed';
  };
}

/** Of the workers that pull. */
export interface WorkerEvents {
  /** A worker was seen for the first time. */
  'worker.started': WorkerFacts;
  /** A worker is gone. */
  'worker.stopped': { reason: 'stopped' | 'lost' | 'removed' };
  /** A worker takes no more jobs. */
  'worker.quiet': {
    /** Where an operator sent it. */
    directive?: Directive;
  };
  /** The protocol's name; there are no such events. */
  'worker.heartbeat': object;
}

/** Of webhooks. */
export interface WebhookEvents {
  /** A receiver was given up: nothing is sent to it any more. */
  'webhook.disabled': {
    /** Its origin: what follows may hold secrets. */
    url: string;
    reason?: 'gone' | 'failing';
  };
}

/** Of all. */
export interface EventData extends JobEvents, QueueEvents, WorkerEvents, WebhookEvents {}

/** The type of an event. */
export type EventType = keyof EventData;

/** What an event says in the log: members named `…_at` are epoch ms there. What is undefined does not travel. */
export type LoggedData<T extends EventType> = Logged<EventData[T]>;
type Logged<D> = D extends unknown
  ? { [Name in keyof D]: At<Name, D[Name]> | (Partial<Pick<D, Name>> extends Pick<D, Name> ? undefined : never) }
  : never;
type At<Name, Value> = Name extends `${string}_at` ? number : Value;

/** How the state of a job changed. */
export interface EventChange {
  from: JobState;
  to: JobState;
}
