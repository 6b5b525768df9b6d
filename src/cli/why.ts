/** Explains in a few lines what a job waits for, or how it ended. */
import type { JobEnvelope } from '../producer/envelope';
import { lengthText, textOf, timeText } from './output';

/** Why a job does not run, as newer servers say it with the job. */
export interface WaitingFor {
  reason: string;
  since: string;
  until?: string;
  /** A sentence or two for a human. */
  detail: string;
}

/** A job, perhaps with the server's own explanation. */
export type ExplainedJob = JobEnvelope & { waitingFor?: WaitingFor };

/** What is known of its queue. */
export interface QueueState {
  status: string;
  /** Jobs that may run now. */
  available: number;
  active: number;
}

/** The explanation, as `--json` shows it beside the job. */
export interface Explanation {
  reason: string;
  /** One sentence. */
  text: string;
  since?: string;
  until?: string;
  /** What to do about it: a command, or a question. */
  hint?: string;
}

/**
 * Why this job does not run.
 * @param queue undefined: nothing is known of it
 */
export function explain(job: ExplainedJob, queue: QueueState | undefined, now: number): Explanation {
  return job.waitingFor ? fromServer(job, job.waitingFor) : fromState(job, queue, now);
}

function fromServer(job: ExplainedJob, { reason, since, until, detail }: WaitingFor): Explanation {
  const command = COMMANDS[reason]?.(job);
  return { reason, text: detail, since, ...(until && { until }), ...(command && { hint: command }) };
}

/** Commands that end a wait, by its reason. */
const COMMANDS: Readonly<Record<string, (job: JobEnvelope) => string>> = {
  queue_paused: ({ queue }) => `tocsin queues resume ${queue}`,
  retry: ({ id }) => `tocsin retry ${id}`,
};

function fromState(job: ExplainedJob, queue: QueueState | undefined, now: number): Explanation {
  const { state } = job;
  switch (state) {
    case 'available':
      return waiting(job, queue);
    case 'scheduled':
      return {
        reason: 'delayed',
        text: `Its time has not come: ${timeText(job.scheduledAt, now)}.`,
        since: job.createdAt,
        ...(job.scheduledAt && { until: job.scheduledAt }),
      };
    case 'retryable':
      return {
        reason: 'retry',
        text: `Attempt ${job.attempt} of ${job.maxAttempts} failed; the next is due ${timeText(job.nextAttemptAt, now)}.`,
        ...(job.error && { since: job.error.occurredAt }),
        ...(job.nextAttemptAt && { until: job.nextAttemptAt }),
        hint: `tocsin retry ${job.id}`,
      };
    case 'pending':
      return { reason: 'pending', text: 'It waits to be activated.', since: job.createdAt };
    case 'active':
      return {
        reason: 'running',
        text: `It is running${job.workerId ? ` at ${job.workerId}` : ''}, attempt ${job.attempt} of ${job.maxAttempts}.`,
        ...(job.startedAt && { since: job.startedAt }),
      };
    default:
      return ended(job);
  }
}

function waiting(job: JobEnvelope, queue: QueueState | undefined): Explanation {
  const since = job.enqueuedAt;
  if (queue?.status === 'paused') {
    const hint = `tocsin queues resume ${job.queue}`;
    return { reason: 'queue_paused', text: `Its queue ${job.queue} is paused.`, since, hint };
  }
  if (queue !== undefined && queue.available > 1) {
    const text = `${queue.available} jobs are available in ${job.queue}, and ${queue.active} run.`;
    return { reason: 'behind', text, since };
  }
  const hint = 'Is there a handler for its type, and does it run? A worker that pulls has to name its queue.';
  return { reason: 'available', text: `It may run now; nothing has taken it from ${job.queue} yet.`, since, hint };
}

function ended(job: JobEnvelope): Explanation {
  const at = job.completedAt ?? job.cancelledAt ?? job.discardedAt;
  const since = at === undefined ? {} : { since: at };
  if (job.state === 'completed') {
    const took = runTime(job);
    return { reason: 'completed', text: `It has completed${took ? ` in ${took}` : ''}.`, ...since };
  }
  const redrive = { hint: `tocsin retry ${job.id}` };
  if (job.state === 'cancelled') return { reason: 'cancelled', text: 'It was cancelled.', ...since, ...redrive };
  const cause = job.error ? `: ${job.error.type}: ${job.error.message}` : '';
  const expired = job.error === undefined && job.expiresAt !== undefined;
  const text = expired ? 'It expired before it could run.' : `It was discarded after attempt ${job.attempt}${cause}`;
  return { reason: expired ? 'expired' : 'discarded', text, ...since, ...redrive };
}

function runTime({ startedAt, completedAt }: JobEnvelope): string | undefined {
  if (startedAt === undefined || completedAt === undefined) return undefined;
  const ms = Date.parse(completedAt) - Date.parse(startedAt);
  return ms < 1000 ? `${ms} ms` : lengthText(ms);
}

/** The rows that show a job: what it is, how far it came, what went wrong last. */
export function jobFacts(job: ExplainedJob, now: number): [name: string, value: unknown][] {
  const errors = job.errors ?? (job.error ? [job.error] : []);
  return [
    ['id', job.id],
    ['type', job.type],
    ['queue', job.queue],
    ['state', job.state],
    ['args', textOf(job.args)],
    ['attempts', `${job.attempt} of ${job.maxAttempts}`],
    ['enqueued', timeText(job.enqueuedAt, now)],
    ['scheduled', job.state === 'scheduled' ? timeText(job.scheduledAt, now) : undefined],
    ['next attempt', timeText(job.nextAttemptAt, now)],
    ['ended', timeText(job.completedAt ?? job.cancelledAt ?? job.discardedAt, now)],
    ['progress', job.progress],
    ['result', job.result],
    ...errors
      .slice(-3)
      .map((error): [string, string] => [
        `error ${error.attempt}`,
        `${error.type}: ${error.message.split('\n')[0]} (${error.occurredAt})`,
      ]),
  ];
}
