/** The ways to send a request, by whether it may be repeated after a lost answer, and to wait for a slow one. */

import { AbortedError, aborted, InvalidJobError, NotFoundError, WaitTimeoutError } from '../producer/errors';
import { shaped } from './answers';
import type { Dial } from './dial';
import type { Address } from './pulse';
import { pause, type Retrier, withRetries } from './retry';
import type { Send, SendOptions } from './transport';

/** How a repeated request finds that an earlier try, whose answer was lost, had its effect. */
export interface Earlier<T> {
  /** Does this refusal show it? */
  isDone: (error: unknown) => boolean;
  /** The answer that the earlier try would have got. @param refusal what the repetition was answered */
  read: (refusal: unknown) => Promise<T>;
}

export interface WaitOptions {
  /** In ms; `Infinity` waits as long as it takes. Default 60000. */
  timeoutMs?: number;
}

/** First and longest pause between two polls, in ms. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2000;

export interface Requests {
  /** For a request that has the same effect once or twice: repeated after any failure. */
  safely: Send;
  /** Sends {@link safely}; `mark` is a member of every answer, `what` names the answer in the error without it. */
  ask: <T>(
    method: string,
    path: string,
    mark: keyof T & string,
    what: string,
    ...more: [body?: string | undefined, options?: SendOptions]
  ) => Promise<T>;
  /** Sends a `GET`, as {@link ask}. */
  read: <T>(path: string, mark: keyof T & string, what: string) => Promise<T>;
  /** For any other request: repeated only when it was refused without effect. */
  once: Send;
  /** Sends under an idempotency key, {@link safely}; without a key {@link once}. */
  underKey: (key: string | undefined) => Send;
  /** For a request that can succeed only once: a repetition that is refused because it is done counts as success. */
  settle: <T>(send: (send: Send) => Promise<T>, earlier: Earlier<T>, repeatable?: boolean) => Promise<T>;
  /** Sends a `DELETE`. After a try without an answer, 404 counts as deleted. */
  remove: (path: string) => Promise<void>;
  /** Polls. @param ask gets the server's time to answer, in s; undefined: not yet @throws {WaitTimeoutError} */
  waitFor: <T>(what: string, options: WaitOptions, ask: (seconds: number) => Promise<T | undefined>) => Promise<T>;
  /** The longest wait that the server may be asked for, in ms. */
  longestWaitMs: number;
  /** Opens sockets; undefined where there are none. */
  dial: Dial | undefined;
  address: Address | undefined;
}

export const keyHeader = (key: string | undefined): Record<string, string> =>
  key === undefined ? {} : { 'Idempotency-Key': key };

/** @param timeoutMs of the client; the server is asked to answer well before @param now epoch ms */
export function createRequests(
  send: Send,
  retrier: Retrier,
  timeoutMs: number,
  now: () => number,
  dial?: Dial,
  address?: Address,
): Requests {
  const settle: Requests['settle'] = (attempt, { isDone, read }, repeatable = true) =>
    withRetries(retrier, repeatable, async ({ mayHaveHappened }) => {
      try {
        return await attempt(send);
      } catch (error) {
        if (mayHaveHappened && !(error instanceof AbortedError) && isDone(error)) return await read(error);
        throw error;
      }
    });
  const longestWaitMs = timeoutMs / 2;
  const safely: Send = (...request) => withRetries(retrier, true, () => send(...request));
  const once: Send = (...request) => withRetries(retrier, false, () => send(...request));
  const ask: Requests['ask'] = async (method, path, mark, what, ...more) =>
    shaped(await safely(method, path, ...more), mark, what);
  return {
    safely,
    ask,
    read: (path, mark, what) => ask('GET', path, mark, what),
    once,
    underKey: (key) => (method, path, body, options) => {
      const send = key === undefined ? once : safely;
      return send(method, path, body, { ...options, headers: { ...keyHeader(key), ...options?.headers } });
    },
    settle,
    remove: (path) =>
      settle<void>(async (once) => void (await once('DELETE', path)), {
        isDone: (error) => error instanceof NotFoundError,
        read: async () => undefined,
      }),
    waitFor: async (what, { timeoutMs: limit = 60_000 }, ask) => {
      const deadline = now() + limit;
      for (let look = 0; ; look++) {
        const asked = now();
        const found = await ask(Math.max(0, Math.min(longestWaitMs, deadline - asked)) / 1000);
        if (found !== undefined) return found;
        const answered = now();
        if (answered >= deadline) {
          const info = { status: 0, code: 'timeout', retryable: true };
          throw new WaitTimeoutError(`${what} did not end within ${limit} ms.`, info);
        }
        // After an immediate answer the client pauses before it polls again.
        const next = asked + Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** look);
        if (next > answered) await pause(retrier, Math.min(next, deadline) - answered);
        if (retrier.signal?.aborted) throw aborted(retrier.signal, false);
      }
    },
    longestWaitMs,
    dial,
    address,
  };
}

/**
 * A path with encoded values, none of which adds a segment or a query: pathTo`/jobs/${id}/result`.
 * @throws {InvalidJobError} for `.`, `..` and missing values
 */
export const pathTo = (parts: TemplateStringsArray, ...values: string[]): string =>
  String.raw({ raw: parts }, ...values.map(segmentOf));

function segmentOf(name: string): string {
  if (typeof name === 'string' && !['', '.', '..'].includes(name) && name.isWellFormed()) {
    return encodeURIComponent(name);
  }
  throw invalid(`${JSON.stringify(name)} cannot be named in a path.`, 'path');
}

/**
 * The query, once each condition exists and has a value: one that is overlooked would extend the request to more jobs.
 * @param names all conditions; the compiler checks that
 * @throws {InvalidJobError} for a name that is not a condition, and for undefined, null, NaN or an empty list
 */
export function checked<T extends object>(query: T, names: Readonly<Record<keyof T, unknown>>): T {
  for (const [name, value] of Object.entries(query)) {
    if (!Object.hasOwn(names, name)) {
      throw invalid(`${name.slice(0, 64)} is not a condition; there are ${Object.keys(names).join(', ')}.`, name);
    }
    if (Array.isArray(value) && value.length === 0) throw invalid(`${name} must not be an empty list.`, name);
    if (value !== undefined && value !== null && !Number.isNaN(value)) continue;
    throw invalid(`${name} must have a value: leave it out to choose regardless of it.`, name);
  }
  return query;
}

/** The error for an invalid query, before anything is sent. */
export const invalid = (message: string, field: string): InvalidJobError =>
  new InvalidJobError(message, { status: 0, code: 'invalid_request', retryable: false, details: { field } });
