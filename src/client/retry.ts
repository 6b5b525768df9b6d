/** Repeats requests that may safely be sent again. */
import { AbortedError, aborted, TocsinError } from '../producer/errors';

export interface RetryOptions {
  /** Tries in all, the first included. Default 4; 1: never again. */
  attempts?: number | undefined;
  /** Base of the exponential backoff, in ms. Default 100. */
  baseMs?: number | undefined;
  /** Longest wait between tries, in ms. When the server asks for more, the error is thrown at once. Default 10000. */
  maxMs?: number | undefined;
}

export interface Retrier {
  attempts: number;
  baseMs: number;
  maxMs: number;
  /** In [0, 1). */
  random: () => number;
  sleep: (ms: number) => Promise<void>;
  signal?: AbortSignal | undefined;
}

export interface Try {
  /** True when an earlier try may have taken effect. */
  mayHaveHappened: boolean;
}

/**
 * Runs `send` until it succeeds, fails permanently, or runs out of tries. Refusals without effect (429, 503 with
 * `Retry-After`) are always repeated, unknown outcomes only when `repeatable`.
 */
export async function withRetries<T>(
  retrier: Retrier,
  repeatable: boolean,
  send: (attempt: Try) => Promise<T>,
): Promise<T> {
  let mayHaveHappened = false;
  for (let attempt = 1; ; attempt++) {
    try {
      return await send({ mayHaveHappened });
    } catch (error) {
      if (!(error instanceof TocsinError) || error instanceof AbortedError) throw error;
      if (attempt >= retrier.attempts) throw error;
      const refused = error.status === 429 || (error.status === 503 && !error.outcomeUnknown);
      if (!refused && !(repeatable && error.outcomeUnknown)) throw error;
      const wait = waitBefore(retrier, attempt, error.retryAfterMs);
      if (wait === undefined) throw error;
      mayHaveHappened ||= error.outcomeUnknown || error.status === 503;
      await pause(retrier, wait);
      if (retrier.signal?.aborted) throw aborted(retrier.signal, mayHaveHappened);
    }
  }
}

/** Waits until the time is over or the signal fires. */
export async function pause({ sleep, signal }: Pick<Retrier, 'sleep' | 'signal'>, ms: number): Promise<void> {
  if (!signal) return await sleep(ms);
  if (signal.aborted) return;
  await new Promise<void>((resolve, reject) => {
    const wake = () => resolve();
    signal.addEventListener('abort', wake, { once: true });
    sleep(ms)
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', wake));
  });
}

/** Full jitter over an exponential ceiling, on top of the server's `Retry-After`. Undefined: too long to wait. */
function waitBefore(retrier: Retrier, attempt: number, retryAfterMs = 0): number | undefined {
  if (retryAfterMs > retrier.maxMs) return undefined;
  const ceiling = Math.min(retrier.maxMs, retrier.baseMs * 2 ** (attempt - 1));
  return Math.min(retrier.maxMs, Math.floor(retryAfterMs + retrier.random() * ceiling));
}
