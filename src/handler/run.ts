/**
 * Runs one delivery and returns its outcome. Whatever the handler does (throw, hang, return an invalid result), the
 * promise resolves, at the job's timeout at the latest. A batch is answered as a whole, so one hanging job would
 * otherwise take the other results down with it.
 */
import { isA } from '../job/thrown';
import { jobIds } from '../producer/id';
import { contextOf } from './context';
import { type EndedRun, failed, outcomeOfThrown, resultText } from './ended';
import { TimeoutError } from './failure';
import { type Host, PUSHED, timeoutOf } from './host';
import { Journal, logEntry } from './journal';
import { createLogger } from './log';
import { UnrecoverableError } from './outcomes';
import { type BrokenDelivery, type DeliveryOutcome, type HandlerDelivery, type Outcome, stepsOf } from './protocol';
import type { Registry } from './registry';
import { runChunk } from './run-chunk';
import { RunSignal } from './run-signal';
import { AT_ONCE } from './step-rules';
import { Steps, type Suspension } from './steps';
import { TimeLimit } from './time-limit';
import type { HandlerContext } from './types';
import { answerVoice, Notes, type Voice } from './voice';
import { withinLimits } from './within-limits';

/** Chooses the ids of jobs that are enqueued with an answer. */
export const newId = jobIds(Date.now, Math.random);

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
  if (registration.chunk) {
    const [outcome] = await runChunk([delivery], registration, registry, host);
    return outcome as DeliveryOutcome;
  }
  const notes = new Notes();
  const voice: Voice = host.voice?.(delivery, notes) ?? answerVoice('with the answer', notes, newId);
  const journal = new Journal(voice.log?.bind(voice), voice.logAfterMs);
  const limit = timeoutOf(delivery, registration, host.limits ?? PUSHED);
  const aborter = new RunSignal(host.call);
  const isAborted = () => aborter.isAborted || host.call?.signal.aborted === true;
  const steps = new Steps(stepsOf(job), voice, notes, host.queueNow ?? queueClock(job.startedAt, Date.now()), {
    ...{ jobId: job.id, aborter, limitMs: limit, isAborted },
    canUndo: registration.canUndo ?? (() => false),
    warn: (message) => {
      log().warn(message);
      journal.add(logEntry(Date.now(), 'warn', message, {}));
    },
  });
  const time = new TimeLimit(limit, `The job did not finish within ${limit} ms.`);
  const run = { delivery, registration, registry, host, log, journal, steps, time, isOpen: true };
  const { env, executionCtx, sink, draining = new RunSignal() } = host;
  const defaultsOf = (type: string) => registry.defaultsOf(type);
  const parts = { ...run, env, executionCtx, aborter, draining, sink, bound, voice, defaultsOf };
  const ctx = contextOf({ ...parts, isOpen: () => run.isOpen });
  const outcome = await outcomeOf(run, ctx, aborter);
  run.isOpen = false;
  return Object.assign(outcome, notes.remarks(outcome.status, journal.take()));
}

interface Run extends Omit<EndedRun, 'ctx' | 'deadline'> {
  host: Host;
  journal: Journal;
  steps: Steps;
  time: TimeLimit;
  isOpen: boolean;
}

async function outcomeOf(run: Run, ctx: HandlerContext, aborter: RunSignal): Promise<Outcome> {
  const { steps, time } = run;
  try {
    const value = await called(run, ctx, aborter);
    const drift = steps.suspension?.kind === 'again' ? undefined : driftIn(run);
    if (drift) throw drift;
    if (steps.suspension) return suspended(steps.suspension, steps);
    const result = resultText(value);
    return result === undefined ? { status: 'completed' } : { status: 'completed', result };
  } catch (thrown) {
    // Nothing changes if middleware continues although the run is suspended, or a step that lost a race does.
    const isLate = isA(thrown, TimeoutError);
    const suspension = isLate && !steps.busy ? steps.suspend() : undefined;
    const drift = suspension?.kind === 'pause' ? driftIn(run) : undefined;
    if (suspension && !drift) return suspended(suspension, steps);
    const error = drift ?? (isLate && steps.stuck ? new TimeoutError(thrown.message + steps.stuck) : thrown);
    return await outcomeOfThrown(error, { ...run, ctx, deadline: time.deadline });
  } finally {
    steps.close();
  }
}

/**
 * Warns that the code has changed since the names were recorded, or makes other names each time.
 * @returns the end of the job, where its handler wants that
 */
function driftIn({ steps, log, journal, registration }: Run): UnrecoverableError | undefined {
  const { message, names: drift } = steps.drift ?? {};
  if (message === undefined) return undefined;
  log().warn(message);
  journal.add(logEntry(Date.now(), 'warn', message, { drift }));
  return registration.onDrift === 'fail' ? new UnrecoverableError(message) : undefined;
}

function suspended(suspension: Suspension, { runs }: Steps): Outcome {
  if (suspension.kind === 'again') return { status: 'again' };
  const { until, signal } = suspension.pause;
  return {
    status: 'snoozed',
    // The time of jobs that have not begun is set by the queue.
    ...(until === AT_ONCE ? { in: 0 } : Number.isFinite(until) && { until }),
    ...(signal !== undefined && { signal }),
    ...(runs.length > 0 && { runs }),
  };
}

/** The queue's time in a run that began here at `arrived`, epoch ms: that of its claim, and what has passed since. */
function queueClock(claimedAt: string | undefined, arrived: number): () => number {
  return () => {
    const claimed = Date.parse(claimedAt ?? '');
    return Date.now() + (Number.isNaN(claimed) ? 0 : claimed - arrived);
  };
}

function called({ delivery, registration, host, steps, time }: Run, ctx: HandlerContext, aborter: RunSignal) {
  const guard = (handler: Promise<unknown>): Promise<unknown> => steps.guard(handler);
  return withinLimits(
    { registration, host, aborter, time },
    (stop) => [host.control?.onCancel(delivery.deliveryId, stop)],
    () => toTheEnd(() => registration.run(delivery.job, ctx, guard), steps),
  );
}

/** Runs the handler and waits for its steps. A suspended run has no other end, unless one of its steps fails. */
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
  const unwritten = await steps.closeStreams().then(
    () => undefined,
    (error: unknown) => ({ thrown: error }),
  );
  const failure = own ?? steps.failure ?? unwritten;
  if (failure) throw failure.thrown;
  steps.awaitTries();
  return result;
}
