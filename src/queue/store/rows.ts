/** What a row means at a given moment. */

import { shown } from '../../job/envelope/nesting';
import { mintId } from '../../job/ids';
import type { LogLine } from '../../job/log';
import type { JobBody, JobErrorEntry, JobHistory, JobRecord } from '../../job/record';
import type { JobState } from '../../job/states';
import { type Active, ranBy } from './active';
import { historyOf, type JobRow, STATE } from './job-row';
import type { ReportedProgress } from './progress';

/** A completed job as an archive chunk keeps it. Member names are short because every job pays for them. */
export interface ArchivedJob {
  k: number;
  /** Client-chosen id. */
  a?: string;
  t: string;
  p: number;
  /** Attempt that completed it. */
  n: number;
  /** Claims over its life. */
  c: number;
  /** created, enqueued, started, completed. */
  at: [number, number, number, number];
  /** When its first run began, of a job that was put to sleep. */
  f?: number;
  b: JobBody;
  e?: JobErrorEntry[];
  r?: unknown;
  /** The result lies in `results`. */
  far?: 1;
  /** Execution limit of the pushed attempt that completed it, ms. */
  push?: number;
  /** Who completed it: the worker, or the target. */
  w?: string;
  g?: string;
  /** The last progress report. */
  pg?: ReportedProgress;
  /** There may be a checkpoint, or steps. */
  cp?: 1;
  /** It has output streams. */
  os?: 1;
  /** What its attempts have logged. */
  l?: LogLine[];
}

export const idOf = (route: number, row: { alias: string | null; created_at: number; key: number }): string =>
  row.alias ?? mintId(row.created_at, route, row.key);

export const idOfArchived = (route: number, job: Pick<ArchivedJob, 'k' | 'a' | 'at'>): string =>
  idOf(route, { alias: job.a ?? null, created_at: job.at[0], key: job.k });

export function stateOf(row: Pick<JobRow, 'state' | 'due_at' | 'attempt'>, active: boolean, now: number): JobState {
  if (row.state === STATE.pending) return 'pending';
  if (row.state === STATE.cancelled) return 'cancelled';
  if (row.state === STATE.discarded || row.state === STATE.dead) return 'discarded';
  if (active) return 'active';
  if (row.due_at !== null && row.due_at > now) return row.attempt > 0 ? 'retryable' : 'scheduled';
  return 'available';
}

/** When the job became available, epoch ms. */
export const availableSince = ({ enqueued_at, due_at }: Pick<JobRow, 'enqueued_at' | 'due_at'>): number =>
  Math.max(enqueued_at, due_at ?? 0);

/** The place of a waiting job among those of its priority, epoch ms. */
export const placeOf = ({ enqueued_at, due_at }: Pick<JobRow, 'enqueued_at' | 'due_at'>): number =>
  due_at ?? enqueued_at;

/** Has the job's time to start passed? @param now epoch ms */
export const isTooLate = ({ expires_at }: Pick<JobRow, 'expires_at'>, now: number): boolean =>
  expires_at !== null && expires_at <= now;

/** Does the job wait because its handler snoozed it? A later claim ends that, and so does any other new time. */
export const isSnoozed = (row: Pick<JobRow, 'state' | 'due_at' | 'claims'>, { snoozed }: JobHistory): boolean =>
  row.state === STATE.waiting && snoozed?.claim === row.claims && snoozed.until === row.due_at;

export function recordOf(
  row: JobRow,
  active: Active | undefined,
  context: { queue: string; route: number; now: number },
): JobRecord {
  const state = stateOf(row, active !== undefined, context.now);
  const history = historyOf(row);
  if (active) history.started_at = active.startedAt;
  // Read on request, and too long to travel with every job.
  if (history.log) delete history.log;
  if (history.begun !== undefined) delete history.begun;
  const sleeps = history.snoozed && (state === 'scheduled' || state === 'retryable') && isSnoozed(row, history);
  if (history.snoozed && !sleeps) delete history.snoozed;
  const due = row.due_at;
  const promoted = row.state === STATE.waiting && due !== null && due <= context.now;
  const record: JobRecord = {
    id: idOf(context.route, row),
    queue: context.queue,
    type: row.type,
    state,
    priority: row.priority,
    attempt: active ? active.attempt : row.attempt,
    created_at: row.created_at,
    enqueued_at: promoted ? Math.max(row.enqueued_at, due) : row.enqueued_at,
    body: row.body,
    history,
  };
  if (state === 'retryable' || state === 'scheduled') record.due_at = row.due_at as number;
  return active ? ranBy(active, record) : record;
}

/** An archived job as the queue hands it out. `result` is JSON text, read from `results` if it is there. */
export function recordOfArchived(
  job: ArchivedJob,
  context: { queue: string; route: number; result?: string },
): JobRecord {
  const [created_at, enqueued_at, started_at, completed_at] = job.at;
  const result = context.result ?? ('r' in job ? JSON.stringify(shown(job.r)) : undefined);
  return {
    id: idOf(context.route, { alias: job.a ?? null, created_at, key: job.k }),
    queue: context.queue,
    type: job.t,
    state: 'completed',
    priority: job.p,
    attempt: job.n,
    created_at,
    enqueued_at,
    body: JSON.stringify(job.b),
    history: {
      started_at,
      completed_at,
      ...(job.f !== undefined && { first_started_at: job.f }),
      ...(job.e && { errors: shown(job.e) }),
    },
    ...(result !== undefined && { result }),
    ...(job.w !== undefined && { worker_id: job.w }),
    ...(job.g !== undefined && { target: job.g }),
    ...(job.pg && { progress: 1, ...(job.pg.data && { progress_data: shown(job.pg.data) }) }),
  };
}
