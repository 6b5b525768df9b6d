import type { After } from '../durable/timers';
import type { TargetConfig } from './config';

/** Thrown by {@link callWithin} when there was no answer in time. */
export class NoAnswer extends Error {}

/** How much longer an answer may take that is arriving when its time is up, ms; looked at once a second. */
const ARRIVING_STEP_MS = 1_000;
const MAX_ARRIVING_STEPS = 8;

/** Interval between checks of a long call, ms. */
export const LONG_CALL_MS = 30_000;

export interface CallLimits {
  timeoutMs: number;
  after: After;
  /** Has more of the answer arrived since this was last asked? Such a call gets some seconds more. */
  isArriving?(): boolean;
  /** Half a minute has passed, and the call continues. */
  goesOn?(): void;
  /** Gets the function that ends the call before its time. */
  stoppable?(stop: (reason: NoAnswer) => void): void;
}

/**
 * Makes one request and reads its answer, within limits. @param requestWith gets the URL and the rest, with its signal
 * @throws {NoAnswer} when the time was up, or the call was stopped; and what the handler Worker throws
 */
export async function callWithin<T>(
  target: TargetConfig,
  requestWith: (signal: AbortSignal) => [url: string, init: RequestInit],
  limits: CallLimits,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const aborter = new AbortController();
  // The race ends the wait, because a handler that hangs need not react to the signal.
  const { promise: ended, reject: end } = Promise.withResolvers<never>();
  const stop = (reason: NoAnswer): void => {
    end(reason);
    aborter.abort(reason);
  };
  limits.stoppable?.(stop);
  let endWait: (() => void) | undefined;
  let steps = 0;
  const wait = (leftMs: number): void => {
    const ms = Math.min(leftMs, LONG_CALL_MS);
    endWait = limits.after(ms, () => {
      if (leftMs > ms) {
        limits.goesOn?.();
        wait(leftMs - ms);
      } else if (limits.isArriving?.() && steps++ < MAX_ARRIVING_STEPS) wait(ARRIVING_STEP_MS);
      else stop(new NoAnswer(`No answer within ${limits.timeoutMs} ms.`));
    });
  };
  wait(limits.timeoutMs);
  const fetchAndRead = async (): Promise<T> => read(await target.binding.fetch(...requestWith(aborter.signal)));
  try {
    return await Promise.race([fetchAndRead(), ended]);
  } finally {
    endWait?.();
  }
}
