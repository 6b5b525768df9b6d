import type { Registration } from '../handler/registry';
import type { StepRecord } from '../handler/step-rules';
import { jsonCopy } from '../handler/text';
import type { Job } from '../handler/types';
import type { RetryPolicy } from '../producer/envelope';
import { named } from '../producer/names';
import { idOf } from './job-id';
import { withEnds } from './runs';
import type { RunOptions } from './types';

export { idOf };

const DEFAULT_ATTEMPTS = 3;

/** @throws {TypeError} when something of it is not JSON */
export function testJob(
  type: string,
  args: readonly unknown[],
  handler: Registration,
  options: RunOptions & { now: number },
): Job {
  const { attempt = 1, meta = {}, checkpoint, timeoutMs, now, job = {} } = options;
  const at = new Date(now).toISOString();
  const policy = { ...(named(handler.policy) as RetryPolicy | undefined), ...job.retry };
  const made = {
    specversion: '1.0',
    id: idOf(0),
    type,
    queue: 'default',
    args,
    meta,
    priority: 0,
    state: 'active',
    attempt,
    maxAttempts: options.maxAttempts ?? handler.maxAttempts ?? policy.maxAttempts ?? DEFAULT_ATTEMPTS,
    retryEffective: policy,
    ...(timeoutMs !== undefined && { timeoutMs }),
    createdAt: at,
    enqueuedAt: at,
    startedAt: at,
    ...(checkpoint !== undefined && { checkpoint: { state: checkpoint, sequence: 1 } }),
    steps: recorded(options, now),
    ...job,
  };
  // As after a way over the wire: what is not JSON is not there.
  return jsonCopy(made, 'runHandler: the job') as Job;
}

export function recorded({ steps = {}, signals = {}, runs = {} }: RunOptions, now: number): Record<string, StepRecord> {
  const come = Object.entries(signals).map(([name, payload]) => [name, { signal: { payload, at: now } }]);
  return { ...withEnds(steps, runs, now), ...Object.fromEntries(come) };
}
