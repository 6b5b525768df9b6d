/** The time limit of a run. Calls of `ctx` compare the clock too: a handler that never yields starves all timers. */
import type { Deadlines } from './deadlines';
import { TimeoutError } from './failure';

export class TimeLimit {
  /** When the time is up, epoch ms. */
  readonly deadline: number;
  #stop: ((error: Error) => void) | undefined;
  #isUp = false;

  /** @param message of the {@link TimeoutError} */
  constructor(
    readonly ms: number,
    private readonly message: string,
  ) {
    this.deadline = Date.now() + ms;
  }

  /** Has the run been stopped by it? Its handler may continue anyway. */
  get isUp(): boolean {
    return this.#isUp;
  }

  /** Calls `stop` once, when the time is up. Until {@link watch} no timer looks at it. */
  begin(stop: (error: Error) => void): void {
    this.#stop = stop;
  }

  /** Sets the timer. @returns ends all that */
  watch(deadlines: Deadlines): () => void {
    const unwatch = deadlines.watch(this.ms, () => this.#expire());
    return () => {
      this.#stop = undefined;
      unwatch();
    };
  }

  /** Stops the run if its time is up. @returns the error that has stopped it just now */
  check(): Error | undefined {
    return this.#stop !== undefined && Date.now() >= this.deadline ? this.#expire() : undefined;
  }

  #expire(): Error | undefined {
    const stop = this.#stop;
    this.#stop = undefined;
    this.#isUp = true;
    const error = new TimeoutError(this.message);
    stop?.(error);
    return stop && error;
  }
}
