/** A job's durable steps, by name: results, moments to sleep until, signals. Pure; stored beside the checkpoint. */

import { storable, storableText } from './attempt/notes';
import { utf8Bytes } from './bytes';
import { defined, isObject, type Reader, readInteger, readPathName, withinBytes } from './envelope/fields';
import { invalidRequest, notFound, payloadTooLarge } from './errors';
import { own } from './own';
import { stepsInOrder } from './step-order';
import type { JobStep } from './wire';

export type StepRecord = JobStep;

export type Steps = Record<string, StepRecord>;

export const MAX_STEPS = 1000;
/** Largest records of a job, in bytes of their JSON text. A row holds 2 MB, its checkpoint of 1 MiB included. */
export const MAX_STEPS_BYTES = 768 * 1024;

/** The name of a step, a sleep or a signal. */
export const readStepName = readPathName(128);

const MAX_TIME = 8.64e15;
const readTries = readInteger(1, 2_147_483_647);
const readMoment = readInteger(0, MAX_TIME);

/** One record; of several members the first in the order of `JobStep` counts. @throws {ApiError} 400 */
export const readStep: Reader<StepRecord> = (value, field) => {
  if (isObject(value)) {
    if ('result' in value) return { result: shallow(value.result ?? null, field) };
    if ('error' in value) return { error: shallow(value.error ?? null, field) };
    if ('until' in value) return readPending(value, field);
    if (isObject(value.signal)) {
      const { payload = null, at } = value.signal;
      return { signal: { payload: shallow(payload, field), at: readMoment(at, `${field}.signal.at`) } };
    }
    if (value.timed_out === true) return { timed_out: true };
  }
  throw invalidRequest(field, `${field} must be an object with result, error, until, signal or timed_out.`);
};

/** A sleep, or the wait for a signal or for the next try of a step. */
function readPending({ until, tries, failed }: Record<string, unknown>, field: string): StepRecord {
  const pending: StepRecord = { until: readMoment(until, `${field}.until`) };
  if (tries === undefined) return pending;
  const count = readTries(tries, `${field}.tries`);
  return { ...pending, tries: count, failed: shallow(failed ?? null, field) };
}

/** The value, unless it nests too deeply to be stored. @throws {ApiError} 400 */
function shallow(value: unknown, field: string): unknown {
  storableText(value, field);
  return value;
}

export function readStepSaid(said: Record<string, unknown>): StepRecord {
  const { result, until, timed_out, error, tries, failed } = said;
  const isResult = until === undefined && timed_out === undefined && error === undefined;
  return readStep(isResult ? { result } : defined({ until, timed_out, error, tries, failed }), 'step');
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

export function parseSteps(text: string | undefined): Steps {
  return Object.assign(noSteps(), text === undefined ? {} : JSON.parse(text));
}

/** What a job keeps when it begins again: its failed steps are tried again. Undefined: everything. */
export function withoutFailures(steps: Steps): Steps | undefined {
  const entries = Object.entries(steps);
  const kept = entries.filter(([, { error, tries }]) => error === undefined && tries === undefined);
  return kept.length === entries.length ? undefined : Object.assign(noSteps(), Object.fromEntries(kept));
}

/**
 * The records that began before this one, without failures, for a run that starts from it; those of earlier versions
 * come first. @throws {ApiError} 404 when nothing is on record under this name
 */
export function stepsBefore(steps: Steps, name: string): Steps {
  const inOrder = stepsInOrder(steps);
  const at = inOrder.findIndex(([other]) => other === name);
  if (at < 0) throw notFound('step', name, 'GET /ojs/v1/jobs/:id/steps lists what is on record.');
  const before = Object.assign(noSteps(), Object.fromEntries(inOrder.slice(0, at)));
  return withoutFailures(before) ?? before;
}

/** Is nothing more to come? A sleep's moment may still be followed by a signal, or by its absence. */
export const isFinal = (record: StepRecord): boolean => record.until === undefined;

/**
 * A job's steps while a handler reports more. The first result of a name wins; only a moment gives way to what
 * followed it: also that of a step's next try.
 */
export class StepBook {
  readonly steps: Steps;
  isChanged = false;
  private size: { count: number; bytes: number; last: number } | undefined;

  /** @param text JSON of what is on record @param now epoch ms */
  constructor(
    text: string | undefined,
    private readonly now: number,
  ) {
    this.steps = parseSteps(text);
  }

  /**
   * Records a step. @returns an earlier record, which wins, as it was reported
   * @throws {ApiError} 413 when the records would be too many or too large; 400 when one nests too deep
   */
  add(name: string, given: StepRecord): StepRecord | undefined {
    const before = own(this.steps, name);
    const isNext = isFinal(given) || (given.tries ?? 0) > (before?.tries ?? 0);
    if (before !== undefined && (isFinal(before) || !isNext)) {
      const { seq: _, at: __, ...said } = before;
      return said;
    }
    this.put(name, given);
    return undefined;
  }

  /** Records a step in the place of what was on record. @throws {ApiError} as {@link add} */
  put(name: string, given: StepRecord): void {
    const before = own(this.steps, name);
    const size = this.size ?? sizeOf(this.steps);
    const seq = before?.seq ?? size.last + 1;
    const record = { ...given, seq, at: this.now };
    const count = size.count + (before === undefined ? 1 : 0);
    const bytes = size.bytes + entryBytes(name, record) - (before === undefined ? 0 : entryBytes(name, before));
    if (count > MAX_STEPS) throw payloadTooLarge('steps', count, MAX_STEPS, 'steps');
    if (bytes > MAX_STEPS_BYTES) throw payloadTooLarge('steps', bytes, MAX_STEPS_BYTES);
    storable(`{"":${JSON.stringify(record)}}`, 'steps');
    this.steps[name] = record;
    this.size = { count, bytes, last: Math.max(size.last, seq) };
    this.isChanged = true;
  }

  get text(): string {
    return JSON.stringify(this.steps);
  }
}

function sizeOf(steps: Steps): { count: number; bytes: number; last: number } {
  const entries = Object.entries(steps);
  const bytes = entries.reduce((sum, [name, record]) => sum + entryBytes(name, record), 1);
  return { count: entries.length, bytes, last: entries.reduce((last, [, { seq = 0 }]) => Math.max(last, seq), 0) };
}

/** Bytes of one record, with its name, its colon, and a comma or the last brace. */
const entryBytes = (name: string, record: StepRecord): number =>
  utf8Bytes(JSON.stringify(name)) + utf8Bytes(JSON.stringify(record)) + 2;

/** The records as they are stored. @throws {ApiError} 413 when they are too many or too large */
export function stepsText(steps: Steps): string {
  const count = Object.keys(steps).length;
  if (count > MAX_STEPS) throw payloadTooLarge('steps', count, MAX_STEPS, 'steps');
  return storable(withinBytes(JSON.stringify(steps), MAX_STEPS_BYTES, 'steps'), 'steps');
}
