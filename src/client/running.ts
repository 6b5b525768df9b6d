/** The code of pull workers comes only with `tocsin/client`, not with the client inside the queue's Worker. */
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
