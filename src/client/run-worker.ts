/** A whole worker in one call: handlers, where the queue is, and the signals that end a process. */
import { TocsinClient } from './client';
import type { ClientOptions } from './options';
import type { WorkerOptions } from './pull-types';
import type { RunnableHandlers, RunOptions } from './run';

/** Each member of a union without some keys. */
type Without<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;

/** Which queue, which jobs, and how to run them. */
export type RunWorkerOptions<Env = unknown> = Without<ClientOptions, 'signal' | 'socket'> &
  WorkerOptions &
  Omit<RunOptions<Env>, 'signal'> & {
    /** The worker's name for itself. Default: made of the process's number and chance. */
    id?: string;
    /** Ends the worker. Default: SIGINT and SIGTERM do, where there is a process that gets them. */
    signal?: AbortSignal;
  };

/** The part of `process` that is used, in Node, Bun and Deno. */
interface ProcessLike {
  pid?: number;
  env?: Record<string, string | undefined>;
  once?(signal: string, listener: () => void): unknown;
  off?(signal: string, listener: () => void): unknown;
}

const SIGNALS = ['SIGINT', 'SIGTERM'];

/**
 * Pulls jobs and runs them until `signal` fires or, without one, the process is told to end. What it has begun is then
 * finished and reported, or given back. Handlers are those of a handler Worker: what `defineHandlers` returned, or a map.
 * `ctx.env` is the environment of the process, unless `env` is given.
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
  const host = (globalThis as { process?: ProcessLike }).process;
  const { id = nameOf(host), signal, ...rest } = options;
  const { queues, visibilityTimeoutMs, hostname, pid = host?.pid, concurrency, version, labels, ...more } = rest;
  const {
    waitMs,
    socket,
    unhandled,
    heartbeatMs,
    shutdownTimeoutMs,
    env = host?.env ?? {},
    log,
    onError,
    ...connection
  } = more;
  if (!Array.isArray(queues) || queues.length === 0) throw new TypeError('runWorker: queues must name at least one');
  const about = { queues, visibilityTimeoutMs, hostname, pid, concurrency, version, labels };
  const how = { concurrency, waitMs, socket, unhandled, heartbeatMs, shutdownTimeoutMs, env, log, onError };
  const end = signal ? { signal, forget: () => undefined } : processEnd(host);
  try {
    const worker = new TocsinClient(connection as ClientOptions).worker(id, given(about) as WorkerOptions);
    await worker.run<Env>(handlers, { ...given(how), signal: end.signal } as RunOptions<Env>);
  } finally {
    end.forget();
  }
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

function nameOf(host: ProcessLike | undefined): string {
  return `worker-${host?.pid ?? 0}-${Math.random().toString(36).slice(2, 8)}`;
}

/** Without the members that are undefined. */
function given<T extends object>(members: T): Partial<T> {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Partial<T>;
}
