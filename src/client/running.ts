/**
 * The code that runs pull workers comes with `tocsin/client`. The Worker that holds the queue has a client without it:
 * few such Workers run a pull worker, and all would have to load the code.
 */
import type { runPuller } from './run';

let run: typeof runPuller | undefined;

/** Makes `worker.run` possible. */
export function runWorkersBy(runner: typeof runPuller): void {
  run = runner;
}

/** @throws {TypeError} when `tocsin/client` was not imported */
export function workerRunner(): typeof runPuller {
  if (run) return run;
  throw new TypeError("worker.run: what runs workers is not in this Worker: add import 'tocsin/client'");
}
