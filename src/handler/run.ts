/**
 * Runs one delivery and returns its outcome. Whatever the handler does (throw, hang, return an invalid result), the
 * promise resolves, at the job's timeout at the latest. A batch is answered as a whole, so one hanging job would
 * otherwise take the other results down with it.
 */
import { CancelledError, type Control } from './control';
import { withChosenDelay } from './delay';
import { failureOf, isError, ResultTooLarge, TimeoutError, UnserialisableResult } from './failure';
import { createLogger, type Logger, type LogSink } from './log';
import type { Answer, BrokenDelivery, Delivery } from './protocol';
import { MAX_TIMEOUT_MS, type Registration, type Registry } from './registry';
import type { ExecutionContextLike, HandlerContext } from './types';

/** The limits of a run, in ms. */
export interface TimeLimits {
  /** When neither job nor handler sets one. */
  default: number;
  longest: number;
}

/** The limits of a pushed job, which the queue has too. */
const PUSHED: TimeLimits = { default: 30_000, longest: MAX_TIMEOUT_MS };
/** Largest result, in bytes of JSON. */
export const MAX_RESULT_BYTES = 1_048_576;

/** What surrounds a run: the request that brought the delivery, or the worker that fetched the job. */
export interface Host {
  env: unknown;
  executionCtx: ExecutionContextLike | undefined;
  /** Aborts when the caller disconnects, or the worker gives the job up. */
  signal: AbortSignal | undefined;
  /** Hears which jobs are cancelled, where the caller says so. */
  control?: Control | undefined;
  sink: LogSink;
  /** Default: those of a pushed job. */
  limits?: TimeLimits;
}

/** Runs a delivery. Never rejects. */
export async function runDelivery(
  delivery: Delivery | BrokenDelivery,
  registry: Registry,
  host: Host,
): Promise<Answer> {
  if (delivery.kind === 'broken') return failed('invalid_request', delivery.problem);
  const { job, attempt, deliveryId } = delivery;
  const log = createLogger(host.sink, { job_id: job.id, type: job.type, attempt, delivery_id: deliveryId });
  const registration = registry.find(job.type);
  if (!registration) {
    log.error('no handler registered for this job type');
    return failed('handler_not_found', `No handler registered for job type ${JSON.stringify(job.type)}.`);
  }
  try {
    const result = resultText(await withinTimeout(delivery, registration, host, log));
    return result === undefined ? { status: 'completed' } : { status: 'completed', result };
  } catch (thrown) {
    if (thrown instanceof CancelledError) {
      log.info('job cancelled');
      return failed('cancelled', thrown.message);
    }
    const failure = failureOf(thrown);
    log.error('job failed', { error_type: failure.type, error: failure.message, stack: stackOf(thrown) });
    return { status: 'failed', error: withChosenDelay(failure, thrown, registration.delay, job, attempt, log) };
  }
}

async function withinTimeout(
  delivery: Delivery,
  registration: Registration,
  host: Host,
  log: Logger,
): Promise<unknown> {
  const limit = timeoutOf(delivery, registration, host.limits ?? PUSHED);
  const controller = new AbortController();
  const hangUp = (): void => controller.abort(host.signal?.reason);
  if (host.signal?.aborted) hangUp();
  host.signal?.addEventListener('abort', hangUp, { once: true });
  let end: (error: Error) => void = () => undefined;
  const ended = new Promise<never>((_, reject) => {
    end = reject;
  });
  // A handler need not react to its signal: what it does afterwards is not waited for.
  const stop = (error: Error): void => {
    end(error);
    controller.abort(error);
  };
  const timer = setTimeout(() => stop(new TimeoutError(`The job did not finish within ${limit} ms.`)), limit);
  const unlisten = host.control?.onCancel(delivery.deliveryId, stop);
  let release: (() => void) | undefined;
  let over = false;
  const execute = async (): Promise<unknown> => {
    const give = await registration.slots?.acquire(Date.now() + limit, controller.signal);
    if (over) give?.();
    else release = give;
    return await registration.run(delivery.job, contextOf(delivery, host, controller.signal, log));
  };
  try {
    return await Promise.race([execute(), ended]);
  } finally {
    over = true;
    clearTimeout(timer);
    unlisten?.();
    host.signal?.removeEventListener('abort', hangUp);
    release?.();
  }
}

/** The job's limit, else the handler's, else the default; counted from the arrival of the delivery. */
function timeoutOf({ job }: Delivery, registration: Registration, limits: TimeLimits): number {
  const own: unknown = job.timeoutMs;
  const limit = typeof own === 'number' && own > 0 ? own : (registration.timeoutMs ?? limits.default);
  return Math.min(limit, limits.longest);
}

function contextOf(delivery: Delivery, host: Host, signal: AbortSignal, log: Logger): HandlerContext {
  return {
    job: delivery.job,
    attempt: delivery.attempt,
    deliveryId: delivery.deliveryId,
    env: host.env,
    signal,
    log,
    waitUntil: (promise) => host.executionCtx?.waitUntil(promise),
  };
}

/** A result as JSON text; undefined when there is none. @throws when it is not JSON, or too large. */
function resultText(result: unknown): string | undefined {
  let json: string | undefined;
  try {
    json = JSON.stringify(result);
  } catch (error) {
    throw new UnserialisableResult(`The result is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (json === undefined) return undefined;
  const bytes = new TextEncoder().encode(json).length;
  if (bytes <= MAX_RESULT_BYTES) return json;
  throw new ResultTooLarge(`The result has ${bytes} bytes; at most ${MAX_RESULT_BYTES} are kept.`);
}

function failed(code: string, message: string): Answer {
  return { status: 'failed', error: { code, type: code, message } };
}

function stackOf(thrown: unknown): string | undefined {
  try {
    return isError(thrown) ? thrown.stack : undefined;
  } catch {
    return undefined;
  }
}
