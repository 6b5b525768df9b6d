/** Explains in a few lines what a job waits for, or how it ended. */
import type { JobLogLine, JobProgress, JobStep } from '../client/jobs';
import type { WaitingReason } from '../job/waiting';
import type { EnvelopeWaiting, JobEnvelope } from '../producer/envelope';
import { lengthText, lineOf, readable, shellWord, textOf, timeText, whenText } from './output';

/** The explanation, as `--json` shows it beside the job. */
export interface Explanation {
  reason: string;
  text: string;
  since?: string;
  until?: string;
  hint?: string;
}

/** Why this job does not run, or how it ended. @param steps on record */
export function explain(job: JobEnvelope, steps: Record<string, JobStep>, now: number): Explanation {
  const { waitingFor } = job;
  if (waitingFor === undefined) return fromState(job, now);
  const { reason, since, until, detail } = waitingFor;
  // A sleep on record keeps its moment: woken earlier, the handler would sleep again.
  const isKept = reason === 'snoozed' && Object.values(steps).some((step) => (step.until ?? 0) > Date.parse(since));
  const hint = isKept ? undefined : COMMANDS[reason]?.(job, waitingFor);
  return { reason, text: readable(detail, now), since, ...(until && { until }), ...(hint && { hint }) };
}

const COMMANDS: { [Reason in WaitingReason]?: (job: JobEnvelope, waiting: EnvelopeWaiting) => string | undefined } = {
  queue_paused: ({ queue }) => `tocsin queues resume ${queue}`,
  retry: ({ id }) => `tocsin retry ${id}`,
  pending: ({ id }) => `tocsin activate ${id}`,
  delayed: ({ id }) => `tocsin reschedule ${id}`,
  snoozed: ({ id }) => `tocsin reschedule ${id}`,
  signal: ({ id }, { signal }) => signal && `tocsin signal ${id} ${shellWord(signal)}`,
  handler_down: (_, { target }) => target && `tocsin targets resume ${shellWord(target)}`,
};

function fromState(job: JobEnvelope, now: number): Explanation {
  if (job.state === 'active') {
    const { workerId, attempt, maxAttempts, lastHeartbeatAt, leaseExpiresAt } = job;
    const seen = lastHeartbeatAt ? ` Its worker was last seen ${whenText(lastHeartbeatAt, now)}.` : '';
    const text = `It is running${workerId ? ` at ${workerId}` : ''}, attempt ${attempt} of ${maxAttempts}.${seen}`;
    const { startedAt: since } = job;
    return { reason: 'running', text, ...(since && { since }), ...(leaseExpiresAt && { until: leaseExpiresAt }) };
  }
  if (ENDED.has(job.state)) return ended(job);
  // It changed while the server looked, or the server is older than its explanations.
  return { reason: job.state, text: `It is ${job.state}.`, since: job.enqueuedAt };
}

const ENDED: ReadonlySet<string> = new Set(['completed', 'cancelled', 'discarded']);

function ended(job: JobEnvelope): Explanation {
  const at = job.completedAt ?? job.cancelledAt ?? job.discardedAt;
  const since = at === undefined ? {} : { since: at };
  if (job.state === 'completed') {
    const { startedAt, firstStartedAt, completedAt } = job;
    const took = between(firstStartedAt ?? startedAt, completedAt);
    const last = firstStartedAt && between(startedAt, completedAt);
    const text = `It has completed${took ? ` in ${took}` : ''}${last ? `; its last run took ${last}` : ''}.`;
    return { reason: 'completed', text, ...since };
  }
  const redrive = { hint: `tocsin retry ${job.id}` };
  const undo = job.undo ? ` Its steps are undone by job ${undoText(job.undo)}.` : '';
  if (job.state === 'cancelled') return { reason: 'cancelled', text: `It was cancelled.${undo}`, ...since, ...redrive };
  const cause = job.error ? `: ${job.error.type}: ${job.error.message}` : '';
  const expired = job.error === undefined && job.expiresAt !== undefined;
  const how = expired ? 'It expired before it could run.' : `It was discarded after attempt ${job.attempt}${cause}`;
  const text = undo === '' ? how : `${how}${how.endsWith('.') ? '' : '.'}${undo}`;
  return { reason: expired ? 'expired' : 'discarded', text, ...since, ...redrive };
}

const undoText = ({ jobId, state }: NonNullable<JobEnvelope['undo']>): string =>
  `${jobId}${state ? `, which is ${state}` : ''}`;

