/**
 * Watches the size of the object. Beyond a threshold ended jobs go before their time, oldest first: completed, own
 * retention, cancelled and discarded; never dead letters.
 */
import type { Feature, Host } from '../../feature';
import { pruneArchive, pruneKeptChunks } from '../../store/archive';
import { oldestEnded } from '../../store/ended-rows';
import { STATE } from '../../store/job-row';
import { remove } from '../../store/jobs';
import type { Configured, Named, Observed, Stored } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { isPruned, mustPrune } from '../../store/storage';

/** Chunks, or jobs, removed in one go. */
const STEP = 200;

export class StorageWatch implements Feature {
  private pruning = false;

  constructor(private readonly host: Host) {}

  due(now: number): number | undefined {
    return this.pruning ? now : undefined;
  }

  before(now: number): void {
    const { q } = this.host;
    if (!mustPrune(q) || this.pruning || !hasEnded(q)) return;
    this.pruning = true;
    q.wake.at(now);
  }

  tidy(now: number): void {
    if (!this.pruning) return;
    const { q } = this.host;
    const { jobs, until } = isPruned(q) ? { jobs: 0, until: 0 } : removeOldest(q, now);
    if (jobs > 0) q.observed.events.add('queue.storage_pruned', q.name, now, { jobs, until });
    this.pruning = jobs > 0 && !isPruned(q) && hasEnded(q);
  }
}

/** Is there anything that may be removed before its time? */
function hasEnded({ store: { sql } }: Stored): boolean {
  const ended = `SELECT 1 FROM jobs WHERE state IN (${STATE.cancelled}, ${STATE.discarded}) AND ended_at IS NOT NULL`;
  const query = `SELECT EXISTS (SELECT 1 FROM archive) OR EXISTS (${ended}) AS found`;
  return sql.exec<{ found: number }>(query).one().found === 1;
}

/** Removes the oldest jobs of the first kind that exists. @returns how many, and when the newest of them ended */
function removeOldest(q: Named & Stored & Configured & Observed, now: number): { jobs: number; until: number } {
  const isEnough = () => isPruned(q);
  const completed = pruneArchive(q.store, Number.MAX_SAFE_INTEGER, STEP, { isEnough });
  if (completed.jobs > 0) return completed;
  const kept = pruneKeptChunks(q.store, Number.MAX_SAFE_INTEGER, STEP, { isEnough });
  if (kept.jobs > 0) return kept;
  const removed = { jobs: 0, until: 0 };
  for (const state of [STATE.cancelled, STATE.discarded]) {
    for (const key of oldestEnded(q.store.sql, state, STEP - removed.jobs)) {
      const row = isEnough() ? undefined : rowByKey(q.store, key);
      if (!row) return removed;
      remove(q, row, 'remove', now);
      removed.jobs++;
      removed.until = Math.max(removed.until, row.ended_at ?? 0);
    }
  }
  return removed;
}
