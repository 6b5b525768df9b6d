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

  readonly #tries: { readonly step: string }[] = [];

  /** @param name of the step */
  async run(name: string, step: () => unknown): Promise<unknown> {
    const own = { step: name };
    const at = `${this.#frame}${this.#tries.push(own)}:`;
    const frame = { [at]: async () => await step() }[at] as () => Promise<unknown>;
    return await (this.#store ? this.#store.run(own, frame) : frame());
  }

  /** Is this called by a step? False where the engine does not list functions that wait. */
  get isHere(): boolean {
    return this.here !== undefined;
  }

  /** The try of a step that calls this. */
  get here(): { readonly step: string } | undefined {
    if (this.#store) return this.#tries.find((one) => one === this.#store?.getStore());
    const engine = Error as { stackTraceLimit?: number | undefined };
    const { stackTraceLimit } = engine;
    engine.stackTraceLimit = DEPTH;
    const { stack } = new Error();
    engine.stackTraceLimit = stackTraceLimit;
    const number = String(stack).split(this.#frame, 2)[1];
    return number === undefined ? undefined : this.#tries[Number.parseInt(number, 10) - 1];
  }
}
