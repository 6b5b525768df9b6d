/** Measures how long the event loop stood still: nothing is heard or sent meanwhile, heartbeats included. */

/** How often it looks, and how late that must be to be told, in ms. */
const EVERY_MS = 500;
const LATE_MS = 1_000;

export class LoopWatch {
  #timer: ReturnType<typeof setInterval> | null = null;
  #due = 0;

  /** @param blocked is told for how long it stood still, in ms */
  constructor(private readonly blocked: (ms: number) => void) {}

  start(): void {
    this.#due = performance.now() + EVERY_MS;
    this.#timer = setInterval(() => this.#look(), EVERY_MS);
  }

  #look(): void {
    const now = performance.now();
    const late = now - this.#due;
    this.#due = now + EVERY_MS;
    if (late > LATE_MS) this.blocked(late);
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}
