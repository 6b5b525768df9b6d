/**
 * Tells calls made inside of a step from those of the handler around it. Workers have no `AsyncLocalStorage` unless
 * they ask for it, so the stack is read as well: the engine lists the functions that await the present one, too. Only
 * what a timer or a callback of the step calls is then missed.
 */
import { memberOf } from '../job/thrown';

/** Frames that are read. */
const DEPTH = 100;

let count = 0;

interface Store {
  getStore(): unknown;
  run<T>(store: unknown, run: () => T): T;
}

let store: Store | undefined;

/** Node's, where the runtime has it. */
function storeHere(): Store | undefined {
  const node = memberOf(globalThis, 'process') as { getBuiltinModule?: (id: string) => unknown } | undefined;
  const hooks = node?.getBuiltinModule?.('node:async_hooks') as { AsyncLocalStorage: new () => Store } | undefined;
  if (hooks) store ??= new hooks.AsyncLocalStorage();
  return hooks && store;
}

export class Inside {
  /** The name of a function around each step. Minifiers keep a computed name. */
  readonly #frame = `tocsin:step:${++count}:`;
  readonly #store = storeHere();

  async run(step: () => unknown): Promise<unknown> {
    const frame = { [this.#frame]: async () => await step() }[this.#frame] as () => Promise<unknown>;
    return await (this.#store ? this.#store.run(this, frame) : frame());
  }

  /** Is this called by a step? False where the engine does not list functions that wait. */
  get isHere(): boolean {
    if (this.#store) return this.#store.getStore() === this;
    const engine = Error as { stackTraceLimit?: number | undefined };
    const { stackTraceLimit } = engine;
    engine.stackTraceLimit = DEPTH;
    const { stack } = new Error();
    engine.stackTraceLimit = stackTraceLimit;
    return String(stack).includes(this.#frame);
  }
}
