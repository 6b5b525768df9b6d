/**
 * The rules of durable steps, sleeps and signals, as pure functions of what is recorded of a job and of the time.
 *
 * A job runs from its beginning after each sleep, signal and failure. What it finds recorded under a name is not done
 * again: a step gives its recorded result, a sleep that is over returns, a signal that has come gives its payload.
 */
import { memberOf } from '../job/thrown';
import type { StepRun } from '../job/wire';
import { StepError, type StepFailure } from './outcomes';

/** What is recorded under a name. A step that returned nothing has the result null. */
export type StepRecord = Recorded & {
  /** It stands for jobs that the handler waits for. */
  run?: StepRun | undefined;
  /** When it was recorded, epoch ms. */
  at?: number;
  /** The step must be undone if the job does not complete. */
  undo?: true;
};

/** What is recorded of jobs that a handler waits for. */
export type RunRecord = StepRecord & { run: StepRun };

type Recorded =
  | { result: unknown }
  /** Its result must be asked for. With `error` it does not come with this job. */
  | { result_bytes: number; error?: unknown }
  /** The step failed for good. A record of another runner may hold any JSON. */
  | { error: unknown }
  /** A step that can be undone is about to be done, or was cut off. */
  | { begun: true }
  /** Waiting for time, a signal or jobs: until then, epoch ms. With `tries` a step that is tried again then. */
  | { until: number; tries?: number; failed?: StepFailure }
  | { signal: { payload?: unknown; at: number } }
  /** The signal did not come in time, or the jobs did not end. */
  | { timed_out: true };

/** When a run that ended early continues. */
export interface Pause {
  /** Epoch ms, or {@link AT_ONCE}. */
  until: number;
  /** The signal that ends the pause early. */
  signal?: string;
}

/** The end of a pause that is none. */
export const AT_ONCE = 0;

export const MAX_NAME = 128;

/** @throws {TypeError} when it is not a name: the queue would refuse the report of its run */
export function requireName(verb: string, name: unknown, max = MAX_NAME): asserts name is string {
  if (typeof name === 'string' && name.length <= max && !/^\.{0,2}$|\0|\p{Surrogate}/u.test(name)) return;
  throw new TypeError(
    `ctx.${verb}: a name is a string of 1 to ${max} characters, not ${JSON.stringify(name)}; it may not be "." or "..", and has neither U+0000 nor half of an emoji`,
  );
}

/**
 * The recorded result of a step; undefined: it must run.
 * @param isRetried a queue of an earlier release leaves out how often a step was tried: what is left looks like a sleep
 * @throws {StepError} when it failed for good. @throws {TypeError} when the name is another thing's
 */
export function recordedResult(
  name: string,
  record: StepRecord | undefined,
  isRetried = false,
): { result: unknown } | undefined {
  if (record === undefined || 'begun' in record) return undefined;
  if (record.run) throw taken('step', name, kindOf(record));
  if ('until' in record && (isRetried || record.tries !== undefined)) return undefined;
  if ('error' in record) throw new StepError(name, failureIn(record.error));
  const kind = kindOf(record);
  if (kind === 'step') return { result: Reflect.get(record, 'result') };
  throw taken('step', name, kind);
}

export const isLarge = (record: StepRecord | undefined): boolean =>
  record !== undefined && 'result_bytes' in record && !('result' in record);

function failureIn(error: unknown): StepFailure {
  if (typeof memberOf(error, 'message') === 'string') return error as StepFailure;
  return { message: typeof error === 'string' ? error : JSON.stringify(error) };
}

/** How often a step on record was tried, and when it is tried again: epoch ms. */
export const triesOf = (record: StepRecord | undefined): { tries: number; until: number } =>
  record !== undefined && 'until' in record
    ? { tries: record.tries ?? 1, until: record.until }
    : { tries: 0, until: 0 };

/** When a sleep ends; undefined: it is over. @throws {TypeError} when the name is a step's */
export function sleepUntil(
  name: string,
  record: StepRecord | undefined,
  ms: number,
  now: number,
): { until: number } | undefined {
  const kind = record && kindOf(record);
  if (kind !== undefined && kind !== 'sleep' && kind !== 'signal') throw taken('sleep', name, kind);
  // A signal of this name ends the sleep: it shares its name with nothing else.
  if (record !== undefined && !('until' in record)) return undefined;
  const until = record?.until ?? now + ms;
  return until > now ? { until } : undefined;
}

/** What is known of a signal. @throws {TypeError} when the name is a step's */
export function signalOf(
  name: string,
  record: StepRecord | undefined,
  timeoutMs: number,
  now: number,
): { payload: unknown } | { until: number } | 'timed out' {
  if (record !== undefined) {
    if (record.run) throw taken('waitFor', name, kindOf(record));
    if ('signal' in record) return { payload: record.signal.payload };
    if ('timed_out' in record) return 'timed out';
    if (kindOf(record) === 'step' || !('until' in record)) throw taken('waitFor', name, 'step');
  }
  const until = record?.until ?? now + timeoutMs;
  return until > now ? { until } : 'timed out';
}

/** When it came about, epoch ms; undefined: nothing is on record; Infinity: unknown, as of a timeout. */
export function momentOf(record: StepRecord | undefined): number | undefined {
  if (record === undefined) return undefined;
  if ('until' in record) return record.until;
  if (record.run && !('timed_out' in record)) return record.at;
  return 'signal' in record ? record.signal.at : Number.POSITIVE_INFINITY;
}

/** Of several pauses the earliest end counts, and the first signal: a queue waits for one. */
export function earlier(one: Pause | undefined, other: Pause): Pause {
  if (one === undefined) return other;
  const signal = one.signal ?? other.signal;
  return { until: Math.min(one.until, other.until), ...(signal !== undefined && { signal }) };
}

export function kindOf(record: StepRecord): 'step' | 'sleep' | 'signal' | 'run' | 'runAll' {
  if (record.run) return record.run.jobs === undefined ? 'run' : 'runAll';
  if ('until' in record) return record.tries === undefined ? 'sleep' : 'step';
  return 'signal' in record || 'timed_out' in record ? 'signal' : 'step';
}

export function taken(verb: string, name: string, kind: string): TypeError {
  return new TypeError(`ctx.${verb}: ${JSON.stringify(name)} is recorded as a ${kind} of this job; use another name`);
}
