/**
 * The meaning of a handler's answer: the answer table of push delivery as pure functions. No answer can make them
 * throw.
 */

import { checkpointContent, type Progress, readProgress } from '../job/attempt/notes';
import { utf8Bytes } from '../job/bytes';
import { MAX_DURATION_MS } from '../job/duration';
import { parsePayloads } from '../job/envelope/exact';
import { defined, isObject, parseObject } from '../job/envelope/fields';
import { MAX_RESULT_BYTES } from '../job/envelope/names';
import { MAX_DEPTH, shallowText } from '../job/envelope/nesting';
import { ApiError } from '../job/errors';
import { heardLines, type LogLine } from '../job/log';
import type { ReportedError, Snooze } from '../job/record';
import { LONGEST_ASKED_MS } from '../job/retry/delay';
import { readStepName, readSteps, type Steps, stepsText } from '../job/steps';
import { parseTimestamp } from '../job/time';
import { type EntryText, MAX_TEXT_BYTES } from './body';
import type { Answer } from './target';

/** A failure that an answer reports or implies. */
export interface ReportedFailure extends ReportedError {
  /** The next run must not start earlier than this many ms from now (`Retry-After`). */
  at_least_ms?: number;
  /** The handler Worker died without an answer. */
  crash?: boolean;
  /** The handler Worker has no handler for the type. */
  no_handler?: boolean;
  /** The target refused the delivery itself (401, 403, 404, 405). */
  target_rejected?: boolean;
}

/** What a handler says of a run beside its outcome, to be written together with it. */
export interface Said {
  log?: LogLine[];
  progress?: Progress;
  /** JSON text of a `CheckpointContent`. */
  checkpoint?: string;
  steps?: Steps;
  /** Jobs to enqueue, as written. */
  enqueue?: unknown;
}

/** The outcome of one delivery. */
export type DeliveryOutcome = { said?: Said } & (
  | { kind: 'completed'; result?: string }
  | { kind: 'failed'; failure: ReportedFailure }
  /** The handler goes on later. */
  | { kind: 'snoozed'; snooze: Snooze }
  /** The run needs a call with a live line. It did nothing. */
  | { kind: 'again' }
  /** The handler Worker is not running, so the handler was certainly not called. */
  | { kind: 'not_running' }
);

/** The outcome of a delivery that failed so. */
export const failed = (failure: ReportedFailure): DeliveryOutcome => ({ kind: 'failed', failure });

type Json = Record<string, unknown>;

/** What is looked at of an answer that is too long, in characters. */
const HEAD_CHARS = 1024;

/** Reads an `error` member: an object, a string, or anything else. */
export function readError(error: unknown): ReportedFailure {
  if (typeof error === 'string') return { code: 'handler_error', message: error };
  if (typeof error !== 'object' || error === null) return { code: 'handler_error', message: '' };
  const { code, type, message, retryable, details, classes, kill, retry_in, retry_at, stack } = error as Json;
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  return defined({
    code: text(code),
    type: text(type),
    message: text(message),
    retryable: typeof retryable === 'boolean' ? retryable : undefined,
    details,
    classes: Array.isArray(classes) ? classes.filter((name) => typeof name === 'string') : undefined,
    kill: kill === true || undefined,
    retry_in,
    retry_at,
    stack: text(stack),
  });
}

const invalidAnswer = (message: string): DeliveryOutcome =>
  failed({ code: 'invalid_response', type: 'invalid_response', message, retryable: true });

/**
 * The outcome in one entry: of a batch answer, or the whole answer of a single delivery.
 * @param now epoch ms
 */
export function readStatus(entry: Json, now: number): DeliveryOutcome {
  try {
    const outcome = outcomeIn(entry);
    const said = readSaid(entry, now);
    return said ? { ...outcome, said } : outcome;
  } catch (error) {
    // What it says was not done, though the handler counts on it.
    if (!(error instanceof ApiError)) return invalidAnswer('The handler said something that cannot be read.');
    const { code, message, status } = error.data;
    return failed({ code, type: code, message, retryable: status < 413 });
  }
}

