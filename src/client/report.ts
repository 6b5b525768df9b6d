/** Reports of workers: how an attempt ended, and the queue's answer. */
import type * as contract from '../contract/pull';
import { resultText } from '../handler/ended';
import { failureOf } from '../handler/failure';
import { snoozeOf } from '../handler/outcomes';
import type { DeliveryOutcome } from '../handler/protocol';
import type { StepRecord } from '../handler/step-rules';
import { isError } from '../job/thrown';
import type { FailureReport, StepRun } from '../job/wire';
import type { Duration, JobEnvelope } from '../producer/envelope';
import { errorFor, type TocsinError } from '../producer/errors';
import { jsonOf, type Moment, momentText } from '../producer/job';
import { type Named, named } from '../producer/names';
import { malformed, member } from './answers';
import type { RecordedStep } from './pull-types';

/** A report without the attempt that it names. */
export interface Report {
  action: contract.Report['action'];
  content: Record<string, unknown>;
}

/** A report of a job that runs. */
export type Note = Report & { action: Exclude<Report['action'], 'ack' | 'nack'> };

export type Held = Pick<JobEnvelope, 'id' | 'attempt' | 'deliveryId'> & Partial<Pick<JobEnvelope, 'queue'>>;

type Reported = Named<FailureReport>;

/** The error of a failed job. */
export interface JobFailure extends Omit<Reported, 'classes' | 'retryIn' | 'retryAt'> {
  /** Names of its class and those above it. */
  classes?: readonly string[];
  /** When to run again, in place of the policy's own delay. Set one of the two at most. */
  retryIn?: Duration;
  retryAt?: Moment;
}

/** Writes what was thrown, verdicts such as `retryIn('30s')` included, or a description. */
export function wireFailure(error: Error | JobFailure): object {
  if (isError(error)) return failureOf(error);
  const { retryIn, retryAt, ...members } = error;
  return { ...members, retryIn, retryAt: momentText(retryAt, 'retryAt') };
}

export interface EndedJob {
  job: Held;
  result?: unknown;
  /** What was thrown, such as `retryIn('30s')` of `tocsin/handler`, or a description. */
  error?: Error | JobFailure;
}

export interface SentReport {
  jobId: string;
  /** The queue of its job, where that is known. */
  queue: string | undefined;
  /** Does it end the attempt? */
  isEnd: boolean;
  /** Its JSON text. */
  text: string;
}

type Taken = Named<contract.ReportTaken>;

/** What the queue made of one report among several. */
export type ReportOutcome =
  | (Pick<Taken, 'status' | 'state' | 'attempt' | 'stepOmitted' | 'nextAttemptAt' | 'scheduledAt'> & {
      jobId: string;
      /** What was on record of a step already; that has won. */
      step?: RecordedStep;
      error?: never;
    })
  /** It was refused, as {@link PullWorker.ack} would have been. */
  | { jobId: string; status: contract.ReportRefused['status']; error: TocsinError };

export function reportOf(answer: DeliveryOutcome): Report {
  const { log } = answer;
  if (answer.status === 'completed') {
    const result: unknown = answer.result === undefined ? undefined : JSON.parse(answer.result);
    return { action: 'ack', content: { result, log } };
  }
  if (answer.status === 'failed') return { action: 'nack', content: { error: answer.error, log } };
  const back = { requeue: true, attemptUsed: false };
  if (answer.status === 'again') return { action: 'nack', content: back };
  const { in: ms, until, signal, runs, steps } = answer;
  return { action: 'nack', content: { ...back, snooze: { in: ms, until, signal, runs, steps }, log } };
}

export function reportOfEnded({ result, error }: EndedJob): Report {
  const snooze = error === undefined ? undefined : snoozeOf(error);
  if (snooze !== undefined) return reportOf({ status: 'snoozed', in: snooze });
  if (error !== undefined) return { action: 'nack', content: { error: wireFailure(error) } };
  try {
    resultText(result);
  } catch (thrown) {
    // The others are not refused with it.
    return { action: 'nack', content: { error: failureOf(thrown) } };
  }
  return { action: 'ack', content: { result } };
}

/** A report as it is written among others; the request names the worker. */
export function writeReport({ id, attempt, deliveryId, queue }: Held, { action, content }: Report): SentReport {
  const text = jsonOf({ action, jobId: id, attempt, deliveryId, ...content }, 'The report');
  return { jobId: id, queue, isEnd: action === 'ack' || action === 'nack', text };
}

/** The end of a handler's run as a report; most have succeeded, and their results are JSON text already. */
export function writeAnswer(job: Held, answer: DeliveryOutcome): SentReport {
  if (answer.status !== 'completed' || answer.log) return writeReport(job, reportOf(answer));
  const { id, attempt, deliveryId, queue } = job;
  const delivery = deliveryId === undefined ? '' : `,"delivery_id":${JSON.stringify(deliveryId)}`;
  const result = answer.result === undefined ? '' : `,"result":${answer.result}`;
  const text = `{"action":"ack","job_id":${JSON.stringify(id)},"attempt":${attempt}${delivery}${result}}`;
  return { jobId: id, queue, isEnd: true, text };
}

/** The outcomes in an answer, in the order of the reports. @throws {UnavailableError} when there are more or fewer */
export function outcomesOf(answer: unknown, jobIds: readonly string[]): ReportOutcome[] {
  const items = member(answer, 'items');
  if (!Array.isArray(items) || items.length !== jobIds.length) throw malformed('the outcomes');
  return items.map((item: unknown, index): ReportOutcome => {
    const jobId = jobIds[index] as string;
    if (member(item, 'status') === 'done') return { ...(item as ReportOutcome & { status: 'done' }), jobId };
    return { jobId, status: 'failed', error: refusalOf(member(item, 'error')) };
  });
}

/** What was recorded of a step before; undefined: nothing was. */
export function stepRecordOf({ result, error, signal, timedOut, until, run }: RecordedStep): StepRecord | undefined {
  // No name of it has two words.
  const of = run && { run: run as StepRun };
  if (signal !== undefined) return { signal };
  if (timedOut !== undefined) return { timed_out: timedOut, ...of };
  if (until !== undefined) return { until, ...of };
  if (error !== undefined) return { error, ...of };
  return result === undefined ? undefined : { result, ...of };
}

/** The error of a report as if it had been sent alone. */
export function refusalOf(error: unknown): TocsinError {
  const text = (name: string, other: string) => String(member(error, name) ?? other);
  const status = Number(member(error, 'status') ?? 500);
  const retryable = member(error, 'retryable') === true;
  const retryAfterMs = member(error, 'retryAfterMs');
  const hint = member(error, 'hint');
  return errorFor(text('message', 'It was rejected.'), {
    status,
    code: text('code', 'backend_error'),
    retryable,
    details: named(member(error, 'details') ?? {}) as Record<string, unknown>,
    ...(typeof retryAfterMs === 'number' && { retryAfterMs }),
    ...(typeof hint === 'string' && { hint }),
    outcomeUnknown: status >= 500 && retryable && retryAfterMs === undefined,
  });
}
