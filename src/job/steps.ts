/** A job's durable steps, by name: results, moments to sleep until, signals. Pure; stored beside the checkpoint. */

import { storable, storableText } from './attempt/notes';
import { utf8Bytes } from './bytes';
import { defined, isObject, type Reader, readBoolean, readInteger, readPathName, withinBytes } from './envelope/fields';
import { MAX_RESULT_BYTES } from './envelope/names';
import { invalidRequest, notFound, payloadTooLarge } from './errors';
import { own } from './own';
import { stepsInOrder } from './step-order';
import type { JobStep, StepRun } from './wire';

export type StepRecord = JobStep;

export type Steps = Record<string, StepRecord>;

export const MAX_STEPS = 1000;
/** Largest records of a job, in bytes of their JSON text. A row holds 2 MB, its checkpoint of 1 MiB included. */
export const MAX_STEPS_BYTES = 768 * 1024;

/** Bytes kept free for the end of each job that a record waits for: its id, and a brief error. */
export const END_BYTES = 256;

/** Results of more bytes are stored apart from the records. */
const LARGE_RESULT = 64 * 1024;
/** Most bytes of a job's large results together. */
const MAX_ASIDE_BYTES = 8 * 1024 * 1024;
/** Bytes of large results that a runner gets with its job: all of them, if it reports its steps when a run ends. */
export const MAX_INLINE_BYTES = 1024 * 1024;

/** The result of a step that is too large to stand in its record. */
export interface StepPart {
  /** Of the step. */
  name: string;
  /** 1. */
  part: number;
  /** JSON array with the result alone. */
  data: string;
}

/** The name of a step, a sleep or a signal. */
export const readStepName = readPathName(128);

/** A large result and its brackets. */
const MAX_PART_BYTES = MAX_RESULT_BYTES + 1024;

const MAX_TIME = 8.64e15;
const readTries = readInteger(1, 2_147_483_647);
const readMoment = readInteger(0, MAX_TIME);

/** One record; of several members the first in the order of `JobStep` counts. @throws {ApiError} 400 */
export const readStep: Reader<StepRecord> = (value, field) => {
  const record = readSaid(value, field);
  const { undo } = value as { undo?: unknown };
  return undo === undefined || !readBoolean(undo, `${field}.undo`) ? record : { ...record, undo: true };
};

