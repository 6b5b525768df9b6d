/** Questions about many jobs, changes of waiting ones, and queues as a whole, as a producer writes them. */
import type { JobState } from '../job/record';
import type { Duration, JobEnvelope, RetryPolicy } from '../job/wire';
import { malformed } from './answers';
import { InvalidJobError } from './errors';
import { type Moment, momentText, relativeText } from './job';
import type { Send } from './transport';

/** Which jobs are meant. Conditions must all hold; of a list one must fit (of `tags` all). Times are inclusive. */
export interface JobQuery {
  queue?: string | readonly string[];
  ids?: readonly string[];
  /** `*` stands for anything. */
  type?: string | readonly string[];
  state?: JobState | readonly JobState[];
  tags?: readonly string[];
  priority?: number | { min?: number; max?: number };
  /** Attempts begun. */
  attempts?: number | { min?: number; max?: number };
  createdAfter?: Moment;
  createdBefore?: Moment;
  enqueuedAfter?: Moment;
  enqueuedBefore?: Moment;
  scheduledAfter?: Moment;
  scheduledBefore?: Moment;
  endedAfter?: Moment;
  endedBefore?: Moment;
  /** Type of the last error. */
  errorType?: string;
  deadLetter?: boolean;
  /** Members of the payload or of `meta` and what they must be: `{ 'args.0.user_id': 42, 'meta.tenant': 'acme' }`. */
  where?: Record<string, string | number | boolean | null>;
}

export interface ListOptions {
  /** Jobs in one request, 1 … 200. Default 100. */
  pageSize?: number;
  /** Stop after so many jobs. */
  limit?: number;
}

/** What to change about a job that waits. What is left out stays; `null` goes back to the default. */
export interface JobPatch {
  priority?: number | null;
  /** Start not before so long from now. */
  delay?: Duration;
  /** Start not before this moment; `null`: as soon as possible. */
  delayUntil?: Moment | null;
  expiresAt?: Moment | null;
  /** Members replace those of the job's own policy, `null` removes them (`max_interval: null`: no cap). */
  retry?: { [K in keyof RetryPolicy]?: RetryPolicy[K] | null } | null;
  maxAttempts?: number | null;
  timeoutMs?: number | null;
  tags?: readonly string[] | null;
}

/** A queue as `pause` and `resume` leave it. */
export interface QueueState {
  name: string;
  paused: boolean;
  status: 'active' | 'paused' | 'draining';
}

/** How many jobs a queue has in each state; `depth` counts those that have not ended, `dead` the dead letters. */
export type QueueCounts = Record<JobState, number> & { queue: string; depth: number; dead: number };

const TIMES = ['created', 'enqueued', 'scheduled', 'ended'] as const;

/** The query as parameters. */
export function parametersOf(query: JobQuery): URLSearchParams {
  const parameters = new URLSearchParams();
  const set = (name: string, value: string | undefined) => {
    if (value !== undefined) parameters.append(name, value);
  };
  const many = (name: string, value: string | readonly string[] | undefined) => {
    const list = typeof value === 'string' ? [value] : value;
    // No value at all would ask for everything.
    if (list?.length === 0) throw invalid(`${name} must not be an empty list.`, name);
    set(name, list?.join(','));
  };
  const range = (name: string, value: JobQuery['priority']) => {
    if (typeof value === 'number') return set(name, String(value));
    if (value?.min !== undefined) set(`${name}_min`, String(value.min));
    if (value?.max !== undefined) set(`${name}_max`, String(value.max));
  };
  many('queue', query.queue);
  many('id', query.ids);
  many('type', query.type);
  many('state', query.state);
  many('tag', query.tags);
  range('priority', query.priority);
  range('attempts', query.attempts);
  for (const name of TIMES) {
    for (const end of ['After', 'Before'] as const) {
      set(`${name}_${end.toLowerCase()}`, momentText(query[`${name}${end}`], `${name}${end}`));
    }
  }
  set('error_type', query.errorType);
  if (query.deadLetter !== undefined) set('dead_letter', String(query.deadLetter));
  for (const [name, value] of Object.entries(query.where ?? {})) {
    if (!/^(args|meta)[.[]/.test(name)) throw invalid(`${name} must begin with "args." or "meta.".`, `where.${name}`);
    set(name, String(value));
  }
  return parameters;
}

/** The change as the server reads it. */
export function wirePatch(change: JobPatch): Record<string, unknown> {
  if (change.delay !== undefined && change.delayUntil !== undefined) {
    throw invalid('Say delay or delayUntil, not both.', 'delay');
  }
  const moment = (value: Moment | null | undefined, name: string) => (value === null ? null : momentText(value, name));
  return {
    priority: change.priority,
    scheduled_at: change.delay === undefined ? moment(change.delayUntil, 'delayUntil') : relativeText(change.delay),
    expires_at: moment(change.expiresAt, 'expiresAt'),
    retry: change.retry,
    max_attempts: change.maxAttempts,
    timeout_ms: change.timeoutMs,
    tags: change.tags,
  };
}

/**
 * Every job that matches, page by page as it is read.
 * @param send sends a request, repeating it where that is safe
 */
export async function* listJobs(send: Send, query: JobQuery, options: ListOptions): AsyncGenerator<JobEnvelope> {
  yield* pagesOf(send, '/jobs', parametersOf(query), options);
}

/**
 * Jobs of a list that has cursors, page by page as it is read.
 * @param conditions what the list is asked for
 */
export async function* pagesOf(
  send: Send,
  path: string,
  conditions: URLSearchParams,
  options: ListOptions,
): AsyncGenerator<JobEnvelope> {
  const { pageSize = 100, limit = Number.POSITIVE_INFINITY } = options;
  const parameters = new URLSearchParams(conditions);
  parameters.set('limit', String(Math.max(1, Math.min(pageSize, limit))));
  let left = limit;
  while (left > 0) {
    const page = (await send('GET', `${path}?${parameters}`)) as {
      jobs?: JobEnvelope[];
      pagination?: { has_more?: boolean; next_cursor?: string | null };
    };
    if (!Array.isArray(page?.jobs)) throw malformed('the jobs');
    for (const job of page.jobs) {
      if (left-- <= 0) return;
      yield job;
    }
    const cursor = page.pagination?.next_cursor;
    if (page.pagination?.has_more !== true || typeof cursor !== 'string') return;
    parameters.set('cursor', cursor);
  }
}

/** How many jobs match. */
export async function countJobs(send: Send, query: JobQuery): Promise<number> {
  const { count } = (await send('GET', `/jobs/count?${parametersOf(query)}`)) as { count?: unknown };
  if (typeof count !== 'number') throw malformed('the count');
  return count;
}

/** Pauses or resumes a queue. */
export async function setPaused(send: Send, queue: string, action: 'pause' | 'resume'): Promise<QueueState> {
  const answer = await send('POST', `/queues/${encodeURIComponent(queue)}/${action}`);
  const { name, paused, status } = answer as QueueState;
  if (typeof paused !== 'boolean') throw malformed('the queue');
  return { name, paused, status };
}

/** Counts of a queue. */
export async function queueStats(send: Send, queue: string): Promise<QueueCounts> {
  const { stats } = (await send('GET', `/queues/${encodeURIComponent(queue)}/stats`)) as { stats?: QueueCounts };
  if (typeof stats?.depth !== 'number') throw malformed('the counts');
  return stats;
}

/** The error about a question that was not asked. */
export function invalid(message: string, field: string): InvalidJobError {
  return new InvalidJobError(message, { status: 0, code: 'invalid_request', retryable: false, details: { field } });
}
