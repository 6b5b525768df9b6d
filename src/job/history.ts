/** A job's history, from its own record: timestamps and errors, without an operator's pause. */
import type { JobErrorEntry, JobHistory, JobRecord } from './record';
import type { JobState } from './states';
import { formatInstant } from './time';
import type { HistoryEventType } from './wire';

export interface HistoryActor {
  type: 'worker' | 'system';
  id: string;
}

export interface HistoryEvent {
  event_type: HistoryEventType;
  /** Epoch ms. */
  at: number;
  actor: HistoryActor;
  data: Record<string, unknown>;
}

/** An attempt that failed, and what followed. Times in epoch ms. */
export interface FailedAttempt {
  attempt: number;
  /** The state after the attempt: waiting, or ended. */
  state: 'retryable' | 'discarded';
  error: string;
  /** Absent when the queue does not know how long the attempt ran. */
  started_at?: number;
  failed_at: number;
  next_retry_at?: number;
}

const SYSTEM: HistoryActor = { type: 'system', id: 'tocsin' };

export function historyOfJob(record: JobRecord): HistoryEvent[] {
  const { history } = record;
  const events: HistoryEvent[] = [];
  const note = (event_type: HistoryEventType, at: number, data: HistoryEvent['data'], actor = SYSTEM) => {
    events.push({ event_type, at, actor, data });
  };
  const moved = (at: number, from: JobState | null, to: JobState) => note('job.state_changed', at, { from, to });
  const started = (attempt: number, at: number, actor?: HistoryActor) => {
    moved(at, 'available', 'active');
    note('job.attempt_started', at, { attempt }, actor);
  };
  note('job.created', record.created_at, { type: record.type, queue: record.queue, priority: record.priority });
  const failures = history.errors ?? [];
  for (const failure of failures) {
    const { attempt, occurred_at, code, type, message } = failure;
    const { started_at, state } = failedAttempt(failure);
    if (started_at !== undefined) started(attempt, started_at);
    note('job.attempt_failed', occurred_at, { attempt, code, type, message, backoff_ms: failure.backoff_ms });
    moved(occurred_at, 'active', state);
  }
  const { snoozed, first_started_at: first } = history;
  const isListed = first === undefined || failures.some((failure) => failedAttempt(failure).started_at === first);
  const running = record.state === 'active' || record.state === 'completed';
  if (!isListed && !(running && first === history.started_at)) started(1, first);
  if (snoozed) {
    const { since, until, signal } = snoozed;
    note('job.snoozed', since, { until: formatInstant(until), ...(signal !== undefined && { signal }) });
    moved(since, 'active', record.state);
  }
  if (running && history.started_at !== undefined) {
    const worker = record.worker_id;
    started(record.attempt, history.started_at, worker === undefined ? undefined : { type: 'worker', id: worker });
  }
  if (record.state === 'completed' && history.completed_at !== undefined) {
    note('job.attempt_completed', history.completed_at, { attempt: record.attempt });
    moved(history.completed_at, 'active', 'completed');
  }
  if (history.cancelled_at !== undefined) note('job.cancelled', history.cancelled_at, {});
  if (history.discarded_at !== undefined) {
    const dead = history.dead_letter === true;
    note('job.discarded', history.discarded_at, { reason: history.reason ?? null, dead_letter: dead });
  }
  if (record.state === 'available' && record.enqueued_at > record.created_at) {
    moved(record.enqueued_at, null, 'available');
  }
  // Each follows the ones before it; sorting keeps the order of events in the same millisecond.
  return events.sort((a, b) => a.at - b.at);
}

/** When the first run of a job began, epoch ms; undefined: not known, or its last run is the first. */
export function firstStart({ first_started_at, errors }: JobHistory): number | undefined {
  const first = errors?.[0];
  const failed = first?.attempt === 1 ? failedAttempt(first).started_at : undefined;
  return first_started_at ?? failed;
}

/** The attempts that failed, oldest first, the newest 1000. */
export const failedAttempts = (record: JobRecord): FailedAttempt[] => (record.history.errors ?? []).map(failedAttempt);

const failedAttempt = ({ attempt, occurred_at, duration_ms, message, backoff_ms }: JobErrorEntry): FailedAttempt => ({
  attempt,
  state: backoff_ms === null ? 'discarded' : 'retryable',
  error: message,
  ...(duration_ms !== null && { started_at: occurred_at - duration_ms }),
  failed_at: occurred_at,
  ...(backoff_ms !== null && { next_retry_at: occurred_at + backoff_ms }),
});