const readSaid: Reader<StepRecord> = (value, field) => {
  if (isObject(value)) {
    if ('result' in value) return { result: shallow(value.result ?? null, field) };
    if ('error' in value) return { error: shallow(value.error ?? null, field) };
    if ('until' in value) return readPending(value, field);
    if (isObject(value.signal)) {
      const { payload = null, at } = value.signal;
      return { signal: { payload: shallow(payload, field), at: readMoment(at, `${field}.signal.at`) } };
    }
    if (value.timed_out === true) return { timed_out: true };
    if (value.begun === true) return { begun: true, undo: true };
  }
  throw invalidRequest(field, `${field} must be an object with result, error, until, signal, timed_out or begun.`);
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
  const { result, until, timed_out, error, tries, failed, begun, undo } = said;
  const isResult = [until, timed_out, error, begun].every((member) => member === undefined);
  const others = { until, timed_out, error, tries, failed, begun, undo };
  return readStep({ ...defined(others), ...(isResult && { result }) }, 'step');
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

/** A part in a file. @throws {ApiError} 400, 413 */
export const readStepPart: Reader<StepPart> = (value, field) => {
  const { name, part, data } = isObject(value) ? value : {};
  if (typeof data !== 'string' || !listIn(data)) {
    throw invalidRequest(`${field}.data`, `${field}.data must be the text of a JSON array.`);
  }
  withinBytes(storable(data, `${field}.data`), MAX_PART_BYTES, `${field}.data`);
  return { name: readStepName(name, `${field}.name`), part: readTries(part, `${field}.part`), data };
};

/** The members of a JSON array; undefined: the text is none. */
export function listIn(text: string): unknown[] | undefined {
  try {
    const list: unknown = JSON.parse(text);
    return Array.isArray(list) ? list : undefined;
  } catch {
    return undefined;
  }
}

const noSteps = (): Steps => Object.create(null) as Steps;

export function parseSteps(text: string | undefined): Steps {
  return Object.assign(noSteps(), text === undefined ? {} : JSON.parse(text));
}

/**
 * What a job keeps when it begins again: its failed steps and runs are tried again, also runs that it waited for.
 * @param isOther another job begins with the records, which no end reaches. Undefined: everything
 */
export function withoutFailures(steps: Steps, isOther = false): Steps | undefined {
  const entries = Object.entries(steps);
  if (entries.every(([, step]) => outlives(step, isOther))) return undefined;
  return stepsOfEntries(
    entries.flatMap(([name, step]) => (outlives(step, isOther) ? [[name, step]] : stillBegun(name, step))),
  );
}

/** Does a record hold when its job, or another one, begins again? */
function outlives({ error, tries, run, until, timed_out }: StepRecord, isOther: boolean): boolean {
  if (error !== undefined || tries !== undefined) return false;
  if (run === undefined) return true;
  return until === undefined ? !timed_out && !run.failed : run.detached === true && !isOther;
}

export const stepsOfEntries = (entries: readonly [name: string, step: StepRecord][]): Steps =>
  Object.assign(noSteps(), Object.fromEntries(entries));

/** What stays of a step that runs again: its effect may have come about, and is undone if need be. */
export function stillBegun(name: string, { undo, seq, at }: StepRecord): [name: string, step: StepRecord][] {
  return undo ? [[name, defined({ begun: true as const, undo, seq, at })]] : [];
}

/**
 * The records that began before this one, without failures, for a run that starts from it; those of earlier versions
 * come first. @throws {ApiError} 404 when nothing is on record under this name
 */
export function stepsBefore(steps: Steps, name: string, isOther = false): Steps {
  const inOrder = stepsInOrder(steps);
  const at = inOrder.findIndex(([other]) => other === name);
  if (at < 0) throw noStep(name);
  const before = stepsOfEntries(inOrder.slice(0, at));
  return withoutFailures(before, isOther) ?? before;
}

export const noStep = (name: string) => notFound('step', name, 'GET /ojs/v1/jobs/:id/steps lists what is on record.');

/** Is nothing more to come? A sleep's moment may still be followed by a signal, or by its absence. */
export const isFinal = ({ until, begun }: StepRecord): boolean => until === undefined && begun === undefined;

/** JSON text of what a run needs. A step that has only begun runs: runners that know no undo must not find it. */
export function stepsForRunner(text: string): string {
  if (!text.includes('"begun":true')) return text;
  return JSON.stringify(stepsOfEntries(Object.entries(parseSteps(text)).filter(([, { begun }]) => !begun)));
}

/** Reads the large result of a step, in a list; undefined: it cannot be read. */
export type ReadResult = (name: string) => unknown[] | undefined;

/** The large results that a runner with no other way to them gets with its job. */
export function inlined(text: string, read: ReadResult): string {
  if (!text.includes('"result_bytes":')) return text;
  const steps = parseSteps(text);
  let left = MAX_INLINE_BYTES;
  for (const [name, record] of stepsInOrder(steps)) {
    const bytes = record.result_bytes;
    if (bytes === undefined) continue;
    const value = bytes > left ? undefined : read(name);
    if (value) left -= bytes;
    steps[name] = { ...record, ...(value ? { result: value[0] } : unread(name, bytes)) };
  }
  return JSON.stringify(steps);
}

/** In the place of a result: a runner of an earlier version would take the step for one without a result. */
const unread = (name: string, bytes: number) => ({
  error: {
    code: 'payload_too_large',
    message: `The result of the step ${name} has ${bytes} bytes: GET /ojs/v1/jobs/:id/steps/:name has it.`,
  },
});

/** In the place of a result that was stored, but cannot be read any more. */
export const lost = (name: string) => ({
  error: { code: 'backend_error', message: `The stored result of the step ${name} cannot be read.` },
});

/** A job's steps while a handler reports more. The first result of a name wins; only a moment gives way. */
export class StepBook {
  readonly steps: Steps;
  /** The names under which something was recorded. */
  readonly changed = new Set<string>();
  /** Large results that were added. */
  readonly parts: StepPart[] = [];
  /** Runs that the handler has stopped waiting for. */
  readonly abandoned: StepRun[] = [];
  private known: ReturnType<typeof sizeOf> | undefined;

  /** @param text JSON of what is on record @param now epoch ms @param most bytes of all large results */
  constructor(
    text: string | undefined,
    private readonly now: number,
    private readonly most = MAX_ASIDE_BYTES,
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
      // A step that is tried again, by code that can undo it now.
      if (given.begun && before.tries !== undefined && !before.undo) this.put(name, { ...said, undo: true });
      return said;
    }
    this.replace(name, given);
    return undefined;
  }

  /** {@link put}, not for the end of a run: the job stops waiting for what it waited for under this name. */
  replace(name: string, given: StepRecord): void {
    const { run, until } = own(this.steps, name) ?? {};
    this.put(name, run === undefined ? given : { ...given, run });
    if (run && until !== undefined) this.abandoned.push(run);
  }

  /** Records a step in the place of what was on record. @param mayExceed the bytes @throws {ApiError} as {@link add} */
  put(name: string, given: StepRecord, mayExceed = false): void {
    const before = own(this.steps, name);
    const { size } = this;
    const seq = before?.seq ?? size.last + 1;
    const large = bytesOfLarge(given);
    // What must be recorded stands in the record where there is no other room.
    const apart = size.aside - (before?.result_bytes ?? 0);
    const resultBytes = mayExceed && apart + large > this.most ? 0 : large;
    const { result: _, ...others } = given;
    const kept = resultBytes === 0 ? given : { ...others, result_bytes: resultBytes };
    const record = { ...kept, ...(before?.undo && { undo: before.undo }), seq, at: this.now };
    const aside = apart + resultBytes;
    if (resultBytes > 0 && aside > this.most) throw payloadTooLarge('steps', aside, this.most);
    const count = size.count + (before === undefined ? 1 : 0);
    const bytes = size.bytes + entryBytes(name, record) - (before === undefined ? 0 : entryBytes(name, before));
    if (count > MAX_STEPS) throw payloadTooLarge('steps', count, MAX_STEPS, 'steps');
    if (bytes > MAX_STEPS_BYTES && !mayExceed) throw payloadTooLarge('steps', bytes, MAX_STEPS_BYTES);
    storable(`{"":${JSON.stringify(record)}}`, 'steps');
    this.steps[name] = record;
    if (resultBytes > 0) this.parts.push({ name, part: 1, data: `[${JSON.stringify(given.result)}]` });
    this.known = { count, bytes, aside, last: Math.max(size.last, seq) };
    this.changed.add(name);
  }

  private get size(): ReturnType<typeof sizeOf> {
    this.known ??= sizeOf(this.steps);
    return this.known;
  }

  /** Bytes that further records may take. */
  get room(): number {
    return MAX_STEPS_BYTES - this.size.bytes;
  }

  get isChanged(): boolean {
    return this.changed.size > 0;
  }

  get text(): string {
    return JSON.stringify(this.steps);
  }
}

