/** Schedules as the server shows them, in wire names. Times are RFC 3339. */
import type { JobState } from '../job/states';
import { member, shaped } from './answers';

/** A schedule as the server shows it. Times are RFC 3339. */
export interface CronStatus {
  name: string;
  expression: string;
  timezone: string;
  overlapPolicy: 'skip' | 'allow' | 'cancel_previous' | 'enqueue';
  missedPolicy: 'skip' | 'fire_once' | 'fire_all';
  maxCatchup?: number;
  startAt?: string;
  endAt?: string;
  limit?: number;
  enabled: boolean;
  /** `completed`: it will not fire again. */
  status: 'active' | 'paused' | 'completed';
  description?: string;
  group?: string;
  nextRunAt: string | null;
  lastRunAt: string | null;
  lastJobId?: string;
  /** Jobs enqueued, those of {@link Crons.trigger} included. */
  runCount: number;
  /** Times of the schedule that enqueued a job. */
  fireCount: number;
  skippedCount: number;
  /** Fires that wait for the job of the previous fire. */
  waiting: number;
  createdAt: string;
  updatedAt: string;
  /** Queue and type of its jobs. */
  queue: string;
  type: string;
  args: unknown[];
  /** The job as it was declared, under wire names. */
  jobTemplate: Record<string, unknown>;
  /** At most five fires ahead. Not in lists. */
  nextFires?: string[];
}

/** A job that a schedule has enqueued. */
export interface CronExecution {
  jobId: string;
  state: JobState;
  trigger: 'schedule' | 'manual';
  /** The time in the schedule that the fire stands for. */
  scheduledAt: string;
  triggeredAt: string;
  startedAt: string | null;
  completedAt: string | null;
}

/** A fire, or several in a row, that enqueued nothing. */
export interface CronSkipped {
  scheduledAt: string;
  /** The last one, when they are several. */
  scheduledUntil?: string;
  skippedAt: string;
  reason: 'overlap_skip' | 'waiting_full' | 'missed' | 'unique' | 'refused';
  /** The job that had not ended, or that a unique policy found. */
  jobId?: string;
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
