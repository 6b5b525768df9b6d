/** The bound of a group's waiting jobs: what exceeds it is refused, or replaces the jobs that waited longest. */
import type { ApiError } from '../../job/errors';
import { quote } from '../../job/text';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import type { JobRow } from '../store/job-row';
import type { Configured, Named, QueueParts, Stored, StoredQueue } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { groupOfRow } from '../store/row-texts';
import { isTooLate } from '../store/rows';
import { full } from './backpressure';
import type { StoredJob } from './conflicts';
import { drop, expire } from './expire';
import { longestWaitingOf } from './group-oldest';

/** Maximum jobs discarded for one request beyond those it replaces: a lowered bound may be exceeded by many. */
const MOST_BESIDES = 1_000;

export const hasBoundedGroups = ({ config: { groups } }: Configured): boolean => groups?.boundWaiting === true;

interface Lack {
  limit: number;
  waiting: number;
  arriving: number;
}

/**
 * Checks a share of a batch over several queues; discards nothing, because the batch may be abandoned.
 * @throws {ApiError} 429 `GROUP_FULL` where more jobs of a group would wait than its queue allows
 */
export function checkGroupRoom(q: StoredQueue, placements: readonly Placement<StoredJob>[]): void {
  for (const [group, lack] of lacksOf(q, placements)) if (!mayDrop(q, lack)) throw groupFull(q, group, lack);
}

/**
 * Makes sure that the arrivals fit into their groups, discarding old jobs if so configured.
 * @param replaced keys of jobs that go for another reason @param drops may old jobs go?
 * @throws {ApiError} 429 `GROUP_FULL`; then nothing was written
 */
export function makeGroupRoom(
  q: QueueParts,
  placements: readonly Placement<StoredJob>[],
  replaced: () => ReadonlySet<number>,
  now: number,
  drops = true,
): void {
  const lacks = lacksOf(q, placements);
  if (lacks.size === 0) return;
  const wanted = new Map<string, number>();
  let besides = MOST_BESIDES;
  for (const [group, lack] of lacks) {
    if (!drops || !mayDrop(q, lack)) throw groupFull(q, group, lack);
    const surplus = lack.waiting + lack.arriving - lack.limit;
    const more = Math.min(besides, Math.max(0, surplus - lack.arriving));
    besides -= more;
    wanted.set(group, Math.min(surplus, lack.arriving) + more);
  }
  const { keys, isAll, taken } = longestWaitingOf(q, wanted, replaced());
  const victims: JobRow[] = [];
  for (const [group, lack] of lacks) {
    const found = keys.get(group) ?? [];
    // If looking was cut short, the next arrival continues there.
    const needed = lack.waiting + lack.arriving - lack.limit;
    if (isAll && found.length < Math.min(needed, lack.arriving)) throw groupFull(q, group, lack);
    victims.push(...found.flatMap((key) => rowByKey(q.store, key) ?? []));
  }
  taken();
  for (const row of victims) {
    if (isTooLate(row, now)) expire(q, row, now);
    else drop(q, row, 'group_full', now);
  }
}

/** What arrives takes the places of others, unless it alone exceeds the bound. */
const mayDrop = ({ config: { settings } }: Configured, { arriving, limit }: Lack): boolean =>
  settings.groups?.overflow === 'drop_oldest' && arriving <= limit;

function lacksOf(q: Stored & Configured, placements: readonly Placement<StoredJob>[]): Map<string, Lack> {
  const lacks = new Map<string, Lack>();
  if (!hasBoundedGroups(q)) return lacks;
  for (const [group, arriving] of arrivals(q, placements)) {
    const limit = q.config.groups?.limitsOf(group).max_waiting;
    if (arriving <= 0 || limit === undefined) continue;
    const running = q.store.gates.runningOf(group);
    const open = q.store.groupCounts.above(group, limit + running - arriving);
    if (open !== undefined) lacks.set(group, { limit, waiting: open - running, arriving });
  }
  return lacks;
}

/** How many jobs of each group these are, without those that they replace. */
function arrivals(q: Stored, placements: readonly Placement<StoredJob>[]): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (group: string | undefined, by: number) => {
    if (group !== undefined) counts.set(group, (counts.get(group) ?? 0) + by);
  };
  for (const placement of placements) {
    if ('existing' in placement || placement.job.superseded) continue;
    add(placement.job.group, 1);
    for (const replaced of placement.replaces) {
      const row = isEarlierEntry(replaced) ? undefined : rowByKey(q.store, replaced.key);
      const earlier = isEarlierEntry(replaced) ? placements[replaced.index] : undefined;
      add(row ? groupOfRow(row) : earlier && 'job' in earlier ? earlier.job.group : undefined, -1);
    }
  }
  return counts;
}

function groupFull({ name }: Named, group: string, { limit, waiting }: Lack): ApiError {
  const details = { queue: name, group: quote(group), waiting, limit };
  return full('GROUP_FULL', `Group ${JSON.stringify(quote(group))} of queue ${name}`, details);
}
