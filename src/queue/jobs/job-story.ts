/** Everything on record about a job, for a human who wants to understand it. */
import type { JobView } from '../../job/record';
import type { JobStory } from '../../rpc/queue';
import { mustFind } from '../read/find';
import { moveOf } from '../store/moves';
import type { Observed, StoredQueue } from '../store/parts';
import { checkpointOf } from './checkpoint';
import { logOf } from './log';
import { progressOf } from './progress';
import { stepsOf } from './steps';

/** @param job the job with what it waits for. @throws {ApiError} 404 */
export function storyOf(q: StoredQueue & Observed, id: string, job: JobView, now: number): JobStory {
  const { row } = mustFind(q, id);
  if (row && moveOf(q.store.outbox, row.key)) return { job, log: [], checkpoint: null, steps: '{}' };
  const progress = progressOf(q, id, now);
  return {
    job,
    log: logOf(q, id),
    checkpoint: checkpointOf(q, id),
    steps: stepsOf(q, id),
    ...(progress.at !== undefined && { progress }),
  };
}
