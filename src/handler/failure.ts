/** Turns any thrown value into the error of its delivery. Never throws itself. */
import { textOf } from '../job/own';
import { isA, isError, memberOf, messageOf, safely, tagOf } from '../job/thrown';
import type { FailureReport } from '../job/wire';
import { isExpected, UnrecoverableError, verdictOf } from './outcomes';
import { clip } from './text';
import type { Job } from './types';

/** An error behind another one. */
interface Cause {
  /** The name of its class. */
  type?: string;
  /** As Node has it, such as `ECONNREFUSED`. */
  code?: string;
  message: string;
  cause?: Cause;
  errors?: Cause[];
  /** How many more `errors` there were. */
  omitted?: number;
}

/** Most bytes of JSON for all causes of a failure. */
const MAX_BYTES = 4_096;
/** Largest details that a queue keeps, in characters of JSON. */
const KEPT_DETAILS = 16 * 1024;
const MAX_LEVELS = 8;
const MAX_ERRORS = 10;
/** Longest text of a cause, in characters. */
const MAX_TEXT = 512;

/** The details of a failure, with its causes as `cause` and `errors`, unless its details have these members already. */
function withCauses(details: unknown, thrown: object): unknown {
  if (details !== undefined && (typeof details !== 'object' || details === null || Array.isArray(details)))
    return details;
  const causes = new Causes().behind(thrown, MAX_LEVELS);
  if (Object.keys(causes).length === 0) return details;
  const all = { ...causes, ...details };
  // The queue keeps nothing of details that are larger.
  return JSON.stringify(all).length > KEPT_DETAILS ? details : all;
}

class Causes {
  #left = MAX_BYTES;

  behind(thrown: unknown, levels: number): Pick<Cause, 'cause' | 'errors' | 'omitted'> {
    if (levels === 0) return {};
    const cause = this.#read(memberOf(thrown, 'cause'), levels);
    const all = memberOf(thrown, 'errors');
    const isList = safely(() => Array.isArray(all), false) && isError(thrown);
    const errors = isList ? this.#list(all as unknown[], levels) : {};
    return { ...(cause && { cause }), ...errors };
  }

  #list(all: unknown[], levels: number): Pick<Cause, 'errors' | 'omitted'> {
    const errors: Cause[] = [];
    const length = safely(() => all.length, 0);
    for (let at = 0; at < Math.min(length, MAX_ERRORS); at++) {
      const error = this.#read(memberOf(all, at), levels);
      if (error) errors.push(error);
    }
    if (errors.length === 0) return {};
    return { errors, ...(length > errors.length && { omitted: length - errors.length }) };
  }

  /** Undefined: there is none, or no room for it. */
  #read(value: unknown, levels: number): Cause | undefined {
    if (value === undefined || value === null) return undefined;
    const type = textOf(memberOf(value, 'name'));
    const code = textOf(memberOf(value, 'code'));
    const own: Cause = {
      ...(type !== undefined && { type: clip(type, MAX_TEXT) }),
      ...(code !== undefined && { code: clip(code, MAX_TEXT) }),
      message: clip(messageOf(value), MAX_TEXT),
    };
    this.#left -= new TextEncoder().encode(JSON.stringify(own)).length;
    return this.#left < 0 ? undefined : { ...own, ...this.behind(value, levels - 1) };
  }
}

/** An error as an answer carries it to the queue. */
export interface Failure extends FailureReport {
  code: string;
  message: string;
  /** Milliseconds. */
  retry_in?: number;
  /** RFC 3339. */
  retry_at?: string;
}

/** Longest message that is sent, in characters; the log has the whole one. */
const MAX_MESSAGE = 8192;
/** Longest type or class name that is sent, in characters. */
const MAX_NAME = 255;
const MAX_CLASSES = 32;
/** Longest stack that is sent, in characters. */
const MAX_STACK = 4096;
/** Largest `details` that are sent, in characters of JSON. */
const MAX_DETAILS = 65_536;

export class TimeoutError extends Error {}
/** The handler returned something that is not JSON. */
export class UnserialisableResult extends Error {}
/** The handler returned a result that the queue does not keep. Another run would return the same. */
export class UnkeptResult extends Error {
  constructor(
    readonly code: 'result_too_large' | 'result_too_deep' | 'result_not_text',
    message: string,
  ) {
    super(message);
  }
}

export function failureOf(thrown: unknown): Failure {
  if (isA(thrown, TimeoutError)) return { code: 'timeout', type: 'timeout', message: thrown.message };
  if (isA(thrown, UnkeptResult)) {
    const { code, message } = thrown;
    return { code, type: code, message, retryable: false };
  }
  if (tagOf(thrown) === 'Response') return failureOfResponse(thrown);
  if (typeof thrown === 'object' && thrown !== null) return describe(thrown);
  return { code: 'handler_error', message: clip(messageOf(thrown), MAX_MESSAGE) };
}

