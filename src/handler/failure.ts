/** Turns any thrown value into the error of its delivery. Never throws itself. */
import { UnrecoverableError, verdictOf } from './outcomes';

/** An error as an answer carries it to the queue. */
export interface Failure {
  code: string;
  /** Kind of the failure: the error's own `type`, else the name of its class. */
  type?: string;
  message: string;
  /** Names of the classes the error belongs to, own class first. */
  classes?: string[];
  details?: unknown;
  kill?: boolean;
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
/** Largest `details` that are sent, in characters of JSON. */
const MAX_DETAILS = 65_536;

/** The run exceeded its timeout. */
export class TimeoutError extends Error {}
/** The handler returned something that is not JSON. */
export class UnserialisableResult extends Error {}
/** The handler returned a result above the size limit. */
export class ResultTooLarge extends Error {}

/** Describes any thrown value for the queue. */
export function failureOf(thrown: unknown): Failure {
  try {
    if (thrown instanceof TimeoutError) return { code: 'timeout', type: 'timeout', message: thrown.message };
    if (typeof thrown === 'object' && thrown !== null) return describe(thrown);
    return { code: 'handler_error', message: clip(typeof thrown === 'string' ? thrown : String(thrown), MAX_MESSAGE) };
  } catch {
    return { code: 'handler_error', message: 'The handler threw a value that cannot be read.' };
  }
}

/** True when the failure leaves the choice of the next run to the retry policy. */
export function followsPolicy(failure: Failure): boolean {
  return (
    (failure.code === 'handler_error' || failure.code === 'timeout') &&
    failure.kill !== true &&
    failure.retry_in === undefined &&
    failure.retry_at === undefined &&
    !failure.classes?.includes('UnrecoverableError')
  );
}

function describe(thrown: object): Failure {
  const classes = isError(thrown) ? classNames(thrown) : [];
  const type = stringOf(Reflect.get(thrown, 'type')) ?? classes[0];
  const details = detailsOf(thrown);
  return {
    code: 'handler_error',
    ...(type !== undefined && { type: clip(type, MAX_NAME) }),
    message: clip(messageOf(thrown), MAX_MESSAGE),
    ...(classes.length > 0 && { classes }),
    ...(details !== undefined && { details }),
    ...verdictOf(thrown),
  };
}

/**
 * The names of an error's classes, own class first. A prototype's own `name` goes before its constructor's, because
 * minifiers rename constructors. A `name` set on the error itself is listed too.
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
  const given = ownName(error);
  if (given !== undefined && !names.includes(given)) names.splice(1, 0, clip(given, MAX_NAME));
  // Only the name tells one DOMException from another: AbortError, TimeoutError, …
  if (names[0] === 'DOMException' && error.name !== 'DOMException') names.unshift(error.name);
  if (error instanceof UnrecoverableError && !names.includes('UnrecoverableError')) names.push('UnrecoverableError');
  return names;
}

function ownName(target: object): string | undefined {
  return stringOf(Object.getOwnPropertyDescriptor(target, 'name')?.value);
}

function constructorName(prototype: object): string | undefined {
  const owner: unknown = Object.getOwnPropertyDescriptor(prototype, 'constructor')?.value;
  return typeof owner === 'function' ? stringOf(owner.name) : undefined;
}

function messageOf(thrown: object): string {
  const message: unknown = Reflect.get(thrown, 'message');
  if (typeof message === 'string') return message;
  if (isError(thrown)) return '';
  return JSON.stringify(thrown) ?? String(thrown);
}

function detailsOf(thrown: object): unknown {
  try {
    const json = JSON.stringify(Reflect.get(thrown, 'details'));
    return json === undefined || json.length > MAX_DETAILS ? undefined : JSON.parse(json);
  } catch {
    return undefined;
  }
}

/** Is it an error, of any realm? One of a `node:vm` context or of a test runner is no `instanceof` this realm's. */
export function isError(value: unknown): value is Error {
  return value instanceof Error || Object.prototype.toString.call(value) === '[object Error]';
}

/** The text, unless it is empty or none. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Shortens a text and replaces half surrogate pairs, which the queue would refuse. */
function clip(value: string, length: number): string {
  const short = value.length > length ? `${value.slice(0, length - 1)}…` : value;
  return short.replace(/\p{Surrogate}/gu, '\uFFFD');
}
