/** The meaning of a handler's answer, as pure functions. No answer can make them throw. */

import { type AttemptFailure, type AttemptOutcome, failed } from '../job/attempt/outcome';
import { invalidAnswer, readAnswered, usableError } from '../job/attempt/read-outcome';
import { tooLargeResult } from '../job/attempt/result';
import { parsePayloads } from '../job/envelope/exact';
import { parseObject } from '../job/envelope/fields';
import { LONGEST_ASKED_MS } from '../job/retry/delay';
import { parseTimestamp } from '../job/time';
import { type EntryText, MAX_TEXT_BYTES } from './body';
import type { HandlerAnswer } from './target';

type Json = Record<string, unknown>;

/** What is looked at of an answer that is too long, in characters. */
const HEAD_CHARS = 1024;

function tooLong(head: string): AttemptOutcome {
  const size = `more than ${MAX_TEXT_BYTES} bytes`;
  if (!/"status"\s*:\s*"failed"/.test(head)) return tooLargeResult(size);
  return failed({ code: 'handler_error', message: `The handler reported an error of ${size}.` });
}

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
export function readSingleAnswer(answer: HandlerAnswer, now: number): AttemptOutcome {
  if (answer.status >= 200 && answer.status < 300) {
    // An object that was not read to its end may say that the job failed.
    if (answer.isCut && answer.body.trimStart().startsWith('{')) return tooLong(answer.body.slice(0, HEAD_CHARS));
    const body = answer.body === '' ? undefined : parseObject(answer.body, parsePayloads);
    return body && 'status' in body ? readAnswered(body, now) : { kind: 'completed' };
  }
  return failed(failureOfStatus(answer, now));
}

/** The failure that a status outside 2xx means; an `error` in the body supplies code and message. */
export function failureOfStatus(answer: HandlerAnswer, now: number): AttemptFailure {
  const { status } = answer;
  const body = parseObject(answer.body);
  const reported = body && 'error' in body ? usableError(body.error) : {};
  const failure: AttemptFailure = {
    code: 'handler_error',
    message: `The handler answered ${status}.`,
    ...reported,
  };
  if (status === 401 || status === 403 || status === 404 || status === 405) {
    return { ...failure, retryable: reported.retryable ?? false, target_rejected: true };
  }
  const retryable = status >= 500 || status === 408 || status === 425 || status === 429;
  failure.retryable = reported.retryable ?? retryable;
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
  answer: HandlerAnswer,
  deliveryIds: readonly string[],
  now: number,
): Map<string, AttemptOutcome> {
  const all = (outcome: AttemptOutcome) => new Map(deliveryIds.map((id) => [id, outcome]));
  if (answer.status < 200 || answer.status >= 300) return all(failed(failureOfStatus(answer, now)));
  const results = parseObject(answer.body, parsePayloads)?.results;
  if (!Array.isArray(results)) return all(unmentioned(false));
  // The handler library answers in the order of the deliveries.
  if (results.length === deliveryIds.length && results.every((entry, at) => entry?.delivery_id === deliveryIds[at])) {
    return new Map(deliveryIds.map((id, at) => [id, readAnswered(results[at] as Json, now)]));
  }
  const outcomes = all(unmentioned(true));
  for (const entry of results) {
    if (typeof entry !== 'object' || entry === null) continue;
    const id = (entry as Json).delivery_id;
    if (typeof id === 'string' && outcomes.has(id)) outcomes.set(id, readAnswered(entry as Json, now));
  }
  return outcomes;
}

/** The outcome of a delivery that its batch's answer does not mention. @param hasResults does it mention others? */
export const unmentioned = (hasResults: boolean): AttemptOutcome =>
  invalidAnswer(
    hasResults
      ? "The handler's results do not include this delivery."
      : 'The handler answered a batch without results.',
  );

/** One entry of an answer that is read as it arrives: its delivery and outcome, if it has any. */
export function readEntry(
  { text, isWhole }: EntryText,
  now: number,
): { id: string; outcome: AttemptOutcome } | undefined {
  if (!isWhole) {
    const id = /"delivery_id"\s*:\s*"([^"\\]*)"/.exec(text)?.[1];
    return id === undefined ? undefined : { id, outcome: tooLong(text) };
  }
  const entry = parseObject(text, parsePayloads);
  if (typeof entry?.delivery_id !== 'string') return undefined;
  return { id: entry.delivery_id, outcome: readAnswered(entry, now) };
}
