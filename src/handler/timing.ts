/** Resolves after `ms`, or when the signal fires; then no timer is left that would keep the process alive. */
export async function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await atMost(ms, new Promise(() => undefined), signal);
}

/** Waits for a promise, but no longer than `ms`, nor than the signal allows. @returns has it settled, either way? */
export const atMost = (ms: number, promise: Promise<unknown>, signal?: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const end = (isSettled: boolean): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
      resolve(isSettled);
    };
    const stop = (): void => end(false);
    const settled = (): void => end(true);
    const timer = setTimeout(stop, ms);
    promise.then(settled, settled);
    signal?.addEventListener('abort', stop, { once: true });
  });

/** Pauses that double, with jitter, so that many workers do not come back at the same moment. */
export class Backoff {
  #turns = 0;

  constructor(
    private readonly firstMs: number,
    private readonly longestMs: number,
  ) {}

  /** The next pause, in ms: between half and all of a ceiling that doubles. */
  next(): number {
    const ceiling = Math.min(this.longestMs, this.firstMs * 2 ** Math.min(this.#turns++, 30));
    return ceiling * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#turns = 0;
  }
}

export class Changes {
  #waiting: (() => void)[] = [];

  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  notify(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
