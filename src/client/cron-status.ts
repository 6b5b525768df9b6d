/** Schedules as the server shows them, in wire names. Times are RFC 3339. */
import type { JobState } from '../job/states';
import { member, shaped } from './answers';

/** A schedule as the server shows it. Times are RFC 3339. */
export interface CronStatus {
  name: string;
  expression: string;
  timezone: string;
  overlap_policy: 'skip' | 'allow' | 'cancel_previous' | 'enqueue';
  missed_policy: 'skip' | 'fire_once' | 'fire_all';
  max_catchup?: number;
  start_at?: string;
  end_at?: string;
  limit?: number;
  enabled: boolean;
  /** `completed`: it will not fire again. */
  status: 'active' | 'paused' | 'completed';
  description?: string;
  group?: string;
  next_run_at: string | null;
  last_run_at: string | null;
  last_job_id?: string;
  /** Jobs enqueued, those of {@link Crons.trigger} included. */
  run_count: number;
  /** Times of the schedule that enqueued a job. */
  fire_count: number;
  skipped_count: number;
  /** Fires that wait for the job of the previous fire. */
  waiting: number;
  created_at: string;
  updated_at: string;
  /** Queue and type of its jobs. */
  queue: string;
  type: string;
  args: unknown[];
  /** The job as it was declared, under wire names. */
  job_template: Record<string, unknown>;
  /** At most five fires ahead. Not in lists. */
  next_fires?: string[];
}

/** A job that a schedule has enqueued. */
export interface CronExecution {
  job_id: string;
  state: JobState;
  trigger: 'schedule' | 'manual';
  /** The time in the schedule that the fire stands for. */
  scheduled_at: string;
  triggered_at: string;
  started_at: string | null;
  completed_at: string | null;
}

/** A fire, or several in a row, that enqueued nothing. */
export interface CronSkipped {
  scheduled_at: string;
  /** The last one, when they are several. */
  scheduled_until?: string;
  skipped_at: string;
  reason: 'overlap_skip' | 'waiting_full' | 'missed' | 'unique' | 'refused';
  /** The job that had not ended, or that a unique policy found. */
  job_id?: string;
  message?: string;
}

/** Recent fires of a schedule, the latest first. Times are RFC 3339. */
export interface CronHistory {
  executions: CronExecution[];
  skipped: CronSkipped[];
}

/** The schedule in an answer about one schedule. @throws {UnavailableError} */
export function cronOf(answer: unknown): CronStatus {
  return shaped<CronStatus>(member(answer, 'cron'), 'name', 'the entry');
}
