import { atMost, Changes } from './timing';

/**
 * Bounds how many runs of one handler are under way in an isolate. A run may vanish without returning its slot: the
 * runtime can drop a request, and with it the code that would release the slot. So a slot is taken only until the
 * deadline of its run. Waiting runs check again when the first of these deadlines passes.
 */
export class Slots {
  /** Deadline of each run with a slot, epoch ms. */
  readonly #held = new Map<symbol, number>();
  readonly #changes = new Changes();

  constructor(
    private readonly limit: number,
    private readonly now: () => number = Date.now,
  ) {}

  /** Waits for a slot, taken until `until` (epoch ms) at most. @returns gives it back @throws the reason of `signal` */
  async acquire(until: number, signal: AbortSignal): Promise<() => void> {
    while (!this.#free()) {
      signal.throwIfAborted();
      const next = Math.max(1, Math.min(...this.#held.values()) - this.now());
      await atMost(next, this.#changes.next(), signal);
    }
    signal.throwIfAborted();
    const holder = Symbol('slot');
    this.#held.set(holder, until);
    return () => {
      // All waiting runs check again, in the order they came: a single one might be gone with its request.
      if (this.#held.delete(holder)) this.#changes.notify();
    };
  }

  #free(): boolean {
    const now = this.now();
    for (const [holder, until] of this.#held) if (until <= now) this.#held.delete(holder);
    return this.#held.size < this.limit;
  }
}
