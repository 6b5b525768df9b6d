/** Takes the jobs of workflows, each once however often it is sent, and cancels them. */
import { ApiError } from '../../../job/errors';
import type { NewJob } from '../../../job/record';
import { TERMINAL_STATES } from '../../../job/states';
import type { StepStart } from '../../../rpc/workflow';
import { cancel } from '../../jobs/cancel';
import { enqueue } from '../../jobs/enqueue';
import { find, viewOf } from '../../read/find';
import type { QueueParts } from '../../store/parts';
import { addEnding } from '../../store/workflow-endings';
import { noteTaken, stepsTaken } from './starts';

/**
 * Enqueues jobs of a workflow. A job that this queue has taken before is not taken again. A job that it refuses for
 * good has ended, and the workflow is notified.
 * @returns the job of each step, in their order; null where it was refused
 * @throws {ApiError} when the queue cannot take them now; then nothing was written
 */
export function startSteps(q: QueueParts, start: StepStart, now: number): (string | null)[] {
  const taken = stepsTaken(q.store.sql, start.workflow);
  const fresh = start.steps.filter(({ step }) => !taken.has(step));
  if (fresh.length > 0) {
    const jobs = fresh.map(({ job }): NewJob => (start.cancelled ? { ...job, superseded: true } : job));
    const noted = enqueueAccepted(q, start.workflow, fresh, jobs, now);
    noteTaken(q.store.sql, start.workflow, noted);
    for (const [step, id] of noted) taken.set(step, id);
    if (start.first) q.observed.events.add('workflow.started', start.workflow, now, { workflow_id: start.workflow });
  }
  return start.steps.map(({ step }) => taken.get(step) ?? null);
}

/** Enqueues what the queue does not refuse, in one go: it checks before it writes. */
function enqueueAccepted(
  q: QueueParts,
  workflow: string,
  steps: StepStart['steps'],
  jobs: readonly NewJob[],
  now: number,
): Map<number, string | null> {
  const noted = new Map<number, string | null>();
  const open = new Map(steps.map(({ step }, place) => [step, jobs[place] as NewJob]));
  const refused: { step: number; error: ApiError['data'] }[] = [];
  while (open.size > 0) {
    const left = [...open];
    try {
      const receipt = enqueue(
        q,
        left.map(([, job]) => job),
        now,
      );
      left.forEach(([step], place) => {
        noted.set(step, receipt.jobs[place]?.record.id ?? null);
      });
      break;
    } catch (error) {
      // A draining queue takes nothing now, whatever the job; that is not the job's fault.
      const passes = error instanceof ApiError && (error.data.retryable || error.data.code === 'conflict');
      if (!(error instanceof ApiError) || passes) throw error;
      const index = left.length === 1 ? 0 : error.data.details?.index;
      const culprit = typeof index === 'number' ? left[index] : undefined;
      // A fault of all of them must not lose any.
      if (!culprit) throw error;
      open.delete(culprit[0]);
      refused.push({ step: culprit[0], error: error.data });
    }
  }
  for (const { step, error } of refused) {
    noted.set(step, null);
    const why = { code: error.code, type: error.type ?? error.code, message: error.message };
    addEnding(q, workflow, { step, end: 'failed', at: now, error: why }, now);
  }
  return noted;
}

/** Cancels those of these jobs that have not ended. */
export function cancelSteps(q: QueueParts, ids: readonly string[], now: number): void {
  for (const id of ids) {
    const found = find(q, id);
    if (found?.row && !TERMINAL_STATES.includes(viewOf(q, found, now).record.state)) cancel(q, id, now);
  }
}
