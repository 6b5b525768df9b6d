/** How a run ended: its result as text, or the outcome that what was thrown stands for. */
import { MAX_RESULT_BYTES } from '../job/envelope/names';
import { MAX_DEPTH, nestingDepth } from '../job/envelope/nesting';
import { ignoreRejection, isA, messageOf } from '../job/thrown';
import { emptiedProblem } from '../producer/emptied';
import { tellHooks } from './around';
import { CancelledError } from './control';
import { durationMs } from './duration';
import {
  type Failure,
  failureOf,
  followsPolicy,
  isNonRetryable,
  stackOf,
  UnkeptResult,
  UnserialisableResult,
} from './failure';
import { type Journal, logEntry } from './journal';
import type { Logger } from './log';
import { isExpected, snoozeOf } from './outcomes';
import type { HandlerDelivery, Outcome } from './protocol';
import type { Registration, Registry } from './registry';
import { hasHalfCharacter, isOverflow } from './text';
import type { HandlerContext, Job, RetryFunction } from './types';

/**
 * The failure with the `retry_in` that its retry function chose. It stays unchanged in three cases: the thrown error
 * decides itself; the job's policy lists the error as not retryable (a named delay would outrank that list); the
 * function throws or returns no duration.
 * @param attempt the run that failed, from 1
 */
function withChosenDelay(
  failure: Failure,
  thrown: unknown,
  delay: RetryFunction | undefined,
  job: Job,
  attempt: number,
  log: Logger,
): Failure {
  if (delay === undefined || !followsPolicy(failure) || isNonRetryable(failure, job)) return failure;
  let answer: unknown;
  try {
    answer = delay(attempt - 1, thrown);
  } catch (error) {
    log.error('the retry function threw; the queue decides the delay', { error: messageOf(error) });
    return failure;
  }
  // An async function would leave an unhandled rejection.
  ignoreRejection(answer);
  const ms = durationMs(answer);
  if (ms === undefined) {
    log.error('the retry function did not return a duration; the queue decides the delay', {
      answer: messageOf(answer),
    });
    return failure;
  }
  return { ...failure, retry_in: ms };
}

const TOO_DEEP = `The result nests more than ${MAX_DEPTH} levels deep.`;
const NOT_TEXT =
  'The result contains a lone surrogate: half of a character such as an emoji, cut in two. Cut texts with toWellFormed().';

/** Hooks may take what is left of the time limit, and this much longer, in ms: the queue waits a second for a batch. */
const HOOKS_BEYOND_MS = 500;

export interface EndedRun {
  delivery: HandlerDelivery;
  registration: Registration;
  registry: Registry;
  host: { call: { readonly signal: AbortSignal } | undefined };
  log: () => Logger;
  journal: Pick<Journal, 'add'>;
  ctx: HandlerContext;
  /** When its time is up, epoch ms. */
  deadline: number;
}

/** The outcome of what a handler threw; the hooks of failures have received it. */
export async function outcomeOfThrown(thrown: unknown, run: EndedRun): Promise<Outcome> {
  const { delivery, registration, registry, host, journal, ctx } = run;
  const { job, attempt } = delivery;
  if (isA(thrown, CancelledError)) {
    run.log().info('job cancelled');
    return failed('cancelled', thrown.message);
  }
  // A promise may be thrown, too.
  ignoreRejection(thrown);
  const snooze = snoozeOf(thrown);
  if (snooze !== undefined) {
    const message = messageOf(thrown);
    run.log().info('job snoozed', { reason: message, in_ms: snooze });
    journal.add(logEntry(Date.now(), 'info', message, {}));
    return { status: 'snoozed', in: snooze };
  }
  const log = run.log();
  const failure = withChosenDelay(failureOf(thrown), thrown, registration.delay, job, attempt, log);
  const said = { error_type: failure.type, error: failure.message };
  if (isExpected(thrown)) log.info('job ended by its handler', { ...said, code: failure.code });
  else log.error('job failed', { ...said, stack: stackOf(thrown) });
  if (!host.call?.signal.aborted) {
    const patience = Math.max(0, run.deadline - Date.now()) + HOOKS_BEYOND_MS;
    await tellHooks(registry.around, { job, ctx, thrown, failure, attempt }, patience, (name, error) =>
      log.error(`${name} threw`, { error: messageOf(error), stack: stackOf(error) }),
    );
  }
  return { status: 'failed', error: failure };
}

/** A result as JSON text; undefined: there is none. @throws {UnkeptResult} {@link UnserialisableResult} */
export function resultText(result: unknown): string | undefined {
  const problem = emptiedProblem(result, 'The result');
  if (problem !== undefined) throw new UnserialisableResult(problem);
  let json: string | undefined;
  try {
    json = JSON.stringify(result);
  } catch (error) {
    if (isOverflow(error)) throw new UnkeptResult('result_too_deep', TOO_DEEP);
    throw new UnserialisableResult(`The result is not JSON: ${messageOf(error)}`);
  }
  if (json === undefined) return undefined;
  const bytes = new TextEncoder().encode(json).length;
  if (bytes > MAX_RESULT_BYTES) {
    throw new UnkeptResult('result_too_large', `The result has ${bytes} bytes, at most ${MAX_RESULT_BYTES} are kept.`);
  }
  if (nestingDepth(json, MAX_DEPTH) > MAX_DEPTH) throw new UnkeptResult('result_too_deep', TOO_DEEP);
  if (hasHalfCharacter(json)) throw new UnkeptResult('result_not_text', NOT_TEXT);
  return json;
}

export function failed(code: string, message: string): Outcome {
  return { status: 'failed', error: { code, type: code, message } };
}
