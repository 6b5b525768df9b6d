/** Warning a producer of a type that no handler takes: with the answer to the enqueue, not when somebody misses the job. */
import type { EnqueuedJob } from '../../rpc/receipts';
import { mayNameUrl } from '../store/columns';
import type { Handled } from '../store/parts';

/**
 * Puts a warning with the first new job of each type that no handler takes, unless the job names a URL. Reads nothing; costs
 * nothing where nothing is pushed.
 * @param bodyAt the body of each job, as text
 */
export function warnOfUnhandled(
  q: Handled,
  jobs: readonly EnqueuedJob[],
  bodyAt: (index: number) => string | undefined,
): void {
  if (!q.handlers.pushesAny) return;
  const seen = new Set<string>();
  for (const [index, job] of jobs.entries()) {
    const { type } = job.record;
    if (job.deduplicated || seen.has(type) || mayNameUrl(bodyAt(index) ?? '')) continue;
    seen.add(type);
    const warning = q.handlers.warning(type);
    if (warning !== undefined) job.warning = warning;
  }
}
