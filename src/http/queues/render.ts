/** Queues in answers. */
import { defined, given } from '../../job/envelope/fields';
import { modeOf } from '../../job/settings';
import { formatInstant } from '../../job/time';
import type { QueueActivity } from '../../rpc/operations';
import type { QueueStats } from '../../rpc/queue';

/** A queue and whether it is paused or drained. */
export function renderStatus(name: string, mode: { paused: boolean; draining?: boolean }) {
  return { name, paused: mode.paused, status: modeOf(mode) };
}

/** `created_at`, when it is known. Epoch ms. */
export function createdAt({ created_at }: { created_at?: number }): { created_at?: string } {
  return defined({ created_at: given(created_at, formatInstant) });
}

/** The counts as the statistics tool wants them; `depth` is what has not ended. */
export function renderCounts({ queue, counts, dead, storage }: QueueStats) {
  const { completed, cancelled, discarded, ...open } = counts;
  const depth = Object.values(open).reduce((sum, count) => sum + count, 0);
  return { queue, depth, dead, ...open, completed, cancelled, discarded, ...(storage && { storage }) };
}

/** A queue as operators see it in a list. */
export function renderForOperators(stats: QueueStats & QueueActivity) {
  const { queue: name, paused, counts, computed_at, completed_per_minute, oldest_available_at: oldest } = stats;
  const state = modeOf(stats);
  return {
    ...{ name, state, status: state, paused, counts },
    throughput: completed_per_minute,
    latency_ms: oldest === null ? 0 : Math.max(0, computed_at - oldest),
    oldest_available_at: oldest === null ? null : formatInstant(oldest),
  };
}