/** A thrown `Response`, as `if (!response.ok) throw response` does. Its type names the status, for policies. */
function failureOfResponse(thrown: unknown): Failure {
  const status = Number(memberOf(thrown, 'status'));
  const text = textOf(memberOf(thrown, 'statusText'));
  const named = text === undefined ? `${status}` : `${status} ${text}`;
  return {
    code: 'handler_error',
    type: `http_${status}`,
    message: clip(`The handler threw a Response with the status ${named}.`, MAX_MESSAGE),
    classes: ['Response'],
    details: { status, ...(text !== undefined && { status_text: clip(text, MAX_NAME) }) },
  };
}

export const stackOf = (thrown: unknown): string | undefined =>
  isError(thrown) ? textOf(memberOf(thrown, 'stack')) : undefined;

/** Does the job's policy say that this failure is not retried? */
export const isNonRetryable = (failure: Failure, job: Job): boolean =>
  isListed(failure, job.retryEffective?.nonRetryableErrors ?? job.retry?.nonRetryableErrors);

export function isListed(failure: Failure, entries: unknown): boolean {
  if (!Array.isArray(entries)) return false;
  const names = [failure.type ?? failure.code, failure.code];
  return entries.some(
    (entry) =>
      typeof entry === 'string' &&
      names.some((name) => name === entry || (entry.endsWith('.*') && name.startsWith(entry.slice(0, -1)))),
  );
}

/** Does this failure end the job, as far as this side knows? The queue decides, by policies that no job shows. */
export function endsJob(failure: Failure, job: Job, attempt: number): boolean {
  const isFinal = failure.code === 'DISCARD' || failure.code === 'FAIL' || failure.code === 'DEAD_LETTER';
  if (isFinal || failure.kill === true || failure.retryable === false) return true;
  if (failure.classes?.includes('UnrecoverableError') || isNonRetryable(failure, job)) return true;
  return typeof job.maxAttempts === 'number' && attempt >= job.maxAttempts;
}

/** True when the failure leaves the choice of the next run to the retry policy. */
export const followsPolicy = (failure: Failure): boolean =>
  (failure.code === 'handler_error' || failure.code === 'timeout') &&
  failure.kill !== true &&
  failure.retryable !== false &&
  failure.retry_in === undefined &&
  failure.retry_at === undefined &&
  !failure.classes?.includes('UnrecoverableError');

function describe(thrown: object): Failure {
  const classes = isError(thrown) ? safely(() => classNames(thrown), []) : [];
  const type = textOf(memberOf(thrown, 'type')) ?? classes[0];
  const details = withCauses(detailsOf(thrown), thrown);
  const stack = isExpected(thrown) ? undefined : stackOf(thrown);
  return {
    code: 'handler_error',
    ...(type !== undefined && { type: clip(type, MAX_NAME) }),
    message: clip(messageOf(thrown), MAX_MESSAGE),
    ...(classes.length > 0 && { classes }),
    ...(details !== undefined && { details }),
    ...(stack !== undefined && { stack: clip(stack, MAX_STACK) }),
    ...verdictOf(thrown),
  };
}

/**
 * The names of an error's classes, own class first. A prototype's own `name` goes before its constructor's, because
 * minifiers rename constructors. A `name` set on the error itself is listed too, and goes first where the class says
 * nothing: plain `Error`, and `DOMException`, whose kinds (AbortError, TimeoutError, …) have one class.
 */
function classNames(error: Error): string[] {
  const names: string[] = [];
  let level: object | null = Object.getPrototypeOf(error);
  while (level !== null && names.length < MAX_CLASSES) {
    const above: object | null = Object.getPrototypeOf(level);
    // The root is `Object.prototype`, of whichever realm.
    if (above === null) break;
    const name = ownName(level) ?? constructorName(level);
    if (name !== undefined) names.push(clip(name, MAX_NAME));
    level = above;
  }
  const [own] = names;
  const given = own === 'DOMException' ? textOf(memberOf(error, 'name')) : ownName(error);
  const isNamedAlone = own === 'Error' || own === 'DOMException';
  if (given !== undefined && !names.includes(given)) names.splice(isNamedAlone ? 0 : 1, 0, clip(given, MAX_NAME));
  if (error instanceof UnrecoverableError && !names.includes('UnrecoverableError')) names.push('UnrecoverableError');
  return names;
}

const ownName = (target: object): string | undefined => textOf(Object.getOwnPropertyDescriptor(target, 'name')?.value);

function constructorName(prototype: object): string | undefined {
  const owner: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof owner === 'function' ? textOf(owner.name) : undefined;
}

function detailsOf(thrown: object): unknown {
  const json = safely(() => JSON.stringify(memberOf(thrown, 'details')), undefined);
  return json === undefined || json.length > MAX_DETAILS ? undefined : JSON.parse(json);
}
