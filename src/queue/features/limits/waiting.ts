/** Counts the available jobs of keys, from what is stored. */
import { eachAvailable } from '../../read/available';
import type { WaitingJobs } from '../../store/limits/limiter';
import type { Stored } from '../../store/parts';

const MAX_HEADS = 100_000;

export interface WaitingUnder {
  counts: ReadonlyMap<string, WaitingJobs>;
  /** False: there may be more, as not all that is available was looked at. */
  isAll: boolean;
}

/** Counts the jobs under these keys. Reads a bounded part of the backlog. @param now epoch ms */
export function waitingUnder(q: Stored, keys: ReadonlySet<string>, now: number): WaitingUnder {
  const counts = new Map<string, WaitingJobs>();
  const isAll = eachAvailable(q, now, MAX_HEADS, ({ limitKey, isBegun }) => {
    if (limitKey === null || !keys.has(limitKey)) return;
    const found = counts.get(limitKey) ?? { all: 0, begun: 0 };
    found.all++;
    if (isBegun) found.begun++;
    counts.set(limitKey, found);
  });
  return { counts, isAll };
}
