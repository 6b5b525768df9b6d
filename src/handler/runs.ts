/** Jobs that a handler waits for: how it asks for them, and what is on record of their ends. */
import type { RunEnd, RunError, RunRequest, StepRun } from '../job/wire';
import { DEFAULT_WAIT, requireDuration } from './duration';
import { ChildError, ChildrenFailedError, RunTimeoutError } from './outcomes';
import { isObject } from './protocol';
import { kindOf, type RunRecord, type StepRecord, taken } from './step-rules';
import type { ChildOutcome, RunAllOptions, RunChildOptions } from './types';

export type RunVerb = 'run' | 'runAll';

/** Jobs that a handler waits for, and what it gets when they have ended. */
export interface Run<T> {
  verb: RunVerb;
  name: string;
  /** What is sent with the end of the run. Called if nothing is on record. @throws {TypeError} */
  request: () => RunRequest;
  /** @throws {ChildError} {@link ChildrenFailedError} {@link RunTimeoutError} */
  read: (ended: RunRecord) => T;
}

/** Options of a job that a handler cannot wait for. */
const REFUSED = ['id', 'pending', 'unique'] as const;
const ON_FAILURE: unknown[] = ['throw', 'stop', 'return'] satisfies NonNullable<RunAllOptions['onFailure']>[];

/** The options of a job that is waited for. @throws {TypeError} for one that it cannot have */
export function jobOptionsOf<Options extends object>(what: string, options: Options): Options {
  if (!isObject(options)) throw new TypeError(`${what}: its options are an object`);
  const refused = REFUSED.find((name) => Reflect.get(options, name) !== undefined);
  if (refused === undefined) return options;
  throw new TypeError(`${what}: a job that is waited for cannot have ${refused}; use ctx.enqueue for such a job`);
}

/** @throws {TypeError} for a wrong option */
export function requestOf(
  { verb, name }: Pick<Run<unknown>, 'verb' | 'name'>,
  jobs: NonNullable<RunRequest['jobs']>,
  { timeout, detached, onFailure }: Pick<RunChildOptions, 'timeout' | 'detached'> & RunAllOptions,
): RunRequest {
  const what = `ctx.${verb}: ${JSON.stringify(name)}`;
  const timeout_ms = requireDuration(timeout === undefined ? DEFAULT_WAIT : timeout, `${what}, timeout`);
  if (detached !== undefined && typeof detached !== 'boolean')
    throw new TypeError(`${what}: detached must be true or false`);
  if (onFailure !== undefined && !ON_FAILURE.includes(onFailure))
    throw new TypeError(`${what}: onFailure must be one of ${ON_FAILURE.join(', ')}`);
  return {
    ...{ name, jobs, timeout_ms },
    ...(verb === 'runAll' && { all: true }),
    ...(onFailure === 'stop' && { stop: true }),
    ...(detached && { detached: true }),
  };
}

/** What is on record of a run. @throws {TypeError} when the name is another thing's */
export function runRecord(
  { verb, name }: Pick<Run<unknown>, 'verb' | 'name'>,
  record: StepRecord | undefined,
): RunRecord | undefined {
  if (record === undefined || 'begun' in record) return undefined;
  if (kindOf(record) === verb) return record as RunRecord;
  throw taken(verb, name, kindOf(record));
}

/** The result of one job. @throws {ChildError} {@link RunTimeoutError} */
export function readRun<T>(name: string, ended: RunRecord): T {
  const { run } = ended;
  const large = 'result_bytes' in ended ? ended.result_bytes : undefined;
  const bytes = 'result' in ended ? omittedIn(ended.result, run) : large;
  if (bytes !== undefined) {
    const message = `Its result has ${bytes} bytes, more than there is room for. Let it store the result elsewhere.`;
    throw new ChildError(name, run, { code: 'result_too_large', message, state: 'completed' });
  }
  if ('error' in ended) throw childError(name, run, ended.error);
  if ('result' in ended) return ended.result as T;
  throw new RunTimeoutError(`The job that ${JSON.stringify(name)} waits for did not end in time.`);
}

/** How several jobs have ended, in order. @throws {ChildrenFailedError} {@link ChildError} {@link RunTimeoutError} */
export function readRunAll<T>(
  name: string,
  { onFailure = 'throw' }: RunAllOptions,
  ended: RunRecord,
): ChildOutcome<T>[] {
  if ('error' in ended) throw childError(name, ended.run, ended.error);
  if (!('result' in ended)) {
    throw new RunTimeoutError(`The jobs that ${JSON.stringify(name)} waits for did not end in time.`);
  }
  // The queue wrote it.
  const ends = (ended.result as RunEnd[]).map(({ id, result, omitted, error }): ChildOutcome<T> => {
    if (error) return { id, error: childError(name, { ...ended.run, ...(id !== undefined && { id }) }, error) };
    return omitted === undefined ? { id: id as string, result: result as T } : { id: id as string, omitted };
  });
  const failures = ends.flatMap(({ id, error }, index) => (error ? [{ index, id, error }] : []));
  if (failures.length === 0 || onFailure === 'return') return ends;
  throw new ChildrenFailedError(name, ends.length, failures);
}

/** What the queue has recorded in the place of a result that has no room, in bytes. */
function omittedIn(result: unknown, { id }: StepRun): number | undefined {
  if (!isObject(result) || Object.keys(result).length !== 2 || id === undefined || result.id !== id) return undefined;
  return typeof result.omitted === 'number' ? result.omitted : undefined;
}

function childError(name: string, run: Pick<StepRun, 'id' | 'type'>, error: unknown): ChildError {
  const { message, ...known } = isObject(error) ? (error as unknown as RunError) : { message: String(error) };
  return new ChildError(name, run, { ...known, message: String(message) });
}
