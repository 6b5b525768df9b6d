/** Undoing steps: the table beside a handler, and the handler that is made of it for jobs that undo another one. */
import { isA, messageOf } from '../job/thrown';
import type { StepToUndo } from '../job/undo';
import { CancelledError } from './control';
import { TimeoutError } from './failure';
import { deadLetter, snoozeOf, UnrecoverableError } from './outcomes';
import { isObject } from './protocol';
import { retryOf } from './step-policy';
import { MAX_NAME } from './step-rules';
import { clip } from './text';
import type { HandlerFunction, StepContext, StepRetry, UndoFunction, UndoneJob } from './types';

/** A table that has been checked. */
export interface Undo {
  retry: number | StepRetry;
  find(step: string): UndoFunction | undefined;
}

const DEFAULT_TRIES = 5;
/** Failures that a dead letter lists in its message; its details have all. */
const LISTED = 10;

/** Checks a table. @throws {TypeError} */
export function undoTable(type: string, given: unknown, retry: unknown): Undo {
  const wrong = (problem: string) => new TypeError(`handlers: undo of ${JSON.stringify(type)} ${problem}`);
  if (!isObject(given) || Object.keys(given).length === 0) {
    throw wrong('needs an object of functions by the names of steps');
  }
  const exact = new Map<string, UndoFunction>();
  const prefixes: [prefix: string, undo: UndoFunction][] = [];
  for (const [name, undo] of Object.entries(given)) {
    if (typeof undo !== 'function') throw wrong(`needs a function for ${JSON.stringify(name)}`);
    if (name.endsWith('*')) prefixes.push([name.slice(0, -1), undo as UndoFunction]);
    else exact.set(name, undo as UndoFunction);
  }
  prefixes.sort(([a], [b]) => b.length - a.length);
  retryOf(`handlers: ${JSON.stringify(type)}.undoRetry`, retry ?? DEFAULT_TRIES);
  return {
    retry: (retry as Undo['retry']) ?? DEFAULT_TRIES,
    find: (step) => exact.get(step) ?? prefixes.find(([prefix]) => step.startsWith(prefix))?.[1],
  };
}

/** Undoes each step in turn, the last one first. If some fail for good, the job is a dead letter that lists them. */
export function undoing(type: string, { retry, find }: Undo): HandlerFunction {
  return async (job, ctx) => {
    const { job: undone, steps } = readArgs(job.args);
    const { env, log } = ctx;
    const failed: { step: string; message: string }[] = [];
    for (const [at, { name, result, certain: isCertain, job_ids: jobIds = [] }] of steps.entries()) {
      const undo = find(name);
      const run = async ({ signal }: StepContext): Promise<void> => {
        if (!undo) throw new UnrecoverableError(`Nothing in undo of ${JSON.stringify(type)} fits this name.`);
        const { enqueue, enqueueMany } = ctx;
        await undo(result, { job: undone, step: name, isCertain, jobIds, env, signal, log, enqueue, enqueueMany });
      };
      try {
        await ctx.step(stepName(name, at), run, { retry });
      } catch (thrown) {
        const isCut = isA(thrown, CancelledError) || isA(thrown, TimeoutError) || ctx.signal.aborted;
        if (isCut || snoozeOf(thrown) !== undefined) throw thrown;
        failed.push({ step: name, message: clip(messageOf(thrown), 500) });
      }
    }
    if (failed.length === 0) return { undone: steps.length };
    const list = failed.slice(0, LISTED).map(({ step }) => JSON.stringify(step));
    const more = failed.length > LISTED ? ` and ${failed.length - LISTED} more` : '';
    throw deadLetter(`Not undone: ${list.join(', ')}${more}, of ${steps.length} steps of job ${undone.id}.`, {
      type: 'undo_failed',
      details: { failed: failed.slice(0, 100) },
    });
  };
}

/** @throws {UnrecoverableError} unless a queue has made the job */
function readArgs([given]: readonly unknown[]): { job: UndoneJob; steps: StepToUndo[] } {
  if (isObject(given) && isObject(given.job) && Array.isArray(given.steps)) {
    return given as unknown as { job: UndoneJob; steps: StepToUndo[] };
  }
  throw new UnrecoverableError('Jobs of this type are made by queues: the arguments are { job, steps }.');
}

/** `undo charge`; a name that would become too long has its place instead of its end. */
function stepName(name: string, at: number): string {
  const whole = `undo ${name}`;
  return whole.length <= MAX_NAME ? whole : `${whole.slice(0, MAX_NAME - 8).replace(/[\ud800-\udbff]$/, '')} ${at}`;
}
