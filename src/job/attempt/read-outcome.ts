/** Reads how an attempt ended. An unreadable request is refused; an unreadable answer fails the attempt. */
import { MAX_DURATION_MS } from '../duration';
import {
  defined,
  given,
  isObject,
  optional,
  type Reader,
  readBoolean,
  readDuration,
  readList,
  readString,
  setDefined,
} from '../envelope/fields';
import { ApiError, invalidRequest } from '../errors';
import { heardLines, readLines } from '../log';
import type { ReportedError, Snooze } from '../record';
import { RUN_TIMEOUT_MS, readRuns } from '../runs';
import { readStepName, readSteps, stepsText } from '../steps';
import { readNamedStream } from '../streams';
import { parseTimestamp } from '../time';
import type { RunRequest } from '../wire';
import { boundedError } from './bounded-error';
import { checkpointContent, readProgress } from './notes';
import { type AttemptOutcome, failed, type OutcomeNotes, type Release } from './outcome';
import { keptResult, refusalOfResult, unkept } from './result';

type Json = Record<string, unknown>;

const DEFAULT_ERROR_CODE = 'handler_error';

/** Most classes of an error that are read; of these the first ones count. */
const MAX_CLASSES = 10_000;

const MAX_TIME = 8.64e15;

/** Messages of output streams in an answer: each has 32 KiB, or what a handler wrote in 50 ms. */
const MAX_STREAM_MESSAGES = 20_000;

export function usableError(error: unknown): ReportedError {
  if (typeof error === 'string') return { code: DEFAULT_ERROR_CODE, message: error };
  if (typeof error !== 'object' || error === null) return { code: DEFAULT_ERROR_CODE, message: '' };
  const { code, type, message, retryable, details, classes, kill, retry_in, retry_at, stack } = error as Json;
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  return defined({
    code: text(code) || undefined,
    type: text(type) || undefined,
    message: text(message),
    retryable: typeof retryable === 'boolean' ? retryable : undefined,
    details: details ?? undefined,
    classes: Array.isArray(classes) ? classes.filter((name) => typeof name === 'string') : undefined,
    kill: kill === true || undefined,
    // As written: the queue reads them with its own clock.
    retry_in: retry_in ?? undefined,
    retry_at: retry_at ?? undefined,
    stack: text(stack) || undefined,
  });
}

/** The error of a nack. Texts that are too long are cut. @throws {ApiError} 400 for a member that cannot be used */
function readError(error: unknown, now: number): ReportedError {
  if (isObject(error))
    for (const [name, read] of Object.entries(errorMembers(now))) optional(error, name, read, 'error.');
  else if (error !== undefined && error !== null && typeof error !== 'string') {
    throw invalidRequest('error', 'error must be an object or a string.');
  }
  return boundedError(usableError(error));
}

const errorMembers = (now: number): Readonly<Record<string, Reader<unknown>>> => ({
  ...{ code: readString, type: readString, message: readString, stack: readString },
  ...{ retryable: readBoolean, kill: readBoolean, classes: readList(MAX_CLASSES, readString) },
  ...{ retry_in: readDuration, retry_at: readRunAt(now) },
});

/** When to run again, epoch ms. The past means now; times beyond every duration come from a broken clock. */
const readRunAt =
  (now: number): Reader<number> =>
  (value, field) => {
    const isEpoch = Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_TIME;
    const at = isEpoch ? (value as number) : parseTimestamp(value);
    if (at === undefined) {
      throw invalidRequest(field, `${field} must be an RFC 3339 time with a zone, or epoch milliseconds.`);
    }
    if (at - now > MAX_DURATION_MS) throw invalidRequest(field, `${field} must be within 36500 days from now.`);
    return at;
  };

/** Reads an ack into `ack`. @param failsUnkept does an unstorable result fail it? @throws {ApiError} 400, 413 */
export function readAcked<T extends object>(ack: T, body: Json, now: number, failsUnkept: boolean): T & AttemptOutcome {
  const completed: T & { kind: 'completed'; result?: string } & OutcomeNotes = Object.assign(ack, {
    kind: 'completed' as const,
  });
  const { result = null } = body;
  setDefined<OutcomeNotes, 'log'>(completed, 'log', optional(body, 'log', readLines(now)));
  if (result === null) return completed;
  const kept = keptResult(result);
  if ('text' in kept) return Object.assign(completed, { result: kept.text });
  if (!failsUnkept) throw new ApiError(refusalOfResult(kept.why));
  return Object.assign(ack, unkept(kept.why), { refusal: refusalOfResult(kept.why) });
}

const UNUSED: Release = { attempt: 'unused' };

/** The outcome that a nack reports. @throws {ApiError} 400, 413 */
export function readNacked(body: Json, now: number): AttemptOutcome {
  const requeue = optional(body, 'requeue', readBoolean);
  const attempt_used = optional(body, 'attempt_used', readBoolean);
  if (attempt_used === false && requeue !== true) {
    throw invalidRequest('attempt_used', 'attempt_used may be false only together with "requeue": true.');
  }
  const snoozed = optional(body, 'snooze', readSnooze(now));
  if (snoozed && (requeue !== true || attempt_used !== false)) {
    throw invalidRequest('snooze', 'snooze goes together with "requeue": true and "attempt_used": false.');
  }
  const notes = defined({ log: optional(body, 'log', readLines(now)) });
  const error = readError(body.error, now);
  if (snoozed) return { ...snoozed, ...notes };
  if (!requeue) return { kind: 'failed', error, ...notes };
  return { kind: 'released', release: attempt_used === false ? UNUSED : { attempt: 'used', error }, ...notes };
}

