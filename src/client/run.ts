/**
 * Runs a worker that pulls: fetches while there is room, extends leases, obeys directives, and finishes what it began.
 */
import type { Duration } from '../job/wire';
import type { Moment } from './job';
import { pause } from './retry';
import type { Directive } from './workers';

/** The error of a failed job. */
export interface JobFailure {
  /** Class of the error. */
  type?: string;
  message?: string;
  code?: string;
  /** Names of its class and those above it. */
  classes?: readonly string[];
  details?: unknown;
  retryable?: boolean;
  /** A dead letter at once. */
  kill?: boolean;
  /** When to run again, in place of the policy's own delay. Set one of the two at most. */
  retryIn?: Duration;
  retryAt?: Moment;
}

/** What a run needs of the worker that it runs: a `PullWorker`. */
export interface Puller<Job> {
  fetch(options: { count: number; waitMs: number }): Promise<Job[]>;
  ack(job: Job, result: unknown): Promise<unknown>;
  nack(job: Job, failure: JobFailure): Promise<unknown>;
  heartbeat(jobs: readonly Job[], state?: 'stopped'): Promise<{ state: Directive }>;
}

/** Handles jobs of each type. The return value is the result; an error is retried under the job's policy. */
export type WorkerHandlers<Job extends { type: string }> = {
  [Type in Job['type']]?: (job: Job & { type: Type }) => unknown;
};

/** How a worker runs. */
export interface RunOptions {
  /** Ends the worker; it finishes the jobs that it began. */
  signal: AbortSignal;
  /** Jobs at once, 1 … 100. Default 10. */
  concurrency?: number;
  /** How long a fetch waits for work, in ms. Ending may take that long too. Default 5000. */
  waitMs?: number;
  /** Between two heartbeats, in ms. Default 5000. */
  heartbeatMs?: number;
  /** Called with errors of fetches and reports. The worker goes on, and the lease of such a job runs out. */
  onError?: (error: unknown) => void;
}

/** Pause after a failed fetch, and between polls while the worker is quiet, in ms. */
const PAUSE_MS = 500;

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs until the signal fires or an operator says `terminate`, and every job that it began is reported. */
export async function runWorker<Job extends { id: string; type: string; attempt: number }>(
  worker: Puller<Job>,
  handlers: WorkerHandlers<Job>,
  { signal, concurrency = 10, waitMs = 5000, heartbeatMs = 5000, onError = () => undefined }: RunOptions,
): Promise<void> {
  // By attempt, not by id: a failed job may be handed out again before its report was answered.
  const held = new Map<Job, Promise<void>>();
  let told: Directive = 'running';

  const beat = async (): Promise<void> => {
    try {
      told = (await worker.heartbeat([...held.keys()])).state;
    } catch (error) {
      onError(error);
    }
  };
  const work = async (job: Job): Promise<void> => {
    const outcome = await handle(handlers, job);
    try {
      await ('failure' in outcome ? worker.nack(job, outcome.failure) : worker.ack(job, outcome.result));
    } catch (error) {
      onError(error);
    } finally {
      held.delete(job);
    }
  };
  const next = async (): Promise<void> => {
    if (told === 'quiet') return await pause({ sleep, signal }, PAUSE_MS);
    if (held.size >= concurrency) return await Promise.race(held.values());
    try {
      // A fetch is not aborted halfway: its jobs would wait for the end of their leases.
      const jobs = await worker.fetch({ count: concurrency - held.size, waitMs });
      for (const job of jobs) held.set(job, work(job));
    } catch (error) {
      onError(error);
      await pause({ sleep, signal }, PAUSE_MS);
    }
  };

  await beat();
  const beats = setInterval(() => void beat(), heartbeatMs);
  try {
    while (!signal.aborted && (told as Directive) !== 'terminate') await next();
    await Promise.all(held.values());
  } finally {
    clearInterval(beats);
  }
  await worker.heartbeat([], 'stopped').catch(onError);
}

async function handle<Job extends { type: string }>(
  handlers: WorkerHandlers<Job>,
  job: Job,
): Promise<{ result: unknown } | { failure: Error | JobFailure }> {
  const name: Job['type'] = job.type;
  const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined;
  if (!handler) return { failure: { type: 'no_handler', message: `This worker does not know ${job.type}.` } };
  try {
    return { result: await handler(job) };
  } catch (error) {
    return { failure: error instanceof Error ? error : { message: String(error) } };
  }
}
