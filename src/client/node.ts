/** Threads of Node, looked up at run time so that bundles for other platforms need none. */

/** A thread of Node, as far as it is used here. */
export interface Thread {
  postMessage(message: unknown): void;
  on(event: 'message', listener: (message: never) => void): unknown;
  on(event: 'error', listener: (error: unknown) => void): unknown;
  on(event: 'exit', listener: (code: number) => void): unknown;
  terminate(): Promise<unknown>;
  unref(): void;
}

type ThreadClass = new (
  code: string,
  options: { eval: true; workerData: unknown; env?: object; name: string },
) => Thread;

interface Host {
  process?: { getBuiltinModule?: (name: string) => { Worker?: ThreadClass } | undefined };
}

/**
 * Starts a thread, where there are any. @param code CommonJS; it may `import()` modules @param name for debuggers
 * @throws {DOMException} when `workerData` cannot be given to a thread
 */
export function startThread(code: string, workerData: unknown, name: string): Thread | undefined {
  const { process } = globalThis as Host;
  const { Worker } = process?.getBuiltinModule?.('node:worker_threads') ?? {};
  return Worker && new Worker(code, { eval: true, workerData, name });
}
