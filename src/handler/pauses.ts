/**
 * The sleeps, signals and jobs that one run waits for.
 *
 * A pause is pending until its time comes. Pauses that are over settle one after the other, in the order of their
 * times, and the handler reacts to each before the next one settles. So a race between them has the same winner in
 * every run.
 */
import type { RunRequest } from '../job/wire';
import type { Pause } from './step-rules';

interface Plan<T> {
  /** When it is over, or was, in the queue's time: epoch ms. */
  at: number;
  /** How long until then, in ms; 0: it is over. */
  leftMs: number;
  signal?: string;
  /** The jobs that it waits for. Those that have not begun do not end in this run. */
  run?: RunRequest;
  /** Called when it is over: what the handler gets, or what is thrown. */
  end: () => Promise<T>;
}

interface Pending {
  pause: Pause;
  run: RunRequest | undefined;
  isAwaited: boolean;
  /** How often something else has ended since it began: it may have lost a race each time. */
  overtaken: number;
  /** When it is over, by the clock of this machine: epoch ms. */
  dueAt: number;
  settle: () => Promise<void>;
}

/** Longest time of a timer, in ms. */
const LONGEST_MS = 2_147_483_647;

/** How long a run that only waits stays open for what its handler does outside of `ctx`, in ms at most. */
const GRACE_MS = 50;
/** And in relation to the pause that it waits for: the slot of the job is taken meanwhile. */
const GRACE_PART = 1 / 20;

export class Pauses {
  readonly #pending = new Set<Pending>();
  readonly #over: { at: number; settle: () => Promise<void> }[] = [];
  #isSettling = false;
  #next: { pending: Pending; timer: ReturnType<typeof setTimeout> } | undefined;

  /** @param changed a pause is awaited, or all that are over have settled @param settled a pause has settled */
  constructor(
    private readonly changed: () => void,
    private readonly settled: () => void,
  ) {}

  /** Has the handler still to react to pauses that are over? */
  get isSettling(): boolean {
    return this.#isSettling;
  }

  /** The pending pauses that the handler waits for. */
  awaited(): Pause[] {
    return [...this.#pending].filter(({ isAwaited }) => isAwaited).map(({ pause }) => pause);
  }

  /**
   * The jobs to name at the end of this run, which is continued when all of them have ended: those that are least
   * likely to have lost a race. @returns also whether it names others that have not begun
   */
  runs(): { runs: RunRequest[]; beginsOthers: boolean } {
    const all = [...this.#pending].flatMap(({ run, ...pending }) => (run ? [{ run, ...pending }] : []));
    const awaited = all.filter(({ isAwaited }) => isAwaited);
    const least = Math.min(...awaited.map(({ overtaken }) => overtaken));
    const waited = new Set(awaited.filter(({ overtaken }) => overtaken === least).map(({ run }) => run));
    const others = all.map(({ run }) => run).filter((run) => run.jobs && !waited.has(run));
    return { runs: [...waited, ...others], beginsOthers: waited.size > 0 && others.length > 0 };
  }

  /** Something else has ended. */
  overtake(): void {
    for (const pending of this.#pending) pending.overtaken++;
  }

  /** How long a run that only waits for these pauses stays open, in ms. */
  get graceMs(): number {
    const first = Math.min(...[...this.#pending].map(({ dueAt }) => dueAt));
    return Math.max(0, Math.min(GRACE_MS, (first - Date.now()) * GRACE_PART));
  }

  /** Waits for a pause. @param plan what it throws rejects the promise */
  wait<T>(plan: () => Plan<T>): Promise<T> {
    let done: { resolve: (value: T) => void; reject: (error: unknown) => void } | undefined;
    const promise = new WatchedPromise<T>((resolve, reject) => {
      done = { resolve, reject };
    });
    try {
      const { at, leftMs, signal, run, end } = plan();
      const settle = (): Promise<void> => end().then(done?.resolve, done?.reject);
      if (leftMs <= 0) this.#settle(at, settle);
      else {
        const pause = { until: at, ...(signal !== undefined && { signal }) };
        const dueAt = Date.now() + leftMs;
        const pending: Pending = { pause, run, isAwaited: false, overtaken: 0, dueAt, settle };
        this.#pending.add(pending);
        promise.onWatched = () => {
          pending.isAwaited = true;
          this.changed();
        };
      }
    } catch (error) {
      done?.reject(error);
    }
    return promise;
  }

  /** Lets the next pending pause end at its time, as long as the run stays open. */
  keepTime(): void {
    const first = [...this.#pending].reduce<Pending | undefined>(
      (one, other) => (one && one.dueAt <= other.dueAt ? one : other),
      undefined,
    );
    if (!first || this.#next?.pending === first) return;
    this.#stopTimer();
    const leftMs = Math.max(0, first.dueAt - Date.now());
    if (leftMs > LONGEST_MS) return;
    const expire = (): void => {
      this.#next = undefined;
      this.#pending.delete(first);
      this.#settle(first.pause.until, first.settle);
    };
    this.#next = { pending: first, timer: setTimeout(expire, leftMs) };
  }

  /** The run is over: nothing waits any more. */
  clear(): void {
    this.#stopTimer();
    this.#pending.clear();
  }

  #stopTimer(): void {
    if (this.#next) clearTimeout(this.#next.timer);
    this.#next = undefined;
  }

  #settle(at: number, settle: () => Promise<void>): void {
    this.#over.push({ at, settle });
    if (this.#isSettling) return;
    this.#isSettling = true;
    // Calls of the same turn are in the race, also those behind promises that are settled.
    void turn().then(() => this.#settleAll());
  }

  async #settleAll(): Promise<void> {
    for (;;) {
      const next = this.#over.sort((one, other) => one.at - other.at).shift();
      if (!next) break;
      this.overtake();
      await next.settle();
      this.settled();
      if (this.#over.length > 0) await turn();
    }
    this.#isSettling = false;
    this.changed();
  }
}

/** Resolves after everything that happens in this turn of the event loop. @param ms how much later */
export const turn = (ms = 0): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A promise that notices when something waits for it: `await`, `then`, or `Promise.race` and its like. */
class WatchedPromise<T> extends Promise<T> {
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  onWatched: (() => void) | undefined;

  // biome-ignore lint/suspicious/noThenProperty: `await` calls it, as it does of every subclass
  override then<A = T, B = never>(
    fulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.onWatched?.();
    return super.then(fulfilled, rejected);
  }
}
