/** A whole worker in one call: handlers, where the queue is, and the signals that end a process. */
import { namesOf, refuseUnknown } from '../producer/known';
import { TocsinClient } from './client';
import { CLIENT_OPTIONS, type ClientOptions } from './options';
import type { RunnableHandlers, RunOptions, WorkerOptions } from './pull-types';
import { RUN_OPTIONS } from './run';

/** `Omit` that distributes over a union. */
type Without<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

export interface QueueOptions {
  /** Jobs at once, 1 … 100. Default: what the worker's `concurrency` allows. */
  concurrency?: number | undefined;
}

export type RunWorkerOptions<Env = unknown> = Without<ClientOptions, 'signal' | 'socket'> &
  Omit<WorkerOptions, 'queues'> &
  Omit<RunOptions<Env>, 'signal' | 'queueConcurrency'> & {
    /** Queues, the first ones first; or with concurrency each: `{ mail: 5, video: { concurrency: 1 } }`. */
    queues: readonly string[] | Readonly<Record<string, number | QueueOptions>>;
    /** The worker's name for itself. Default: made of the process's number and chance. */
    id?: string | undefined;
    /** Ends the worker. Default: SIGINT and SIGTERM do, where there is a process that gets them. */
    signal?: AbortSignal | undefined;
  };

/** The part of `process` that is used, in Node, Bun and Deno. */
interface ProcessLike {
  pid?: number;
  env?: Record<string, string | undefined>;
  once?(signal: string, listener: () => void): unknown;
  off?(signal: string, listener: () => void): unknown;
}

const SIGNALS = ['SIGINT', 'SIGTERM'];
const WORKER_OPTIONS = namesOf<WorkerOptions>({
  ...{ queues: true, visibilityTimeoutMs: true, hostname: true, pid: true, concurrency: true },
  ...{ version: true, labels: true },
});
const RUN_WORKER_OPTIONS: ReadonlySet<string> = new Set(['id', ...WORKER_OPTIONS, ...RUN_OPTIONS, ...CLIENT_OPTIONS]);
const QUEUE_OPTIONS = namesOf<QueueOptions>({ concurrency: true });

/**
 * Pulls jobs and runs them until `signal` fires or, without one, the process is asked to stop. What it has begun is
 * then finished and reported, or given back. Handlers are those of a handler Worker: what `defineHandlers` returned, or
 * a map. `ctx.env` is the environment of the process, unless `env` is given.
 * @throws {TypeError} when a handler or an option is wrong
 * @throws {UnauthorizedError} when the key is refused before any fetch was answered
 * @example
 * await runWorker(handlers, { url: 'https://queue.example.com', key: process.env.TOCSIN_KEY, queues: ['mail'] });
 */
export async function runWorker<Env = unknown>(
  // biome-ignore lint/suspicious/noExplicitAny: handlers of jobs of any types
  handlers: RunnableHandlers<any, Env>,
  options: RunWorkerOptions<Env>,
): Promise<void> {
  refuseUnknown(options, RUN_WORKER_OPTIONS, 'runWorker has no option');
  const host = (globalThis as { process?: ProcessLike }).process;
  const { id = nameOf(host), signal } = options;
  const { queues, queueConcurrency } = readQueues(options.queues);
  const about = { pid: host?.pid, ...pick(options, WORKER_OPTIONS), queues } as WorkerOptions;
  const how = { env: host?.env ?? {}, ...pick(options, RUN_OPTIONS), ...(queueConcurrency && { queueConcurrency }) };
  // A worker takes jobs over sockets, and enqueues over HTTP.
  const { socket: _, signal: __, ...connection } = pick(options, CLIENT_OPTIONS);
  const end = signal ? { signal, forget: () => undefined } : processEnd(host);
  try {
    const worker = new TocsinClient(connection as ClientOptions).worker(id, about);
    await worker.run<Env>(handlers, { ...how, signal: end.signal } as RunOptions<Env>);
  } finally {
    end.forget();
  }
}

function readQueues(named: unknown): Pick<RunOptions, 'queueConcurrency'> & Pick<WorkerOptions, 'queues'> {
  const isList = Array.isArray(named);
  const queues: readonly string[] = isList ? named : Object.keys(named ?? {});
  if (queues.length === 0) throw new TypeError('runWorker: queues must name at least one');
  const own = Object.entries(isList ? {} : (named as Record<string, number | QueueOptions>)).flatMap(([queue, how]) => {
    if (typeof how === 'object' && how !== null)
      refuseUnknown(how, QUEUE_OPTIONS, `runWorker: queue ${queue} has no option`);
    const concurrency = typeof how === 'object' && how !== null ? how.concurrency : how;
    return concurrency === undefined ? [] : [[queue, concurrency]];
  });
  return { queues, ...(own.length > 0 && { queueConcurrency: Object.fromEntries(own) }) };
}

/** Fires at the first signal that asks the process to end; a second one ends it at once. */
function processEnd(host: ProcessLike | undefined): { signal: AbortSignal; forget: () => void } {
  const controller = new AbortController();
  const end = (): void => controller.abort();
  for (const name of SIGNALS) host?.once?.(name, end);
  const forget = (): void => {
    for (const name of SIGNALS) host?.off?.(name, end);
  };
  controller.signal.addEventListener('abort', forget, { once: true });
  return { signal: controller.signal, forget };
}

const nameOf = (host: ProcessLike | undefined): string =>
  `worker-${host?.pid ?? 0}-${Math.random().toString(36).slice(2, 8)}`;

const pick = (members: object, names: ReadonlySet<string>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(members).filter(([name, value]) => names.has(name) && value !== undefined));
