/** Undoing the steps of a job that ended otherwise than completed: a job of its own does it. Pure. */
import { utf8Bytes } from './bytes';
import { groupOf } from './group';
import type { JobBody, JobHistory } from './record';
import type { End } from './retention';
import { stepsInOrder } from './step-order';
import { type Steps, stepsOfEntries, stillBegun } from './steps';
import { cut } from './text';
import { isSignalUrl } from './token';
import { UNDO_OF, UNDO_SUFFIX } from './undo-names';

/** A step to undo. */
export interface StepToUndo {
  name: string;
  /** Has it a result on record? Otherwise its effect may, or may not, have come about. */
  certain: boolean;
  result?: unknown;
  /** Bytes of a result that is left out, because it is too large. */
  omitted?: number;
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

/** The steps that must be undone, the last one first. @param read gives a large result, as JSON */
export function stepsToUndo(steps: Steps, read: (name: string) => string | undefined): StepToUndo[] {
  const flagged = stepsInOrder(steps).filter(([name, { undo, result }]) => undo && !isSignalUrl(name, result));
  return flagged.reverse().map(([name, step]) => {
    const large = step.result_bytes === undefined ? undefined : read(name);
    const certain = 'result' in step || step.result_bytes !== undefined;
    const result = large === undefined ? step.result : JSON.parse(large);
    return { name, certain, ...(certain && { result }) };
  });
}

/** The body of the job that undoes these steps. */
export function undoBody(
  id: string,
  body: JobBody,
  steps: readonly StepToUndo[],
  { end, history }: { end: JobToUndo['end']; history: JobHistory },
): JobBody {
  const { type, args, meta, target_url, timeout_ms, visibility_timeout_ms } = body;
  const group = groupOf(body);
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
    ...(group !== undefined && { group }),
    ...(target_url !== undefined && { target_url }),
    ...(timeout_ms !== undefined && { timeout_ms }),
    ...(visibility_timeout_ms !== undefined && { visibility_timeout_ms }),
  };
}

/** The steps without their largest results, until the others fit. @param room bytes */
function fitting(steps: readonly StepToUndo[], room: number): StepToUndo[] {
  const sizes = new Map(steps.map((step) => [step, utf8Bytes(JSON.stringify(step.result) ?? '')]));
  let left = room - steps.reduce((sum, { name }) => sum + utf8Bytes(JSON.stringify(name)) + ENTRY_BYTES, 0);
  for (const size of sizes.values()) left -= size;
  const omitted = new Set<StepToUndo>();
  for (const [step, size] of [...sizes].sort(([, a], [, b]) => b - a)) {
    if (left >= 0) break;
    omitted.add(step);
    left += size;
  }
  return steps.map((step) => {
    if (!omitted.has(step)) return step;
    const { name, certain } = step;
    return { name, certain, omitted: sizes.get(step) as number };
  });
}

/** Beside its name and its result an entry takes no more. */
const ENTRY_BYTES = 64;

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
