/**
 * Tells calls made inside of a step from those of the handler around it. Workers have no `AsyncLocalStorage` unless
 * they ask for it, so the stack is read: the engine lists the functions that await the present one, too.
 */

/** Frames that are read. */
const DEPTH = 100;

let count = 0;

/** The inside of the steps of one run. */
export class Inside {
  /** The name of a function around each step. Minifiers keep a computed name. */
  readonly #frame = `tocsin:step:${++count}:`;

  /** Runs a step. */
  async run(step: () => unknown): Promise<unknown> {
    const frame = { [this.#frame]: async () => await step() }[this.#frame] as () => Promise<unknown>;
    return await frame();
  }

  /** Is this called by a step? False where the engine does not list functions that wait. */
  get isHere(): boolean {
    const engine = Error as { stackTraceLimit?: number | undefined };
    const { stackTraceLimit } = engine;
    engine.stackTraceLimit = DEPTH;
    const { stack } = new Error();
    engine.stackTraceLimit = stackTraceLimit;
    return String(stack).includes(this.#frame);
  }
}