/** @throws {ApiError} 400, 413 */
function readSaid(entry: Json, now: number): Said | undefined {
  const { log, progress, checkpoint, steps, enqueue } = entry;
  // Most say nothing.
  if ((log ?? progress ?? checkpoint ?? steps ?? enqueue) === undefined) return undefined;
  const said = defined<Said>({
    log: log === undefined ? undefined : heardLines(log, now),
    progress: isObject(progress) ? readProgress(progress, 'progress.') : undefined,
    checkpoint: checkpoint === undefined ? undefined : checkpointContent({ state: checkpoint }, 'checkpoint'),
    steps: steps === undefined ? undefined : readSteps(steps, 'steps'),
    enqueue,
  } as Said);
  return Object.keys(said).length > 0 ? said : undefined;
}

/** When the handler goes on. @throws {ApiError} 400, 413 */
function readSnooze(entry: Json): Snooze | undefined {
  const { in: after, until, signal, steps } = entry;
  const isTime = (value: unknown, max: number) => typeof value === 'number' && value >= 0 && value <= max;
  if (after !== undefined && !isTime(after, MAX_DURATION_MS)) return undefined;
  if (until !== undefined && !isTime(until, 8.64e15)) return undefined;
  if (after === undefined && until === undefined && signal === undefined) return undefined;
  return defined({
    in: after === undefined ? undefined : Math.ceil(after as number),
    until: until === undefined ? undefined : Math.ceil(until as number),
    signal: signal === undefined ? undefined : readStepName(signal, 'signal'),
    steps: steps === undefined ? undefined : stepsText(readSteps(steps, 'steps')),
  });
}

/** @throws {ApiError} 400, 413 */
function outcomeIn(entry: Json): DeliveryOutcome {
  if (entry.status === 'failed') return failed(readError(entry.error));
  if (entry.status === 'again') return { kind: 'again' };
  if (entry.status === 'snoozed') {
    const snooze = readSnooze(entry);
    return snooze
      ? { kind: 'snoozed', snooze }
      : invalidAnswer('The handler goes on later without saying when: in (ms), until (epoch ms) or signal.');
  }
  if (entry.status !== 'completed') {
    return invalidAnswer(`The handler answered with status ${JSON.stringify(entry.status)?.slice(0, 100)}.`);
  }
  if (entry.result === undefined) return { kind: 'completed' };
  const result = shallowText(entry.result);
  if (result === undefined) return TOO_DEEP_RESULT;
  const bytes = utf8Bytes(result);
  if (bytes > MAX_RESULT_BYTES) return tooLarge(`${bytes} bytes`);
  return { kind: 'completed', result };
}

/** The outcome of an answer that is longer than is read, by its beginning. */
function tooLong(head: string): DeliveryOutcome {
  const size = `more than ${MAX_TEXT_BYTES} bytes`;
  if (!/"status"\s*:\s*"failed"/.test(head)) return tooLarge(size);
  return failed({ code: 'handler_error', message: `The handler reported an error of ${size}.` });
}

const tooLarge = (size: string): DeliveryOutcome =>
  failed({
    code: 'result_too_large',
    type: 'result_too_large',
    message: `The result has ${size}, at most ${MAX_RESULT_BYTES} are kept.`,
    retryable: false,
  });

const TOO_DEEP_RESULT = failed({
  code: 'result_too_deep',
  type: 'result_too_deep',
  message: `The result nests more than ${MAX_DEPTH} levels deep.`,
  retryable: false,
});

/**
 * The answer to a delivery of one job.
 *
 * | answer | meaning |
 * |---|---|
 * | 2xx, empty or not a JSON object with `status` | completed |
 * | 2xx with `status` | completed or failed, as it says |
 * | 401, 403, 404, 405 | the target refuses: dead letter, and a delivery error of the target |
 * | 408, 425, 429 | failed, retried; 429 not before `Retry-After` |
 * | other 3xx, 4xx | failed, not retried |
 * | 5xx | failed, retried |
 */
