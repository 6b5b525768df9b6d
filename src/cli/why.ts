/** Explains in a few lines what a job waits for, or how it ended. */
import type { JobEnvelope } from '../job/wire';
import { lengthText, textOf, timeText } from './output';

/** Why a job does not run, as newer servers say it with the job. */
export interface WaitingFor {
  reason: string;
  since?: string;
  until?: string | null;
  detail?: unknown;
}

/** A job, perhaps with the server's own explanation. */
export type ExplainedJob = JobEnvelope & { waiting_for?: WaitingFor | null };

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
  /** What to do about it. */
  hint?: string;
  detail?: unknown;
}

/**
 * Why this job does not run.
 * @param queue undefined: nothing is known of it
 */
export function explain(job: ExplainedJob, queue: QueueState | undefined, now: number): Explanation {
  return job.waiting_for ? fromServer(job, job.waiting_for, now) : fromState(job, queue, now);
}

/** Sentences for reasons of the server; a reason that is not here is shown as it is. */
const SENTENCES: Record<string, string> = {
  paused: 'Its queue is paused.',
  queue_paused: 'Its queue is paused.',
  no_handler: 'No handler takes its type.',
  handler_down: 'Its handler does not answer.',
  rate_limit: 'A limit has no room for it.',
  limit: 'A limit has no room for it.',
  concurrency: 'As many jobs run as may run at once.',
  behind: 'Other jobs are before it.',
  delayed: 'Its time has not come.',
  scheduled: 'Its time has not come.',
  retry: 'It failed and waits for its next attempt.',
  pending: 'It waits to be activated.',
};

function fromServer(job: ExplainedJob, { reason, since, until, detail }: WaitingFor, now: number): Explanation {
  const said = detailText(detail);
  const fallback = SENTENCES[reason] ?? `It waits: ${reason.replaceAll('_', ' ')}.`;
  const hint = hintFor(reason, job, detail);
  return {
    reason,
    text: said ?? (until ? `${fallback.slice(0, -1)} until ${timeText(until, now)}.` : fallback),
    ...(since && { since }),
    ...(until && { until }),
    ...(hint !== undefined && { hint }),
    ...(detail !== undefined && { detail }),
  };
}

/** The server's own words, where it has any. */
function detailText(detail: unknown): string | undefined {
  if (typeof detail === 'string' && detail !== '') return detail;
  const message = memberOf(detail, 'message');
  return typeof message === 'string' ? message : undefined;
}

/** A type that exists and looks like this one. */
function nearMiss(detail: unknown): string | undefined {
  const found = memberOf(detail, 'did_you_mean') ?? memberOf(detail, 'near_misses') ?? memberOf(detail, 'near_miss');
  const first = Array.isArray(found) ? found[0] : found;
  return typeof first === 'string' ? first : undefined;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function hintFor(reason: string, job: JobEnvelope, detail?: unknown): string | undefined {
  if (/pause/.test(reason)) return `tocsin queues resume ${job.queue}`;
  if (/handler/.test(reason)) {
    const near = nearMiss(detail);
    return near ? `Did you mean ${near}?` : undefined;
  }
  return undefined;
}

function fromState(job: ExplainedJob, queue: QueueState | undefined, now: number): Explanation {
  const { state } = job;
  switch (state) {
    case 'available':
      return waiting(job, queue);
    case 'scheduled':
      return {
        reason: 'delayed',
        text: `Its time has not come: ${timeText(job.scheduled_at, now)}.`,
        since: job.created_at,
        ...(job.scheduled_at && { until: job.scheduled_at }),
      };
    case 'retryable':
      return {
        reason: 'retry',
        text: `Attempt ${job.attempt} of ${job.max_attempts} failed; the next is due ${timeText(job.next_attempt_at, now)}.`,
        ...(job.error && { since: job.error.occurred_at }),
        ...(job.next_attempt_at && { until: job.next_attempt_at }),
        hint: `tocsin retry ${job.id}`,
      };
    case 'pending':
      return { reason: 'pending', text: 'It waits to be activated.', since: job.created_at };
    case 'active':
      return {
        reason: 'running',
        text: `It is running${job.worker_id ? ` at ${job.worker_id}` : ''}, attempt ${job.attempt} of ${job.max_attempts}.`,
        ...(job.started_at && { since: job.started_at }),
      };
    default:
      return ended(job);
  }
}

function waiting(job: JobEnvelope, queue: QueueState | undefined): Explanation {
  const since = job.enqueued_at;
  if (queue?.status === 'paused') {
    const hint = hintFor('paused', job);
    return { reason: 'paused', text: `Its queue ${job.queue} is paused.`, since, ...(hint !== undefined && { hint }) };
  }
  if (queue !== undefined && queue.available > 1) {
    const text = `${queue.available} jobs are available in ${job.queue}, and ${queue.active} run.`;
    return { reason: 'queued', text, since };
  }
  const hint = 'Is there a handler for its type, and does it run? A worker that pulls has to name its queue.';
  return { reason: 'available', text: `It may run now; nothing has taken it from ${job.queue} yet.`, since, hint };
}

function ended(job: JobEnvelope): Explanation {
  const at = job.completed_at ?? job.cancelled_at ?? job.discarded_at;
  const since = at === undefined ? {} : { since: at };
  if (job.state === 'completed') {
    const took = runTime(job);
    return { reason: 'completed', text: `It has completed${took ? ` in ${took}` : ''}.`, ...since };
  }
  const redrive = { hint: `tocsin retry ${job.id}` };
  if (job.state === 'cancelled') return { reason: 'cancelled', text: 'It was cancelled.', ...since, ...redrive };
  const cause = job.error ? `: ${job.error.type}: ${job.error.message}` : '';
  const expired = job.error === undefined && job.expires_at !== undefined;
  const text = expired ? 'It expired before it could run.' : `It was discarded after attempt ${job.attempt}${cause}`;
  return { reason: expired ? 'expired' : 'discarded', text, ...since, ...redrive };
}

function runTime({ started_at, completed_at }: JobEnvelope): string | undefined {
  if (started_at === undefined || completed_at === undefined) return undefined;
  const ms = Date.parse(completed_at) - Date.parse(started_at);
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
    ['attempts', `${job.attempt} of ${job.max_attempts}`],
    ['enqueued', timeText(job.enqueued_at, now)],
    ['scheduled', job.state === 'scheduled' ? timeText(job.scheduled_at, now) : undefined],
    ['next attempt', timeText(job.next_attempt_at, now)],
    ['ended', timeText(job.completed_at ?? job.cancelled_at ?? job.discarded_at, now)],
    ['progress', job.progress],
    ['result', job.result],
    ...errors
      .slice(-3)
      .map((error): [string, string] => [
        `error ${error.attempt}`,
        `${error.type}: ${error.message.split('\n')[0]} (${error.occurred_at})`,
      ]),
  ];
}
