/** Warning a producer of a type that no handler takes: with the answer to the enqueue, not when somebody misses the job. */
import type { EnqueuedJob } from '../../rpc/receipts';
import type { QueueState } from '../store/state';

/** Puts a warning with the first new job of each type that no handler takes. Reads nothing; costs nothing where nothing is pushed. */
export function warnOfUnhandled(q: QueueState, jobs: readonly EnqueuedJob[]): void {
  if (!q.pushesAny) return;
  const seen = new Set<string>();
  for (const job of jobs) {
    const { type } = job.record;
    if (job.deduplicated || seen.has(type)) continue;
    seen.add(type);
    const warning = q.handled.warning(type);
    if (warning !== undefined) job.warning = warning;
  }
}
