/** The ways to send a request, by what may be done when there was no answer to it, and to wait for what takes its time. */
import { AbortedError, aborted, NotFoundError, WaitTimeoutError } from './errors';
import { pause, type Retrier, withRetries } from './retry';
import type { Send } from './transport';

/** What a repeated request finds when an earlier try without an answer did it. */
export interface Earlier<T> {
  /** Does this refusal say so? */
  isDone: (error: unknown) => boolean;
  /** What the earlier try would have answered. @param refusal what the repetition was answered */
  read: (refusal: unknown) => Promise<T>;
}

/** How long to wait. */
export interface WaitOptions {
  /** In ms; `Infinity` waits as long as it takes. Default 60000. */
  timeoutMs?: number;
}

/** First and longest pause between two looks, in ms. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 2000;

/** Sends requests. */
export interface Requests {
  /** For what has the same effect sent twice as sent once: sent again whatever became of it. */
  safely: Send;
  /** For everything else: sent again only when it was refused unseen. */
  once: Send;
  /** For what can be done only once: when its repetition is refused because it is done, that is no failure. */
  settle: <T>(send: (send: Send) => Promise<T>, earlier: Earlier<T>, repeatable?: boolean) => Promise<T>;
  /** Sends a `DELETE`; what is gone after a try without an answer counts as deleted. */
  remove: (path: string) => Promise<void>;
  /**
   * Asks until there is an answer.
   * @param ask is told how long the server may take to answer, in s; undefined: not yet
   * @throws {WaitTimeoutError}
   */
  waitFor: <T>(what: string, options: WaitOptions, ask: (seconds: number) => Promise<T | undefined>) => Promise<T>;
  /** The longest that the server may be asked to take, in ms. */
  patienceMs: number;
}

/**
 * Makes {@link Requests} of a function that sends one.
 * @param timeoutMs how long the client waits for an answer; the server is asked to answer well before
 * @param now epoch ms
 */
export function createRequests(send: Send, retrier: Retrier, timeoutMs: number, now: () => number): Requests {
  const settle: Requests['settle'] = (attempt, { isDone, read }, repeatable = true) =>
    withRetries(retrier, repeatable, async ({ mayHaveHappened }) => {
      try {
        return await attempt(send);
      } catch (error) {
        if (mayHaveHappened && !(error instanceof AbortedError) && isDone(error)) return await read(error);
        throw error;
      }
    });
  const patienceMs = timeoutMs / 2;
  return {
    safely: (...request) => withRetries(retrier, true, () => send(...request)),
    once: (...request) => withRetries(retrier, false, () => send(...request)),
    settle,
    remove: (path) =>
      settle<void>(async (once) => void (await once('DELETE', path)), {
        isDone: (error) => error instanceof NotFoundError,
        read: async () => undefined,
      }),
    waitFor: async (what, options, ask) => {
      const { timeoutMs: limit = 60_000 } = options;
      const deadline = now() + limit;
      for (let look = 0; ; look++) {
        const asked = now();
        const found = await ask(Math.max(0, Math.min(patienceMs, deadline - asked)) / 1000);
        if (found !== undefined) return found;
        const answered = now();
        if (answered >= deadline) throw tooLate(what, limit);
        // A server that answered at once is not asked again at once.
        const next = asked + Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** look);
        if (next > answered) await pause(retrier, Math.min(next, deadline) - answered);
        if (retrier.signal?.aborted) throw aborted(retrier.signal, false);
      }
    },
    patienceMs,
  };
}

function tooLate(what: string, limit: number): WaitTimeoutError {
  return new WaitTimeoutError(`${what} did not end within ${limit} ms.`, {
    status: 0,
    code: 'timeout',
    retryable: true,
  });
}