const runsText = (runs: readonly RunRequest[] | undefined) => (runs?.length ? JSON.stringify(runs) : undefined);

/** How long the first of these waits that names its jobs, ms. */
function shortestOf(runs: readonly RunRequest[] = []): number | undefined {
  const waits = runs.flatMap(({ jobs, timeout_ms = RUN_TIMEOUT_MS }) => (jobs ? [timeout_ms] : []));
  return waits.length === 0 ? undefined : Math.min(...waits);
}

/** When the job continues: `in` (a duration), `until` (a time), `signal`, `runs`; and the steps so far. */
const readSnooze =
  (now: number): Reader<AttemptOutcome & { kind: 'snoozed' }> =>
  (value, field) => {
    if (!isObject(value)) throw invalidRequest(field, `${field} must be an object.`);
    const path = `${field}.`;
    const after = optional(value, 'in', readDuration, path);
    const until = optional(value, 'until', readRunAt(now), path);
    const signal = optional(value, 'signal', readStepName, path);
    if (after !== undefined && until !== undefined)
      throw invalidRequest(`${path}until`, `Name ${path}in or ${path}until.`);
    const asked = optional(value, 'runs', readRuns, path);
    const runs = runsText(asked);
    // A queue object of an earlier version, which starts no jobs, wakes the handler then: it asks for them again.
    const shortest = until === undefined ? shortestOf(asked) : undefined;
    if (after === undefined && until === undefined && signal === undefined && runs === undefined) {
      throw invalidRequest(field, `${field} must name in, until, signal or runs.`);
    }
    const steps = given(optional(value, 'steps', readSteps, path), stepsText);
    return { kind: 'snoozed', snooze: defined({ in: after ?? shortest, until, signal }), ...defined({ runs, steps }) };
  };

/** The outcome in an entry of an answer, or in the answer of a single delivery. Never throws. @param now epoch ms */
export function readAnswered(entry: Json, now: number): AttemptOutcome {
  try {
    const outcome = outcomeIn(entry);
    if (outcome.kind === 'released') return outcome;
    const notes = readNotes(entry, outcome.kind, now);
    return notes ? { ...outcome, ...notes } : outcome;
  } catch (error) {
    // What it says was not done, though the handler counts on it.
    if (!(error instanceof ApiError)) return invalidAnswer("The handler's answer cannot be read.");
    const { code, message, status } = error.data;
    return failed({ code, type: code, message, retryable: status < 413 });
  }
}

function readNotes(entry: Json, kind: AttemptOutcome['kind'], now: number): OutcomeNotes | undefined {
  const { log, progress, checkpoint, steps, streams, enqueue } = entry;
  // Most say nothing.
  if ((log ?? progress ?? checkpoint ?? steps ?? streams ?? enqueue) === undefined) return undefined;
  const read = given(steps, (records) => readSteps(records, 'steps'));
  return defined({
    log: given(log, (lines) => heardLines(lines, now)),
    progress: isObject(progress) ? readProgress(progress, 'progress.') : undefined,
    checkpoint: given(checkpoint, (state) => checkpointContent({ state }, 'checkpoint')),
    // The steps of a job that has completed are of no use to anybody.
    steps: kind === 'completed' ? undefined : given(read, stepsText),
    streams: given(streams, (written) => readList(MAX_STREAM_MESSAGES, readNamedStream)(written, 'streams')),
    enqueue,
  });
}

function outcomeIn(entry: Json): AttemptOutcome {
  if (entry.status === 'failed') return failed(usableError(entry.error));
  if (entry.status === 'again') return { kind: 'released', release: { attempt: 'goes_on' } };
  if (entry.status === 'snoozed') {
    const runs = runsText(given(entry.runs, (asked) => readRuns(asked, 'runs')));
    const snooze = answeredSnooze(entry, runs !== undefined);
    return snooze
      ? { kind: 'snoozed', snooze, ...defined({ runs }) }
      : invalidAnswer('The handler snoozed without a time: in (ms), until (epoch ms), signal or runs.');
  }
  if (entry.status !== 'completed') {
    return invalidAnswer(`The handler answered with status ${JSON.stringify(entry.status)?.slice(0, 100)}.`);
  }
  if (entry.result === undefined) return { kind: 'completed' };
  const kept = keptResult(entry.result);
  return 'text' in kept ? { kind: 'completed', result: kept.text } : unkept(kept.why);
}

/** When the handler continues. @throws {ApiError} 400 */
function answeredSnooze({ in: after, until, signal }: Json, hasRuns: boolean): Snooze | undefined {
  const isTime = (value: unknown, max: number) => typeof value === 'number' && value >= 0 && value <= max;
  if (after !== undefined && !isTime(after, MAX_DURATION_MS)) return undefined;
  if (until !== undefined && !isTime(until, MAX_TIME)) return undefined;
  if (after === undefined && until === undefined && signal === undefined && !hasRuns) return undefined;
  const wholeMs = (value: unknown) => given(value, (ms) => Math.ceil(ms as number));
  return defined({
    in: wholeMs(after),
    until: wholeMs(until),
    signal: given(signal, (name) => readStepName(name, 'signal')),
  });
}

export const invalidAnswer = (message: string): AttemptOutcome =>
  failed({ code: 'invalid_response', type: 'invalid_response', message, retryable: true });
