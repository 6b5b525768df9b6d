/** A job's life as a page shows it: its attempts, and everything that happened. Epoch ms. */
import { defined } from './envelope/fields';
import { historyOfJob } from './history';
import type { LogLine } from './log';
import type { JobErrorEntry, JobRecord } from './record';
import type { StepRecord, Steps } from './steps';
import type { RunError, StepRun } from './wire';

export interface Attempt {
  attempt: number;
  state: 'failed' | 'active' | 'completed';
  /** Absent where it is not known. */
  started_at?: number;
  ended_at?: number;
  duration_ms?: number;
  /** The queue's wait before it, after the failure of the one before. */
  delay_ms?: number;
  worker_id?: string;
  target?: string;
  error?: JobErrorEntry;
}

export interface TimelineEntry {
  at: number;
  /** What history calls it without `job.`; `log`, `progress`, `checkpoint`, `step`. */
  kind: string;
  [member: string]: unknown;
}

export interface Beside {
  log: readonly LogLine[];
  checkpoint?: { at: number; sequence: number };
  progress?: { at: number; progress: number; message?: string };
  steps: Steps;
}

/** The attempts on record, oldest first: those that failed, the newest 1000, and the one that runs or has completed. */
export function attemptsOf(record: JobRecord): Attempt[] {
  const { history, state } = record;
  const attempts: Attempt[] = [];
  let delay: number | null | undefined;
  for (const error of history.errors ?? []) {
    const { attempt, occurred_at, duration_ms, worker_id, target, backoff_ms } = error;
    attempts.push({
      ...{ attempt, state: 'failed', ended_at: occurred_at },
      ...(duration_ms !== null && { started_at: occurred_at - duration_ms, duration_ms }),
      ...defined({ delay_ms: delay ?? undefined, worker_id, target }),
      error,
    });
    delay = backoff_ms;
  }
  if (state !== 'active' && state !== 'completed') return attempts;
  const { started_at, completed_at: ended_at } =
    state === 'completed' ? history : { ...history, completed_at: undefined };
  const duration_ms = started_at === undefined || ended_at === undefined ? undefined : ended_at - started_at;
  const { worker_id, target } = record;
  return [
    ...attempts,
    {
      ...{ attempt: record.attempt, state },
      ...defined({ started_at, ended_at, duration_ms, delay_ms: delay ?? undefined, worker_id, target }),
    },
  ];
}

/** Everything that is on record of a job with its time, oldest first. */
export function timelineOf(record: JobRecord, { log, checkpoint, progress, steps }: Beside): TimelineEntry[] {
  const entries: TimelineEntry[] = historyOfJob(record).map(({ event_type, at, actor, data }) => ({
    ...{ at, kind: event_type.replace(/^job\./, '') },
    ...membersOf(data),
    ...(actor.type === 'worker' && { worker_id: actor.id }),
  }));
  for (const { at, level, message, fields } of log)
    entries.push({ at, kind: 'log', level, message, ...defined({ fields }) });
  if (progress) entries.push({ ...progress, kind: 'progress' });
  if (checkpoint) entries.push({ ...checkpoint, kind: 'checkpoint' });
  for (const [name, step] of Object.entries(steps)) {
    const at = momentOf(step);
    if (at !== undefined) entries.push({ at, kind: 'step', name, is: kindOf(step) });
  }
  // Sorting keeps the order of what happened in the same millisecond.
  return entries.sort((a, b) => a.at - b.at);
}

/** What an event says; what a handler said of its failure stands in `error`, as everywhere. */
const membersOf = ({ code, type, message, ...data }: Record<string, unknown>): Record<string, unknown> =>
  code === undefined ? defined({ ...data, type }) : { ...data, error: { code, type, message } };

/** What a step's record may be. */
const KINDS = ['signal', 'tries', 'until', 'error', 'timed_out', 'begun'] as const satisfies (keyof StepRecord)[];

export type StepKind = (typeof KINDS)[number] | 'result';

export const kindOf = (step: StepRecord): StepKind => KINDS.find((kind) => kind in step) ?? 'result';

/** Records of earlier versions have a time only where they name one. */
export const momentOf = ({ at, signal, until }: StepRecord): number | undefined => at ?? signal?.at ?? until;

/** The jobs of a run, as its events name them. `state` is how one that has ended did; absent: it was refused. */
export interface RunOfEvent extends Pick<StepRun, 'id' | 'queue' | 'type' | 'jobs' | 'ended' | 'failed'> {
  state?: 'completed' | 'discarded' | 'cancelled';
}

/** The event of a record. */
export function eventOfStep(
  name: string,
  step: StepRecord,
):
  | { type: 'job.signal'; data: { name: string } }
  | { type: 'job.step'; data: { name: string; is: Exclude<StepKind, 'signal'> } }
  | { type: 'job.run'; data: { name: string; is: Exclude<StepKind, 'signal'>; run: RunOfEvent } } {
  const is = kindOf(step);
  if (is === 'signal') return { type: 'job.signal', data: { name } };
  if (step.run === undefined) return { type: 'job.step', data: { name, is } };
  const { id, queue, type, jobs, ended, failed } = step.run;
  const state: RunOfEvent['state'] = is === 'result' ? 'completed' : (step.error as RunError | undefined)?.state;
  const run = { queue, type, ...defined({ id, jobs, ended, failed, state: jobs === undefined ? state : undefined }) };
  return { type: 'job.run', data: { name, is, run } };
}