function sizeOf(steps: Steps): { count: number; bytes: number; aside: number; last: number } {
  const size = { count: 0, bytes: 1, aside: 0, last: 0 };
  for (const [name, record] of Object.entries(steps)) {
    size.count++;
    size.bytes += entryBytes(name, record);
    size.aside += record.result_bytes ?? 0;
    size.last = Math.max(size.last, record.seq ?? 0);
  }
  return size;
}

/** Bytes of a result that is stored apart from its record; 0: it is small. @throws {ApiError} 413 above 1 MiB */
function bytesOfLarge({ result }: StepRecord): number {
  const bytes = result === undefined ? 0 : utf8Bytes(JSON.stringify(result));
  if (bytes > MAX_RESULT_BYTES) throw payloadTooLarge('step.result', bytes, MAX_RESULT_BYTES);
  return bytes > LARGE_RESULT ? bytes : 0;
}

/** Bytes of one record, with its name, its colon, a comma or the last brace, and what is kept free for ends. */
function entryBytes(name: string, record: StepRecord): number {
  const { run, until } = record;
  const open = run === undefined || until === undefined ? 0 : (run.jobs ?? 1) - (run.ended ?? 0);
  return utf8Bytes(JSON.stringify(name)) + utf8Bytes(JSON.stringify(record)) + 2 + open * END_BYTES;
}

/** Records that a run ends with. @throws {ApiError} 413 when they are too many or too large */
export function stepsText(steps: Steps): string {
  const count = Object.keys(steps).length;
  if (count > MAX_STEPS) throw payloadTooLarge('steps', count, MAX_STEPS, 'steps');
  return storable(withinBytes(JSON.stringify(steps), MAX_STEPS_BYTES + MAX_INLINE_BYTES, 'steps'), 'steps');
}
