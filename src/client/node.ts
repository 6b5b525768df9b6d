/** Threads of Node, looked up at run time so that bundles for other platforms need none. */

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

/** @param code CommonJS @returns undefined: no threads here @throws {DOMException} `workerData` cannot be cloned */
export function startThread(code: string, workerData: unknown, name: string): Thread | undefined {
  const { process } = globalThis as Host;
  const { Worker } = process?.getBuiltinModule?.('node:worker_threads') ?? {};
  return Worker && new Worker(code, { eval: true, workerData, name });
}
