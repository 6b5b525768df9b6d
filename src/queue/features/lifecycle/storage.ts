/**
 * Watches the size of the object. Beyond a threshold ended jobs go before their time, oldest first: completed, own
 * retention, cancelled and discarded; never dead letters, nor what is kept for ever. While nothing may go, an event
 * says so once a day.
 */
import { isWithin } from '../../../durable/backoff';
import { readFact, writeMeta } from '../../../durable/sql';
import { type End, foreverFrom } from '../../../job/retention';
import type { Feature, Host } from '../../feature';
import { lastDue, pruneArchive, pruneKeptChunks } from '../../store/archive';
import { takeDamaged } from '../../store/damaged-chunks';
import { oldestEnded } from '../../store/ended-rows';
import { STATE } from '../../store/job-row';
import { remove } from '../../store/jobs';
import type { Configured, Named, Observed, Stored, StoredQueue } from '../../store/parts';
import { rowByKey } from '../../store/row-lookup';
import { isPruned, mustPrune } from '../../store/storage';

/** Interval at which an event says that nothing may go, ms, and the fact that says when it last did. */
const TELL_MS = 86_400_000;
const TOLD = 'storage_told';

export class StorageWatch implements Feature {
  private pruning = false;

  constructor(private readonly host: Host) {}

  due(now: number): number | undefined {
    return this.pruning ? now : undefined;
  }

  before(now: number): void {
    const { q } = this.host;
    if (!mustPrune(q) || this.pruning) return;
    this.pruning = mayPrune(q, now);
    if (this.pruning) q.wake.at(now);
    else tellStuck(q, now);
  }

  tidy(now: number): void {
    if (!this.pruning) return;
    const { q } = this.host;
    const { jobs, until } = isPruned(q) ? { jobs: 0, until: 0 } : removeOldest(q, now);
    if (jobs > 0) q.observed.events.add('queue.storage_pruned', q.name, now, { jobs, until });
    this.pruning = jobs > 0 && !isPruned(q) && mayPrune(q, now);
  }
}

/** The ends with rows of their own whose jobs may go before their time. */
const ENDED = [
  { state: STATE.cancelled, end: 'cancelled' },
  { state: STATE.discarded, end: 'discarded' },
] as const;

/** Does the queue's retention remove jobs with this end at all? */
const isBounded = ({ config }: Configured, end: End): boolean => config.retentionMs(end) < Number.POSITIVE_INFINITY;

/** Is there anything that may be removed before its time? */
function mayPrune(q: Stored & Configured, now: number): boolean {
  const { sql } = q.store;
  const within = (from: number, to: number) => {
    const query = 'SELECT EXISTS (SELECT 1 FROM archive WHERE chunk BETWEEN ? AND ?) AS found';
    return sql.exec<{ found: number }>(query, from, to).one().found === 1;
  };
  // As the numbers of chunks say how long these are kept.
  if (within(Number.MIN_SAFE_INTEGER, lastDue(foreverFrom(now) - 1))) return true;
  if (isBounded(q, 'completed') && within(0, Number.MAX_SAFE_INTEGER)) return true;
  return ENDED.some(({ state, end }) => oldestEnded(sql, state, 1, now, isBounded(q, end)).length > 0);
}

function tellStuck(q: Named & Stored & Observed, now: number): void {
  if (isWithin(readFact<number>(q.store.sql, TOLD) ?? 0, TELL_MS, now)) return;
  writeMeta(q.store.sql, TOLD, now);
  q.observed.events.add('queue.storage_pruned', q.name, now, { jobs: 0, until: 0 });
}

/** Removes the oldest jobs of the first kind that exists. @returns how many, and when the newest of them ended */
function removeOldest(q: StoredQueue & Observed, now: number): { jobs: number; until: number } {
  const isEnough = () => isPruned(q);
  const cutoff = isBounded(q, 'completed') ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER;
  const completed = pruneArchive(q.store, cutoff, { isEnough });
  if (completed.jobs > 0) return completed;
  const kept = pruneKeptChunks(q.store, foreverFrom(now) - 1, { isEnough });
  if (kept.jobs > 0) return kept;
  const { turn } = q.store;
  const removed = { jobs: 0, until: 0 };
  for (const { state, end } of ENDED) {
    for (const key of turn.draw(oldestEnded(q.store.sql, state, turn.share, now, isBounded(q, end)))) {
      const row = isEnough() ? undefined : rowByKey(q.store, key);
      if (!row) return removed;
      remove(q, row, 'remove', now);
      removed.jobs++;
      removed.until = Math.max(removed.until, row.ended_at ?? 0);
    }
  }
  return removed;
}

/** Reports unreadable completed jobs: an event and a log line for each archive chunk, once. */
export const damageWatch = ({ q }: Host): Feature => ({
  /** The damage that this transaction has found, and that found since the last one. */
  steps(now, when) {
    if (when === 'before') return [];
    return takeDamaged(q.store.sql).map(({ chunk, jobs, sequences }) => {
      const numbers = rangesOf(sequences);
      console.error(
        `tocsin: queue ${q.name} cannot read ${jobs} completed jobs in chunk ${chunk} of its archive: numbers ${numbers} are treated as ended`,
      );
      const data = { chunk, jobs, numbers };
      return { run: () => q.observed.events.add('queue.archive_damaged', q.name, now, data), failed: () => undefined };
    });
  },
});

/** Numbers as text: `3-5, 9`. */
function rangesOf(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(', ');
}
