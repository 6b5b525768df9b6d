/** Waiting for a job to end (long poll): in memory, woken by the job's own event, without any row. */

import { ENDS, type EventLog } from '../../durable/event-log';
import { ApiError, type Outcome } from '../../job/errors';
import type { JobView } from '../../job/record';
import { TERMINAL_STATES } from '../../job/states';

export const hasEnded = (view: JobView): boolean => TERMINAL_STATES.includes(view.record.state);

/** Resolves when the job ends, or after `ms`. */
function nextEnd(events: EventLog, jobId: string, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      stop();
      resolve();
    };
    const timer = setTimeout(finish, ms);
    const stop = events.listen((published) => {
      if (published.some(({ type, subject }) => subject === jobId && ENDS.has(type))) finish();
    });
  });
}

/**
 * Reads a job, waiting until it has ended or `deadline` (epoch ms). @param read the job as it is now
 * @returns the last state read; 410 when the job was seen, ended, and nothing of it is kept
 */
export async function awaitEnd(
  events: EventLog,
  jobId: string,
  deadline: number,
  now: () => number,
  read: () => Outcome<JobView>,
): Promise<Outcome<JobView>> {
  for (let seen = false; ; seen = true) {
    const outcome = read();
    if (!outcome.ok) return seen && outcome.error.code === 'not_found' ? { ok: false, error: pruned(jobId) } : outcome;
    const left = deadline - now();
    if (hasEnded(outcome.value) || left <= 0) return outcome;
    await nextEnd(events, jobId, left);
  }
}

function pruned(jobId: string) {
  return new ApiError({
    status: 410,
    code: 'result_pruned',
    message: `Job ${jobId} has ended and is not kept.`,
    retryable: false,
    details: { job_id: jobId },
    hint: 'Such jobs are not kept; raise the retention of the job or its queue to read their results.',
  }).data;
}
