/** Runs what undoes the steps of a job, in a test. */
import { runnable } from '../handler/runnable';
import type { StepRecord } from '../handler/step-rules';
import type { UndoneJob } from '../handler/types';
import { UNDO_OF, UNDO_SUFFIX } from '../job/undo-names';
import { idOf } from './job-id';
import { type JobRun, runToEnd } from './run-handler';
import type { EnvOf, RunOptions, TypesOf } from './types';

/** How a job that is undone ended, and what it was. */
export interface UndoOptions<Env = unknown> extends RunOptions<Env> {
  /** Default: a job without arguments that was discarded. */
  undone?: Partial<UndoneJob> | undefined;
}

/**
 * Runs the job that undoes the steps of another one, to its end: waits between tries are over at once.
 * @param type of the job that is undone
 * @param steps what it has recorded, in order: the `steps` of an outcome, or `{ charge: { result: 7 } }`. Those that
 * nothing in the table of undo fits are left out
 * @throws {TypeError} when the handler of the type has no `undo`, or something given is not JSON
 * @example
 * const run = await undoHandler(handlers, 'order.fulfil', { charge: { result: { id: 'ch_1' } } }, { env: { SHOP } });
 * expect(run.status).toBe('completed');
 */
export async function undoHandler<H, Type extends TypesOf<H>>(
  handlers: H,
  type: Type,
  steps: Readonly<Record<string, StepRecord>>,
  { undone, ...options }: UndoOptions<EnvOf<H>> = {},
): Promise<JobRun<{ undone: number }>> {
  const { canUndo } = runnable(handlers).registry.find(type) ?? {};
  if (!canUndo) throw new TypeError(`undoHandler: the handler of ${JSON.stringify(type)} has no undo`);
  const failure = { code: 'handler_error', type: 'Error', message: 'failed' };
  const of = { id: idOf(0), type, args: [], meta: {}, end: 'discarded', error: failure, ...undone };
  const entries = Object.entries(steps).filter(([name]) => canUndo(name));
  const told = entries.reverse().map(([name, step]) => ({
    ...{ name, certain: 'result' in step },
    ...('result' in step && { result: step.result }),
  }));
  const args = [{ job: of, steps: told }];
  const meta = { [UNDO_OF]: of.id, ...options.meta };
  const job = { id: idOf(1), ...options.job };
  const undo = `${type}${UNDO_SUFFIX}`;
  const run = await runToEnd<object, string>(handlers as object, undo, args, { ...(options as RunOptions), meta, job });
  return run as JobRun<{ undone: number }>;
}
