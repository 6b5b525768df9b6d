/** How a worker that pulls is run: its handlers and options, checked. */
import { RUNNABLE, type Runnable, runnable } from '../handler/runnable';
import { ignoreRejection, messageOf } from '../job/thrown';
import { namesOf, refuseUnknown } from '../producer/known';
import type { Puller } from './pull';
import type { Leases, RunnableHandlers, RunOptions } from './pull-types';
import { isPool } from './queue-sockets';
import { HEARTBEATS_IN_A_LEASE, Runner } from './runner';
import { LOG_AFTER_MS } from './running-jobs';
import { Threads } from './threads';

export const RUN_OPTIONS = namesOf<RunOptions>({
  ...{ signal: true, concurrency: true, queueConcurrency: true, threads: true, waitMs: true, socket: true },
  ...{ heartbeatMs: true, heartbeatThread: true, shutdownTimeoutMs: true, unhandled: true, env: true, log: true },
  onError: true,
});

/** Intervals of heartbeats, in ms; shorter for short leases, so that some heartbeats may be lost. */
const HEARTBEAT_MS = 5000;
const SOCKET_HEARTBEAT_MS = 15_000;

/** Runs as {@link PullWorker.run} does. @throws {TypeError} when a handler or an option is wrong */
export async function runPuller<Job extends { type: string; args: readonly unknown[] }, Env>(
  worker: Puller,
  handlers: RunnableHandlers<Job, Env>,
  options: RunOptions<Env>,
  leases: Leases,
): Promise<void> {
  check(options?.signal instanceof AbortSignal, 'signal must be an AbortSignal, which ends the worker');
  refuseUnknown(options, RUN_OPTIONS, 'worker.run has no option');
  const leaseMs = leases.chosenMs ?? leases.defaultMs;
  const loaded = handlers instanceof URL ? await handlersIn(handlers) : handlers;
  const ready = runnable(loaded, options.log);
  const queueConcurrency = readQueueConcurrency(options.queueConcurrency, worker.queues);
  const {
    concurrency = options.threads ?? defaultConcurrency(queueConcurrency, worker.queues),
    waitMs = 5000,
    shutdownTimeoutMs = 30_000,
  } = options;
  const { heartbeatMs = Math.min(HEARTBEAT_MS, leaseMs / HEARTBEATS_IN_A_LEASE) } = options;
  const socketHeartbeatMs = options.heartbeatMs ?? Math.min(SOCKET_HEARTBEAT_MS, leaseMs / HEARTBEATS_IN_A_LEASE);
  const { socket = true, unhandled = 'leave', heartbeatThread = true } = options;
  check(isConcurrency(concurrency), 'concurrency must be a whole number of 1 to 100');
  check(waitMs >= 0, 'waitMs must not be negative');
  check(heartbeatMs > 0 && heartbeatMs <= leaseMs / 2, 'heartbeatMs must be at most half of visibilityTimeoutMs');
  check(unhandled === 'leave' || unhandled === 'deadLetter', "unhandled must be 'leave' or 'deadLetter'");
  check(shutdownTimeoutMs >= 0, 'shutdownTimeoutMs must not be negative');
  const onError = carefully(options.onError ?? ((error) => console.error(`worker ${worker.id}:`, error)));
  const threads =
    options.threads === undefined ? undefined : threadsFor(handlers, loaded, concurrency, options, onError);
  const runner = new Runner(worker, {
    ...ready,
    ...{ concurrency, queueConcurrency, waitMs, leases, shutdownTimeoutMs, socket, unhandled },
    ...{ heartbeatMs, socketHeartbeatMs, heartbeatThread, threads },
    env: options.env ?? {},
    signal: options.signal,
    onError,
  });
  try {
    await runner.run();
  } finally {
    await threads?.close(shutdownTimeoutMs);
  }
}

/** The handlers that a module exports. @throws {TypeError} when it exports none, and whatever loading it throws */
async function handlersIn(module: URL): Promise<RunnableHandlers<never>> {
  const { default: own, handlers } = (await import(module.href)) as { default?: unknown; handlers?: unknown };
  const found = own ?? handlers;
  check(found !== undefined, `${module.href} must export its handlers, as default or as handlers`);
  return found as RunnableHandlers<never>;
}

/** @throws {TypeError} when the handlers cannot run in threads */
function threadsFor<Env>(
  given: unknown,
  loaded: unknown,
  concurrency: number,
  { threads: count = 1, env, log: sink }: RunOptions<Env>,
  complain: (error: unknown) => void,
): Threads {
  check(isConcurrency(count), 'threads must be a whole number of 1 to 100');
  check(concurrency === count, 'with threads, each runs one job: omit concurrency');
  check(given instanceof URL, "threads need a module: new URL('./handlers.js', import.meta.url)");
  check(isServed(loaded), 'threads need a module that exports what defineHandlers returned');
  const { process } = globalThis as { process?: { env?: unknown } };
  const own = env === process?.env ? undefined : env;
  return new Threads({ module: (given as URL).href, count, env: own, sink, logAfterMs: LOG_AFTER_MS, complain });
}

const isServed = (loaded: unknown): boolean =>
  typeof loaded === 'object' &&
  loaded !== null &&
  (Reflect.get(loaded, RUNNABLE) as Runnable | undefined)?.serve !== undefined;

const MAX_CONCURRENCY = 100;

const isConcurrency = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_CONCURRENCY;

function readQueueConcurrency(given: object = {}, queues: readonly string[]): ReadonlyMap<string, number> {
  const entries = Object.entries(given);
  for (const [queue, value] of entries) {
    check(queues.includes(queue), `queueConcurrency names ${queue}, which is not one of its queues`);
    check(!isPool(queue), 'a pool chooses the queue itself: queueConcurrency cannot be used with it');
    check(isConcurrency(value), `the concurrency of queue ${queue} must be a whole number of 1 to ${MAX_CONCURRENCY}`);
  }
  return new Map(entries);
}

function defaultConcurrency(own: ReadonlyMap<string, number>, queues: readonly string[]): number {
  if (own.size === 0 || queues.some((queue) => !own.has(queue))) return 10;
  const all = [...own.values()].reduce((sum, one) => sum + one, 0);
  return Math.min(MAX_CONCURRENCY, all);
}

/** An error handler that throws or rejects must not end the worker. */
function carefully(onError: (error: unknown) => void): (error: unknown) => void {
  return (error) => {
    try {
      ignoreRejection(onError(error));
    } catch (own) {
      // Printing the value itself could throw again.
      console.error('onError threw:', messageOf(own));
    }
  };
}

function check(holds: boolean, problem: string): void {
  if (!holds) throw new TypeError(`worker.run: ${problem}`);
}
