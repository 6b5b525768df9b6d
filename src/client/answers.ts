/** Takes apart what the server answers. It is the authority on its shapes: only what the client relies on is checked. */
import type { JobEnvelope } from '../job/wire';
import { UnavailableError } from './errors';
import type { WorkflowStatus } from './workflow';

/** The job of an answer about one. @throws {UnavailableError} */
export function jobOf(answer: unknown): JobEnvelope {
  return asJob(member(answer, 'job'));
}

/** A batch says of each job that it existed already; the answer to a single one says so beside the job. */
export function enqueuedJobOf(answer: unknown): JobEnvelope {
  const job = jobOf(answer);
  return member(answer, 'deduplicated') === true ? { ...job, deduplicated: true } : job;
}

/** The jobs of the answer to a batch of `count`. @throws {UnavailableError} when there are more or fewer */
export function batchOf(answer: unknown, count: number): JobEnvelope[] {
  const list = member(answer, 'jobs');
  if (Array.isArray(list) && list.length === count) return list.map((envelope) => asJob(envelope));
  throw malformed('the jobs');
}

/** The workflow of an answer about one. @throws {UnavailableError} */
export function workflowOf(answer: unknown): WorkflowStatus {
  const workflow = member(answer, 'workflow');
  if (typeof member(workflow, 'id') !== 'string') throw malformed('the workflow');
  return workflow as WorkflowStatus;
}

/** A member of what may be an object. */
export function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}

/** The error about an answer that lacks what was asked for; whatever the request was to change may have changed. */
export function malformed(what: string): UnavailableError {
  return new UnavailableError(`The answer does not hold ${what}.`, {
    status: 200,
    code: 'invalid_response',
    retryable: false,
    outcomeUnknown: true,
  });
}

function asJob(value: unknown): JobEnvelope {
  if (typeof member(value, 'id') !== 'string') throw malformed('the job');
  return value as JobEnvelope;
}
