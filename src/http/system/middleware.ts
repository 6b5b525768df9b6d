/**
 * The steps around a job on its way in, and while it runs. Nothing can be registered here: these are the server's own
 * steps, and some depend on the configuration.
 */
import { readConfig } from '../../config';
import type { MiddlewareStep } from '../../contract/system';
import { type AppContext, json } from '../context';

type ShownStep = Pick<MiddlewareStep, 'name' | 'description'>;

const ENQUEUE: readonly ShownStep[] = [
  { name: 'authentication', description: 'The key, and the scope that the route asks for.' },
  { name: 'body_limit', description: 'Size, encoding and nesting of the request.' },
  { name: 'envelope_validation', description: 'Each member of the job, against the rules of the envelope.' },
  { name: 'trace_context', description: 'A job without a traceparent joins the trace of its request.' },
  { name: 'schema_validation', description: 'The arguments, against the schema of the type; the queue may be strict.' },
  { name: 'idempotency', description: 'A request that is sent again under its Idempotency-Key gets the first answer.' },
  { name: 'unique_jobs', description: 'The unique policy of the job, in its queue or across queues.' },
  { name: 'backpressure', description: 'The bounds of the queue: jobs, bytes, storage, allowed types.' },
];

const EXECUTION: readonly ShownStep[] = [
  { name: 'rate_limits', description: 'Limits of the queue and of the key that the job counts under.' },
  { name: 'lease', description: 'The attempt is counted and leased before its runner sees the job.' },
  { name: 'execution_timeout', description: 'An attempt that takes too long ends as a failed one.' },
  { name: 'retry_policy', description: 'Decides what follows a failed attempt: retry, discard or dead letter.' },
];

const SIGNATURE: ShownStep = { name: 'signature', description: 'Calls to URLs are signed with TARGET_SECRET.' };

export function showMiddleware(c: AppContext) {
  const isRemote = readConfig(c.env).targets.some((target) => target.isRemote);
  const execution = [...EXECUTION, ...(isRemote ? [SIGNATURE] : [])];
  return json(c, { enqueue: numbered('enqueue', ENQUEUE), execution: numbered('execution', execution) });
}

const numbered = (phase: MiddlewareStep['phase'], steps: readonly ShownStep[]): MiddlewareStep[] =>
  steps.map((step, index) => ({ ...step, phase, order: index + 1 }));