function between(start: string | undefined, end: string | undefined): string | undefined {
  if (start === undefined || end === undefined) return undefined;
  const ms = Date.parse(end) - Date.parse(start);
  return ms < 1000 ? `${ms} ms` : lengthText(ms);
}

/** The rows that show a job: what it is, how far it came, what went wrong last. */
export function jobFacts(
  job: JobEnvelope,
  progress: JobProgress | undefined,
  now: number,
  log: readonly JobLogLine[] = [],
): [name: string, value: unknown][] {
  const errors = job.errors ?? (job.error ? [job.error] : []);
  const { createdAt, startedAt, firstStartedAt, coalesced } = job;
  // The attempt that sleeps is counted when it ends.
  const isAsleep = /^(snoozed|signal|run)$/.test(job.waitingFor?.reason ?? '');
  const end = job.completedAt ?? job.cancelledAt ?? job.discardedAt;
  return [
    ['id', job.id],
    ['type', job.type],
    ['queue', job.queue],
    ['state', job.state],
    ['args', textOf(job.args)],
    ['attempts', `${job.attempt + Number(isAsleep)} of ${job.maxAttempts}`],
    ['created', timeText(createdAt, now)],
    ['available', job.enqueuedAt === createdAt ? undefined : timeText(job.enqueuedAt, now)],
    [isAsleep ? 'continues' : 'scheduled', job.state === 'scheduled' ? timeText(job.scheduledAt, now) : undefined],
    ['stands for', coalesced && `${coalesced.calls} enqueues since ${timeText(coalesced.since, now)}`],
    ['next attempt', timeText(job.nextAttemptAt, now)],
    [firstStartedAt ? 'first run' : 'started', timeText(firstStartedAt ?? startedAt, now)],
    ['last run', firstStartedAt && timeText(startedAt, now)],
    ['heartbeat', timeText(job.lastHeartbeatAt, now)],
    ['lease ends', timeText(job.leaseExpiresAt, now)],
    ['worker', blockedText(log, now)],
    ['ended', timeText(end, now)],
    ['total', between(createdAt, end)],
    ['undone by', job.undo && undoText(job.undo)],
    ['undoes', job.meta?.undo_of],
    ['progress', progress && progressText(progress)],
    ['result', job.result],
    ...errors.slice(-3).map(({ attempt, type, message, occurredAt }): [string, string] => {
      return [`error ${attempt}`, `${type}: ${message.split('\n')[0]} (${whenText(occurredAt, now)})`];
    }),
  ];
}

/** For how long the worker's event loop was blocked during the job: that loses leases and slows other jobs. */
function blockedText(log: readonly JobLogLine[], now: number): string | undefined {
  const line = log.findLast(({ fields }) => typeof fields?.blocked_ms === 'number');
  if (!line) return undefined;
  const ms = line.fields?.blocked_ms as number;
  return `its event loop was blocked for ${(ms / 1000).toFixed(1)} s, ${timeText(new Date(line.at).toISOString(), now)}`;
}

function progressText({ progress, message, data }: JobProgress): string | undefined {
  if (progress === null) return undefined;
  return [`${Math.round(progress * 100)} %`, message, data && textOf(data)].filter(Boolean).join('  ');
}

/** What is on record under the name of a step, in a few words. Times in it are epoch ms. */
export function stepText(step: JobStep, now: number): string {
  const time = (at: number) => timeText(new Date(at).toISOString(), now);
  if (step.signal) return `signal ${time(step.signal.at)}: ${textOf(step.signal.payload)}`;
  if (step.timedOut) return step.run ? 'timed out before its jobs ended' : 'timed out without a signal';
  if (step.error !== undefined) return `failed: ${textOf(step.error)}`;
  if (step.tries !== undefined)
    return `failed ${step.tries} times, again ${time(step.until ?? now)}: ${textOf(step.failed)}`;
  if (step.until !== undefined) return `${step.run ? `waits for ${step.run.type} ` : ''}until ${time(step.until)}`;
  if (step.resultBytes !== undefined) return `done: ${step.resultBytes} bytes`;
  if (step.begun) return 'begun, not finished';
  return `done: ${textOf(step.result ?? null)}`;
}

/** A line of the log: `10:14:59.289  INFO   sent  {"to":"ada"}` */
export function logText({ at, level, message, fields }: JobLogLine): string {
  const parts = [new Date(at).toISOString(), level.toUpperCase().padEnd(5), message, fields && textOf(fields)];
  return lineOf(parts.filter(Boolean));
}
