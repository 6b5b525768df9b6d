/** Parses the server's answers; only the members that the client relies on are checked. */
import type { JobEnvelope } from '../producer/envelope';
import { ConflictError, UnavailableError } from '../producer/errors';
import type { PreparedJob } from '../producer/job';
import { addKept, addRead } from '../producer/options';

/** Was a call refused because what it is about was cancelled before? */
export const wasCancelled = (error: unknown): boolean =>
  error instanceof ConflictError && error.details.currentState === 'cancelled';

/** The job in an answer about one job. @throws {UnavailableError} */
export const jobOf = (answer: unknown): JobEnvelope => asJob(member(answer, 'job'));

/** In the answer to a batch each job has `deduplicated`; in the answer to a single enqueue it is next to the job. */
export function enqueuedJobOf(answer: unknown): JobEnvelope {
  const job = jobOf(answer);
  return member(answer, 'deduplicated') === true ? { ...job, deduplicated: true } : job;
}

/** The jobs that those of a batch have become. @throws {UnavailableError} when there are more or fewer */
export function batchOf(answer: unknown, sent: readonly Pick<PreparedJob, 'json' | 'queue'>[]): JobEnvelope[] {
  const list = member(answer, 'jobs');
  if (!Array.isArray(list) || list.length !== sent.length) throw malformed('the jobs');
  return sent.map(({ json, queue }, index) => jobSent(list[index], json, queue));
}

/** The job that a sent one became; a minimal answer is completed from `json`, the job as sent. */
export function jobSent(answer: unknown, json: string, queue: string): JobEnvelope {
  const full = member(answer, 'job') ?? answer;
  if (typeof member(full, 'type') === 'string') return answer === full ? asJob(full) : enqueuedJobOf(answer);
  const receipt = asJob(full);
  const sent = JSON.parse(json) as SentJob;
  const { options = {} } = sent;
  const { id, state, maxAttempts, createdAt, accumulated, coalesced } = receipt;
  const job: JobEnvelope = {
    specversion: '1.0',
    id,
    type: sent.type,
    queue,
    args: sent.args,
    meta: sent.meta ?? {},
    priority: options.priority ?? 0,
    state,
    attempt: 0,
    maxAttempts,
    createdAt,
    enqueuedAt: createdAt,
  };
  addKept(job, sent);
  addKept(job, options);
  addRead(job, receipt);
  if (accumulated) job.accumulated = accumulated;
  if (coalesced) job.coalesced = coalesced;
  return job;
}

interface SentJob extends Record<string, unknown> {
  type: string;
  args: unknown[];
  meta?: Record<string, unknown>;
  options?: Record<string, unknown> & { priority?: number };
}

export const member = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;

/** The answer, if it has the member that marks its shape. @throws {UnavailableError} */
export function shaped<T>(answer: unknown, mark: keyof T & string, what: string): T {
  if (member(answer, mark) === undefined) throw malformed(what);
  return answer as T;
}

/** A list in an answer. @throws {UnavailableError} */
export function listOf<T>(answer: unknown, name: string, what: string): T[] {
  const list = member(answer, name);
  if (!Array.isArray(list)) throw malformed(what);
  return list as T[];
}

/** The error for an answer without the expected member. The request may still have had its effect. */
export const malformed = (what: string): UnavailableError =>
  new UnavailableError(`The answer does not hold ${what}.`, {
    status: 200,
    code: 'invalid_response',
    retryable: false,
    outcomeUnknown: true,
  });

function asJob(value: unknown): JobEnvelope {
  if (typeof member(value, 'id') !== 'string') throw malformed('the job');
  return value as JobEnvelope;
}
