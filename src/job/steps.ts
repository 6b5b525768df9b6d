/**
 * What is on record of a job's durable steps, by name: results, moments to sleep until, signals. A handler that runs again
 * reads there what it need not do again. Pure rules; the queue stores them beside the job's checkpoint.
 */
import { defined, isObject, type Reader, readInteger, readName, withinBytes } from './envelope/fields';
import { invalidRequest, payloadTooLarge } from './errors';
import { storable } from './run-reports';
import type { JobStep } from './wire';

export type StepRecord = JobStep;

/** The records of a job. Has no prototype: any text may be a name. */
export type Steps = Record<string, StepRecord>;

/** Most records of a job. */
export const MAX_STEPS = 1000;
/** Largest records of a job, in bytes of their JSON text. A row holds 2 MB, its checkpoint of 1 MiB included. */
export const MAX_STEPS_BYTES = 768 * 1024;

/** The name of a step, a sleep or a signal. */
export const readStepName = readName(128);

const MAX_TIME = 8.64e15;
const readMoment = readInteger(0, MAX_TIME);

/** One record; of several members the first in the order of `JobStep` counts. @throws {ApiError} 400 */
export const readStep: Reader<StepRecord> = (value, field) => {
  if (isObject(value)) {
    if ('result' in value) return { result: value.result ?? null };
    if ('error' in value) return { error: value.error ?? null };
    if ('until' in value) return { until: readMoment(value.until, `${field}.until`) };
    if (isObject(value.signal)) {
      const { payload = null, at } = value.signal;
      return { signal: { payload, at: readMoment(at, `${field}.signal.at`) } };
    }
    if (value.timed_out === true) return { timed_out: true };
  }
  throw invalidRequest(field, `${field} must be an object with result, error, until, signal or timed_out.`);
};

/** What a request says of one step: its result, unless it says of a sleep until when, or that a signal has not come. */
export function readStepSaid({ result, until, timed_out }: Record<string, unknown>): StepRecord {
  const isResult = until === undefined && timed_out === undefined;
  return readStep(isResult ? { result } : defined({ until, timed_out }), 'step');
}

/** Records by name. @throws {ApiError} 400; 413 when they are more than a job may have */
export const readSteps: Reader<Steps> = (value, field) => {
  if (!isObject(value)) throw invalidRequest(field, `${field} must be an object of records by name.`);
  const entries = Object.entries(value);
  if (entries.length > MAX_STEPS) throw payloadTooLarge(field, entries.length, MAX_STEPS, 'steps');
  const steps = noSteps();
  for (const [name, record] of entries) {
    steps[readStepName(name, `${field} name`)] = readStep(record, `${field}.${name}`);
  }
  return steps;
};

const noSteps = (): Steps => Object.create(null) as Steps;

/** The records in a JSON text of them; none where there is no text. */
export function parseSteps(text: string | undefined): Steps {
  return Object.assign(noSteps(), text === undefined ? {} : JSON.parse(text));
}

/** Is nothing more to come? A sleep's moment may still be followed by a signal, or by its absence. */
export const isFinal = (record: StepRecord): boolean => record.until === undefined;

/**
 * What is recorded when a handler says `said`: the first result of a name wins, so that a step has one however often it ran;
 * only a moment gives way to what came of it.
 * @returns undefined when nothing changes
 */
export function mergeSteps(recorded: Steps, said: Steps): Steps | undefined {
  const merged = Object.assign(noSteps(), recorded);
  let changed = false;
  for (const [name, record] of Object.entries(said)) {
    const before = merged[name];
    if (before !== undefined && (isFinal(before) || !isFinal(record))) continue;
    merged[name] = record;
    changed = true;
  }
  return changed ? merged : undefined;
}

/** The records as they are stored. @throws {ApiError} 413 when they are too many or too large */
export function stepsText(steps: Steps): string {
  const count = Object.keys(steps).length;
  if (count > MAX_STEPS) throw payloadTooLarge('steps', count, MAX_STEPS, 'steps');
  return storable(withinBytes(JSON.stringify(steps), MAX_STEPS_BYTES, 'steps'), 'steps');
}
