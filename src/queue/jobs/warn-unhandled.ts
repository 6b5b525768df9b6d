/** Warns a producer of a type without a handler in the answer to the enqueue, not when the job is missed. */
import type { EnqueuedJob } from '../../rpc/receipts';
import { mayNameUrl } from '../store/columns';
import type { Handled } from '../store/parts';

/**
 * Warns on the first new job of each type without a handler, unless it names a URL. Free if the queue pushes no jobs.
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
