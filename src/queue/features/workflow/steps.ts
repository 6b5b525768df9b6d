/** Takes the jobs of workflows, each once however often it is sent, and cancels them. */
import { ApiError, type ErrorData, type Outcome, outcomeOf } from '../../../job/errors';
import type { NewJob } from '../../../job/record';
import type { EnqueuedJob } from '../../../rpc/receipts';
import type { StepStart } from '../../../rpc/workflow';
import { enqueue } from '../../jobs/enqueue';
import type { QueueParts } from '../../store/parts';
import { addEnding } from '../../store/workflow-endings';
import { noteTaken, stepsTaken } from './starts';

/**
 * Enqueues jobs of a workflow, each once. A job refused for good has ended, and the workflow is notified.
 * @returns per step, in order: its job; null: refused for good; undefined: not now, though others were taken
 * @throws {ApiError} when the queue cannot take them now; then nothing was written
 */
export function startSteps(q: QueueParts, start: StepStart, now: number): (string | null | undefined)[] {
  const taken = stepsTaken(q.store.sql, start.workflow);
  const fresh = start.steps.filter(({ step }) => !taken.has(step));
  if (fresh.length > 0) {
    const noted = enqueueAccepted(q, start, fresh, now);
    noteTaken(q.store.sql, start.workflow, noted);
    for (const [step, id] of noted) taken.set(step, id);
    if (start.first) q.observed.events.add('workflow.started', start.workflow, now, { workflow_id: start.workflow });
  }
  return start.steps.map(({ step }) => taken.get(step));
}

/** Enqueues what the queue takes now. @returns what became of these steps, at least of one */
function enqueueAccepted(
  q: QueueParts,
  { workflow, cancelled, divisible, follow }: StepStart,
  steps: StepStart['steps'],
  now: number,
): Map<number, string | null> {
  const jobs = steps.map(({ job }): NewJob => (cancelled ? { ...job, superseded: true } : job));
  const noted = new Map<number, string | null>();
  let later: ErrorData | undefined;
  for (const [place, outcome] of outcomesOf(q, jobs, now, !follow).entries()) {
    const { step } = steps[place] as StepStart['steps'][number];
    if (outcome.ok) {
      noted.set(step, outcome.value.record.id);
      continue;
    }
    const { code, type = code, message, retryable } = outcome.error;
    // A draining queue takes nothing now, whatever the job; that is not the job's fault.
    if (retryable || code === 'conflict') {
      later ??= outcome.error;
      continue;
    }
    noted.set(step, null);
    addEnding(q, workflow, { step, end: 'failed', at: now, error: { code, type, message } }, now);
  }
  if (later && !(divisible && noted.size > 0)) throw new ApiError(later);
  return noted;
}

/**
 * Enqueues all together, which costs fewest rows; if refused, one by one, replacing no jobs, which may be among these.
 */
function outcomesOf(q: QueueParts, jobs: readonly NewJob[], now: number, mayDrop: boolean): Outcome<EnqueuedJob>[] {
  const all = outcomeOf(() => enqueue(q, jobs, now, mayDrop).jobs);
  if (all.ok) return all.value.map((value) => ({ ok: true, value }));
  return jobs.map((job) => outcomeOf(() => enqueue(q, [job], now, false).jobs[0] as EnqueuedJob));
}
