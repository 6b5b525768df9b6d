/** The time limit of a run. Calls of `ctx` compare the clock too: a handler that never yields starves all timers. */
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

interface Deadline {
  /** Epoch ms. */
  at: number;
  /** Null: no one waits for it any more. */
  expire: (() => void) | null;
  timer: ReturnType<typeof setTimeout> | null;
}

/** Time limits of runs that begin together. Timers are set at the end of their turn: most runs are over by then. */
export class Deadlines {
  #fresh: Deadline[] = [];

  /** Calls `expire` after `ms`. @returns ends that */
  watch(ms: number, expire: () => void): () => void {
    const entry: Deadline = { at: Date.now() + ms, expire, timer: null };
    if (this.#fresh.push(entry) === 1) setTimeout(() => this.#setTimers(), 0);
    return () => {
      entry.expire = null;
      if (entry.timer !== null) clearTimeout(entry.timer);
    };
  }

  #setTimers(): void {
    const now = Date.now();
    for (const entry of this.#fresh) {
      if (entry.expire) entry.timer = setTimeout(entry.expire, Math.max(0, entry.at - now));
    }
    this.#fresh = [];
  }
}
