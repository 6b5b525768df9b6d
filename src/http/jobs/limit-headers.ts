/** Headers that tell a producer how much is left: of the key that limits its job, and of the queue's bound. */
import type { EnqueuedJob } from '../../rpc/receipts';

/** The headers for an answer to an enqueue; none where nothing is limited. */
export function limitHeaders(jobs: readonly EnqueuedJob[]): Record<string, string> {
  return { ...pressureHeaders(jobs), ...standingHeaders(jobs) };
}

/** How full the fullest of the queues is, of those that are nearly full. */
function pressureHeaders(jobs: readonly EnqueuedJob[]): Record<string, string> {
  const pressures = jobs.flatMap(({ pressure }) => pressure ?? []);
  const [fullest] = pressures.sort((a, b) => b.depth / b.bound - a.depth / a.bound);
  if (!fullest) return {};
  return {
    'X-OJS-Queue-Depth': String(fullest.depth),
    'X-OJS-Queue-Bound': String(fullest.bound),
    'X-OJS-Queue-Pressure': String(Math.min(1, Math.round((100 * fullest.depth) / fullest.bound) / 100)),
  };
}

function standingHeaders([job]: readonly EnqueuedJob[]): Record<string, string> {
  if (!job?.standing) return {};
  const { limit, remaining, resets_at } = job.standing;
  return {
    'X-RateLimit-Limit': String(limit),
    'X-RateLimit-Remaining': String(remaining),
    'X-RateLimit-Reset': String(Math.ceil(resets_at / 1000)),
  };
}
