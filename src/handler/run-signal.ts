/** The signal of a run, made at its first use: most handlers have none. It follows that of the call until the end. */
export class RunSignal {
  #controller: AbortController | undefined;
  #stopped: { reason: unknown } | undefined;
  #isOver = false;
  #unfollow: (() => void) | undefined;

  /** @param call has a signal that aborts when no one waits for the run any more */
  constructor(private readonly call?: { readonly signal: AbortSignal }) {}

  get signal(): AbortSignal {
    if (this.#controller) return this.#controller.signal;
    this.#controller = new AbortController();
    if (this.#stopped) this.#controller.abort(this.#stopped.reason);
    else if (this.call && !this.#isOver) this.#follow(this.#controller, this.call.signal);
    return this.#controller.signal;
  }

  #follow(controller: AbortController, signal: AbortSignal): void {
    const hangUp = (): void => controller.abort(signal.reason);
    if (signal.aborted) hangUp();
    else signal.addEventListener('abort', hangUp, { once: true });
    this.#unfollow = () => signal.removeEventListener('abort', hangUp);
  }

  get isAborted(): boolean {
    return this.#stopped !== undefined;
  }

  abort(reason: unknown): void {
    this.#stopped ??= { reason };
    this.#controller?.abort(reason);
  }

  /** The run is over: its signal follows no other. */
  end(): void {
    this.#isOver = true;
    this.#unfollow?.();
  }
}
