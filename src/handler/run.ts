/**
 * Runs one delivery and returns its outcome. Whatever the handler does (throw, hang, return an invalid result), the
 * promise resolves, at the job's timeout at the latest. A batch is answered as a whole, so one hanging job would
 * otherwise take the other results down with it.
 */
import { jobIds } from '../producer/id';
import { tellHooks } from './around';
import { contextOf } from './context';
import { CancelledError, type Control } from './control';
import { Deadlines } from './deadlines';
import { withChosenDelay } from './delay';
import { failureOf, ResultTooLarge, stackOf, TimeoutError, UnserialisableResult } from './failure';
import { Journal, logEntry } from './journal';
import { createLogger, type Logger, type LogSink } from './log';
import { isExpected, snoozeOf } from './outcomes';
import { type BrokenDelivery, type DeliveryOutcome, type HandlerDelivery, type Outcome, stepsOf } from './protocol';
import { MAX_TIMEOUT_MS, type Registration, type Registry } from './registry';
import { RunSignal } from './run-signal';
import { AT_ONCE } from './step-rules';
import { Steps, type Suspension } from './steps';
import type { ExecutionContextLike, HandlerContext } from './types';
import { AnswerVoice, Notes, type Voice } from './voice';

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

/** Hooks may take what is left of the time limit, and this much longer, in ms: the queue waits a second for a batch. */
const HOOKS_BEYOND_MS = 500;

/** Chooses the ids of jobs that are enqueued with an answer. */
export const newId = jobIds(Date.now, Math.random);

/** What surrounds a run: the request that brought the delivery, or the worker that fetched the job. */
export interface Host {
  env: unknown;
  executionCtx: ExecutionContextLike | undefined;
  /** Aborts when the caller disconnects, or the worker gives the job up. */
  call: { readonly signal: AbortSignal } | undefined;
  /** Aborts when the worker that pulled the job ends. Default: never. */
  draining?: { readonly signal: AbortSignal } | undefined;
  /** Hears which jobs are cancelled, where the caller says so. */
  control?: Control | undefined;
  /** How a run speaks before its end. Default: with its answer. */
  voice?: ((delivery: HandlerDelivery, notes: Notes) => Voice) | undefined;
  sink: LogSink;
  /** The queue's time, epoch ms. Default: counted from the job's claim. */
  queueNow?: () => number;
  /** Default: those of a pushed job. */
  limits?: TimeLimits;
  /** Shared by runs that begin together. */
  deadlines?: Deadlines;
}

/** Runs a delivery. Never rejects. */
export async function runDelivery(
  delivery: HandlerDelivery | BrokenDelivery,
  registry: Registry,
  host: Host,
): Promise<DeliveryOutcome> {
  if (delivery.kind === 'broken') return failed('invalid_request', delivery.problem);
  const { job, attempt, deliveryId } = delivery;
  const bound = { job_id: job.id, type: job.type, attempt, delivery_id: deliveryId };
  // Most runs have nothing to say themselves.
  const log = () => createLogger(host.sink, bound);
  const registration = registry.find(job.type);
  if (!registration) {
    log().error('no handler registered for this job type');
    return failed('handler_not_found', `No handler registered for job type ${JSON.stringify(job.type)}.`);
  }
  const notes = new Notes();
  const voice: Voice = host.voice?.(delivery, notes) ?? new AnswerVoice('with the answer', notes, newId);
  const journal = new Journal(voice.log?.bind(voice), voice.logAfterMs);
  const steps = new Steps(stepsOf(job), voice, notes, host.queueNow ?? queueClock(job.startedAt, Date.now()));
  const run = { delivery, registration, registry, host, log, journal, steps, isOpen: true };
  const aborter = new RunSignal(host.call);
  const { env, executionCtx, sink, draining = new RunSignal() } = host;
  const defaultsOf = (type: string) => registry.defaultsOf(type);
  const parts = { delivery, env, executionCtx, aborter, draining, sink, bound, journal, steps, voice, defaultsOf };
  const ctx = contextOf({ ...parts, isOpen: () => run.isOpen });
  const outcome = await outcomeOf(run, ctx, aborter);
  run.isOpen = false;
  return Object.assign(outcome, notes.remarks(outcome.status, journal.take()));
}

/** A run and what it needs. */
interface Run {
  delivery: HandlerDelivery;
  registration: Registration;
  registry: Registry;
  host: Host;
  log: () => Logger;
  journal: Journal;
  steps: Steps;
  isOpen: boolean;
}