export function readSingleAnswer(answer: Answer, now: number): DeliveryOutcome {
  if (answer.status >= 200 && answer.status < 300) {
    // An object that was not read to its end may say that the job failed.
    if (answer.isCut && answer.body.trimStart().startsWith('{')) return tooLong(answer.body.slice(0, HEAD_CHARS));
    const body = answer.body === '' ? undefined : parseObject(answer.body, parsePayloads);
    return body && 'status' in body ? readStatus(body, now) : { kind: 'completed' };
  }
  return failed(failureOfStatus(answer, now));
}

/** The failure that a status outside 2xx means; an `error` in the body supplies code and message. */
export function failureOfStatus(answer: Answer, now: number): ReportedFailure {
  const { status } = answer;
  const body = parseObject(answer.body);
  const told = body && 'error' in body ? readError(body.error) : {};
  const failure: ReportedFailure = {
    code: 'handler_error',
    message: `The handler answered ${status}.`,
    ...told,
  };
  if (status === 401 || status === 403 || status === 404 || status === 405) {
    return { ...failure, retryable: told.retryable ?? false, target_rejected: true };
  }
  const retryable = status >= 500 || status === 408 || status === 425 || status === 429;
  failure.retryable = told.retryable ?? retryable;
  if (status === 429) {
    const wait = retryAfterMs(answer.retryAfter, now);
    if (wait !== undefined) failure.at_least_ms = wait;
  }
  return failure;
}

/** `Retry-After` as ms: seconds, possibly fractional, or an HTTP date; no more than a server may ask for. */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\d+(\.\d+)?$/.test(header.trim())) return Math.min(Math.round(Number(header) * 1000), LONGEST_ASKED_MS);
  const date = parseTimestamp(header) ?? Date.parse(header);
  return Number.isFinite(date) ? Math.min(Math.max(0, date - now), LONGEST_ASKED_MS) : undefined;
}

/** The answer to a batch: one outcome for each delivery id that was sent, whatever the answer contains. */
export function readBatchAnswer(
  answer: Answer,
  deliveryIds: readonly string[],
  now: number,
): Map<string, DeliveryOutcome> {
  const all = (outcome: DeliveryOutcome) => new Map(deliveryIds.map((id) => [id, outcome]));
  if (answer.status < 200 || answer.status >= 300) return all(failed(failureOfStatus(answer, now)));
  const results = parseObject(answer.body, parsePayloads)?.results;
  if (!Array.isArray(results)) return all(unmentioned(false));
  // The handler library answers in the order of the deliveries.
  if (results.length === deliveryIds.length && results.every((entry, at) => entry?.delivery_id === deliveryIds[at])) {
    return new Map(deliveryIds.map((id, at) => [id, readStatus(results[at] as Json, now)]));
  }
  const outcomes = all(unmentioned(true));
  for (const entry of results) {
    if (typeof entry !== 'object' || entry === null) continue;
    const id = (entry as Json).delivery_id;
    if (typeof id === 'string' && outcomes.has(id)) outcomes.set(id, readStatus(entry as Json, now));
  }
  return outcomes;
}

/** The outcome of a delivery that the answer to its batch does not mention. @param hasResults does it mention others? */
export function unmentioned(hasResults: boolean): DeliveryOutcome {
  return invalidAnswer(
    hasResults
      ? 'The handler did not mention this delivery in its results.'
      : 'The handler answered a batch without results.',
  );
}

/** One entry of an answer that is read as it arrives: its delivery and outcome, if it has any. */
export function readEntry(
  { text, isWhole }: EntryText,
  now: number,
): { id: string; outcome: DeliveryOutcome } | undefined {
  if (!isWhole) {
    const id = /"delivery_id"\s*:\s*"([^"\\]*)"/.exec(text)?.[1];
    return id === undefined ? undefined : { id, outcome: tooLong(text) };
  }
  const entry = parseObject(text, parsePayloads);
  if (typeof entry?.delivery_id !== 'string') return undefined;
  return { id: entry.delivery_id, outcome: readStatus(entry, now) };
}
