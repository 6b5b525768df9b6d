/** Undoing the steps of a job that ended otherwise than completed: a job of its own does it. Pure. */
import { utf8Bytes } from './bytes';
import { defined } from './envelope/fields';
import { groupOf } from './group';
import type { JobBody, JobHistory } from './record';
import type { End } from './retention';
import { isSignalUrl } from './signal-url';
import { stepsInOrder } from './step-order';
import { type ReadResult, type StepRecord, type Steps, stepsOfEntries, stillBegun } from './steps';
import { cut } from './text';
import { UNDO_OF, UNDO_SUFFIX } from './undo-names';

/** A step to undo. */
export interface StepToUndo {
  name: string;
  /** Has it a result on record, of jobs without a failure? Otherwise its effect may, or may not, have come about. */
  certain: boolean;
  result?: unknown;
  /** Bytes of a result that is left out, because it is too large or cannot be read. */
  omitted?: number;
  /** Of a step that waited for jobs: their ids, in order. Null: the queue does not know that it was started. */
  job_ids?: (string | null)[];
}

/** What an undo job gets to know about its job. */
export interface JobToUndo {
  id: string;
  type: string;
  args: unknown[];
  meta: Record<string, unknown>;
  end: Exclude<End, 'completed'>;
  error: { code: string; type: string; message: string };
}

/** Largest arguments of an undo job, bytes: its row holds 2 MB, with its errors and its log. */
const MAX_BYTES = 1_572_864;
const MAX_MESSAGE = 1_024;

/** A job that did not get through for these reasons is tried again: an undo must not be lost. */
const RETRY = { max_attempts: 5, on_exhaustion: 'dead_letter' };

/** The steps that must be undone, the last one first. */
export function stepsToUndo(steps: Steps, read: ReadResult): StepToUndo[] {
  const flagged = stepsInOrder(steps).filter(([name, step]) => step.undo && mayHaveEffect(name, step));
  return flagged.reverse().map(([name, step]) => stepToUndo(name, step, read));
}

const mayHaveEffect = (name: string, { result, error, run }: StepRecord) =>
  !isSignalUrl(name, result) && (error === undefined || run === undefined || run.id !== undefined);

/** What is known of a step that must be undone. */
function stepToUndo(name: string, step: StepRecord, read: ReadResult): StepToUndo {
  const { run, result_bytes: omitted } = step;
  const known = omitted === undefined ? resultIn(step) : read(name);
  return {
    name,
    certain: (omitted !== undefined || 'result' in step) && !run?.failed,
    ...(known ? { result: known[0] } : omitted !== undefined && { omitted }),
    ...(run && { job_ids: run.ids ?? [run.id ?? null] }),
  };
}

/** In a list. Of several jobs that were not all awaited it is the ends of those that have ended, in their places. */
function resultIn({ run, ...step }: StepRecord): unknown[] | undefined {
  if ('result' in step) return [step.result];
  if (run?.jobs === undefined) return undefined;
  const ended = new Map(run.ends);
  return [Array.from({ length: run.jobs }, (_, at) => ended.get(at) ?? defined({ id: run.ids?.[at] ?? undefined }))];
}

/** The body of the job that undoes these steps. */
export function undoBody(
  id: string,
  body: JobBody,
  steps: readonly StepToUndo[],
  { end, history }: { end: JobToUndo['end']; history: JobHistory },
): JobBody {
  const { type, args, meta, target_url, timeout_ms, visibility_timeout_ms } = body;
  const { error, reason } = history;
  const code = error?.code ?? (end === 'cancelled' ? end : (reason ?? end));
  const job: JobToUndo = {
    ...{ id, type, args, meta, end },
    error: { code, type: error?.type ?? code, message: cut(error?.message ?? `The job ended: ${code}.`, MAX_MESSAGE) },
  };
  const { traceparent } = meta;
  return {
    type: `${type}${UNDO_SUFFIX}`,
    args: [{ job, steps: fitting(steps, MAX_BYTES - utf8Bytes(JSON.stringify(job))) }],
    meta: { [UNDO_OF]: id, ...(traceparent !== undefined && { traceparent }) },
    retry: RETRY,
    ...defined({ group: groupOf(body), target_url, timeout_ms, visibility_timeout_ms }),
  };
}

/** The steps without their largest results, until the others fit. @param room bytes */
function fitting(steps: readonly StepToUndo[], room: number): StepToUndo[] {
  const fit = steps.map((step) => ({ step, bytes: utf8Bytes(JSON.stringify(step.result) ?? '') }));
  let left = room;
  for (const { step, bytes } of fit) left -= utf8Bytes(JSON.stringify({ ...step, result: null })) + ENTRY_BYTES + bytes;
  for (const one of fit.toSorted((a, b) => b.bytes - a.bytes)) {
    if (left >= 0 || one.bytes === 0) break;
    const { result: _, ...step } = one.step;
    one.step = { ...step, omitted: one.bytes };
    left += one.bytes;
  }
  return fit.map(({ step }) => step);
}

/** What an entry takes in place of a result that is left out. */
const ENTRY_BYTES = 32;

/** The records that another job, a fork, begins with: what they have done belongs to the first. @param isUndone its */
export function forFork(steps: Steps, isUndone: boolean): Steps {
  return stepsOfEntries(
    Object.entries(steps).flatMap(([name, { undo, ...step }]) =>
      step.begun || (undo && isUndone) ? [] : [[name, step]],
    ),
  );
}

/**
 * What a job keeps that starts again from a step. @param kept the records before it @param isUndone its steps were
 * undone: those run again, too
 */
export function forRestart(all: Steps, kept: Steps, isUndone: boolean): Steps {
  if (isUndone) return stepsOfEntries(Object.entries(kept).filter(([, { undo }]) => !undo));
  const later = Object.entries(all).filter(([name]) => !Object.hasOwn(kept, name));
  return stepsOfEntries([...Object.entries(kept), ...later.flatMap(([name, step]) => stillBegun(name, step))]);
}