async function outcomeOf(run: Run, ctx: HandlerContext, aborter: RunSignal): Promise<Outcome> {
  const { delivery, registration, registry, host, journal, steps } = run;
  const { job, attempt } = delivery;
  const limit = timeoutOf(delivery, registration, host.limits ?? PUSHED);
  const deadline = Date.now() + limit;
  try {
    const value = await withinTimeout(run, ctx, aborter, limit);
    if (steps.suspension) return suspended(steps.suspension);
    const result = resultText(value);
    return result === undefined ? { status: 'completed' } : { status: 'completed', result };
  } catch (thrown) {
    if (thrown instanceof CancelledError) {
      run.log().info('job cancelled');
      return failed('cancelled', thrown.message);
    }
    // Middleware that continues although the run is suspended changes nothing, unless a step hangs.
    if (thrown instanceof TimeoutError && steps.suspension && !steps.busy) return suspended(steps.suspension);
    const snooze = snoozeOf(thrown);
    if (snooze !== undefined) {
      const message = (thrown as Error).message;
      run.log().info('job snoozed', { reason: message, in_ms: snooze });
      journal.add(logEntry(Date.now(), 'info', message, {}));
      return { status: 'snoozed', in: snooze };
    }
    const log = run.log();
    const failure = withChosenDelay(failureOf(thrown), thrown, registration.delay, job, attempt, log);
    const said = { error_type: failure.type, error: failure.message };
    if (isMeant(thrown)) log.info('job ended by its handler', { ...said, code: failure.code });
    else log.error('job failed', { ...said, stack: stackOf(thrown) });
    if (!host.call?.signal.aborted) {
      const patience = Math.max(0, deadline - Date.now()) + HOOKS_BEYOND_MS;
      await tellHooks(registry.around, { job, ctx, thrown, failure, attempt }, patience, (name, error) =>
        log.error(`${name} threw`, { error: String(error), stack: stackOf(error) }),
      );
    }
    return { status: 'failed', error: failure };
  } finally {
    steps.close();
  }
}

function suspended(suspension: Suspension): Outcome {
  if (suspension.kind === 'again') return { status: 'again' };
  const { until, signal } = suspension.pause;
  return { status: 'snoozed', ...(until === AT_ONCE ? { in: 0 } : { until }), ...(signal !== undefined && { signal }) };
}

/** Is it what the handler meant, such as a retry at a time? */
function isMeant(thrown: unknown): boolean {
  try {
    return typeof thrown === 'object' && thrown !== null && isExpected(thrown);
  } catch {
    return false;
  }
}

/**
 * The queue's time during a run: that of its claim, and what has passed here since. A queue whose clock differs from
 * this machine's would otherwise begin runs too early for their sleeps.
 * @param arrived when the run began here, epoch ms
 */
function queueClock(claimedAt: string | undefined, arrived: number): () => number {
  return () => {
    const claimed = Date.parse(claimedAt ?? '');
    return Date.now() + (Number.isNaN(claimed) ? 0 : claimed - arrived);
  };
}

async function withinTimeout(
  { delivery, registration, host, steps }: Run,
  ctx: HandlerContext,
  aborter: RunSignal,
  limit: number,
): Promise<unknown> {
  let stopped: Error | undefined;
  let end: ((error: Error) => void) | undefined;
  // A handler need not react to its signal: what it does afterwards is not waited for.
  const stop = (error: Error): void => {
    stopped ??= error;
    end?.(error);
    aborter.abort(error);
  };
  const unlisten = host.control?.onCancel(delivery.deliveryId, stop);
  let release: (() => void) | undefined;
  let over = false;
  const execute = async (): Promise<unknown> => {
    if (registration.slots) {
      const give = await registration.slots.acquire(Date.now() + limit, aborter.signal);
      if (over) give();
      else release = give;
    }
    const guard = (handler: Promise<unknown>): Promise<unknown> => steps.guard(handler);
    return await toTheEnd(() => registration.run(delivery.job, ctx, guard), steps);
  };
  const ended = new Promise((resolve, reject) => {
    end = reject;
    if (stopped) reject(stopped);
    execute().then(resolve, reject);
  });
  // Only now that the handler has begun: to set a timer takes a while.
  const { deadlines = new Deadlines() } = host;
  const unwatch = deadlines.watch(limit, () => stop(new TimeoutError(`The job did not finish within ${limit} ms.`)));
  try {
    return await ended;
  } finally {
    over = true;
    unwatch();
    unlisten?.();
    aborter.end();
    release?.();
  }
}

/**
 * Runs the handler, and waits for the steps that it began. A run that was suspended has no other end, whatever the
 * middleware around it returns or throws; but a step that fails meanwhile is a failure of the attempt.
 */
async function toTheEnd(run: () => unknown, steps: Steps): Promise<unknown> {
  let thrown: { thrown: unknown } | undefined;
  let result: unknown;
  try {
    result = await run();
  } catch (error) {
    thrown = { thrown: error };
  }
  const own = steps.suspension ? undefined : thrown;
  steps.close();
  if (steps.busy) await steps.settle();
  const failure = own ?? steps.failure;
  if (failure) throw failure.thrown;
  return result;
}

/** The job's limit, else the handler's, else the default; counted from the arrival of the delivery. */
export function timeoutOf({ job }: HandlerDelivery, registration: Registration, limits: TimeLimits): number {
  const own: unknown = job.timeoutMs;
  const limit = typeof own === 'number' && own > 0 ? own : (registration.timeoutMs ?? limits.default);
  return Math.min(limit, limits.longest);
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

function failed(code: string, message: string): Outcome {
  return { status: 'failed', error: { code, type: code, message } };
}
