/** The answers of queues and the directory about cron entries, over RPC. Times are epoch milliseconds. */
import type { SkipReason } from '../job/event-data';
import type { JobState } from '../job/states';
import type { CronDefinition } from '../schedules/definition';

/** A job that a fire has enqueued. */
export interface CronExecution {
  job_id: string;
  /** The time in the schedule; absent when an operator triggered the job. */
  tick?: number;
  at: number;
}

/** A fire, or several in a row, that enqueued nothing. */
export interface CronSkip {
  tick: number;
  /** The last one, when they are several. */
  until?: number;
  at: number;
  reason: SkipReason;
  /** The job in the way. */
  job_id?: string;
  message?: string;
}

/** A fire that waits until other queues have been asked about its unique policy. */
export interface CronAcross {
  /** The id of its future job, so that a repetition does no harm. */
  id: string;
  tick: number;
  at: number;
}

/** The run of an entry so far. */
export interface CronRun {
  created_at: number;
  updated_at: number;
  /** Intervals count from here. */
  anchor: number;
  next_at?: number;
  /** Jobs enqueued in all. */
  runs: number;
  /** Jobs that the schedule itself enqueued; a limit counts these. */
  fires: number;
  skips: number;
  last_run_at?: number;
  /** The last job; the overlap policy looks at this one. */
  last_job?: string;
  /** Fires that wait for the last job to end, oldest first. */
  waiting: number[];
  across: CronAcross[];
  /** The latest, oldest first. */
  history: CronExecution[];
  skipped: CronSkip[];
}

export interface CronView {
  definition: CronDefinition;
  run: CronRun;
  /** Number of the change that gave the definition its present form. */
  version: number;
}

export type CronSummary = Pick<CronDefinition, 'name' | 'enabled'> & { group: string | null };

/** Creates or replaces an entry. */
export interface PutCron {
  definition: CronDefinition;
  /** Given by the directory. */
  version: number;
  /** The run that came with it from another queue. */
  run?: CronRun;
  /** Only while the entry still has this version. */
  basedOn?: number;
}

export interface CronExecutionView extends CronExecution {
  /** `pruned`: the job has been removed since. */
  state: JobState | 'pruned';
  started_at?: number;
  /** When it ended, whichever way. */
  ended_at?: number;
}

/** The queue of the entry with a name. */
export interface CronPlace {
  queue: string;
  /** Queues that may still have the entry, because the last change was cut off. */
  others: string[];
  version: number;
}
