/**
 * The bound of a group's waiting jobs: what exceeds it is refused, or replaces the jobs that waited longest. These are
 * found in a bounded part of the backlog; the next request continues there.
 */
import type { ApiError } from '../../job/errors';
import { RANK_BIT } from '../../job/ids';
import { quote } from '../../job/text';
import { isEarlierEntry, type Placement } from '../../job/unique/conflicts';
import { GROUP_OF_BODY } from '../read/filter';
import { groupOfRow, type JobRow, STANDS_IN_LINE, STATE } from '../store/job-row';
import type { Configured, Named, QueueParts, Stored, StoredQueue } from '../store/parts';
import { rowByKey } from '../store/row-lookup';
import { availableSince, isTooLate } from '../store/rows';
import { UNDOES_NONE, undoesOther } from '../store/undo-job';
import { full } from './backpressure';
import type { StoredJob } from './conflicts';
import { drop, expire } from './expire';

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

/** Jobs looked at for one request: heads in the blocks of the line; in other blocks; and with rows of their own. */
const MAX_HEADS = 100_000;
const MAX_OTHERS = 25_000;

/** Characters of the bodies of those that are not heads, each of the two kinds. */
const MAX_CHARS = 32 * 1024 * 1024;

/** How much one request may look at, in all places that draw on it. */
interface Budget {
  jobs: number;
  chars: number;
}

/** A job as it was found. `at`: when it became, or becomes, available, epoch ms. */
interface Candidate {
  key: number;
  at: number;
}

type Place = Pick<JobRow, 'key' | 'enqueued_at' | 'due_at'> & { group: string | undefined; chars: number };
type OwnRow = Omit<Place, 'group'> & { grp: string | null };

const AT_LAST = Number.MAX_SAFE_INTEGER / 2;

class Search {
  readonly found = new Map<string, Candidate[]>();
  isAll = true;

  constructor(
    private readonly wanted: ReadonlyMap<string, number>,
    private readonly isOut: (key: number) => boolean,
  ) {}

  /** Looks at ordered jobs of a kind until it has enough of each group. @returns the last key, unless all were seen */
  look(jobs: Iterable<Place>, budget: Budget, isPending = false): number | undefined {
    const left = new Map(this.wanted);
    for (const job of jobs) {
      if (left.size === 0) return job.key;
      if (budget.jobs-- <= 0 || budget.chars <= 0) {
        this.isAll = false;
        return job.key;
      }
      budget.chars -= job.chars;
      const { group } = job;
      const needed = group === undefined ? undefined : left.get(group);
      if (group === undefined || needed === undefined || this.isOut(job.key)) continue;
      const candidates = this.found.get(group) ?? [];
      candidates.push({ key: job.key, at: availableSince(job) + (isPending ? AT_LAST : 0) });
      this.found.set(group, candidates);
      if (needed > 1) left.set(group, needed - 1);
      else left.delete(group);
    }
    return undefined;
  }
}

/** The jobs that were found, by group, and how far the line was read for them. */
interface Longest {
  keys: Map<string, number[]>;
  /** False: there may be others that have waited longer, or as long. */
  isAll: boolean;
  /** These are about to go: the next search continues behind them. */
  taken(): void;
}

/** The oldest waiting jobs of each group that undo no other: available, delayed, pending ones. @param except keys */
export function longestWaitingOf(q: Stored, wanted: ReadonlyMap<string, number>, except: ReadonlySet<number>): Longest {
  const { blocks, leases, cursors, priorities, locks } = q.store;
  const search = new Search(wanted, (key) => leases.active.has(key) || except.has(key) || locks.has(key));
  // No job comes back into a block of the line, so what was read once need not be read again.
  const known = Math.min(...Array.from(wanted.keys(), (group) => cursors.readForGroup(group)));
  const heads = placesOf(q, blocks.line.after(Math.max(leases.head, known), false));
  const end = search.look(heads, { jobs: MAX_HEADS, chars: MAX_CHARS }) ?? q.store.nextSequence;
  const line = new Map(Array.from(search.found, ([group, found]) => [group, found.map(({ key }) => key)]));
  const ofBlocks: Budget = { jobs: MAX_OTHERS, chars: MAX_CHARS };
  const ofRows: Budget = { ...ofBlocks };
  const rows = (where: string, ...bindings: number[]) => search.look(ownRows(q, where, ...bindings), ofRows);
  search.look(placesOf(q, blocks.singles.after(0)), ofBlocks);
  rows(`key > ? AND key < ${RANK_BIT} AND ${STANDS_IN_LINE} ORDER BY key`, leases.head);
  for (const priority of priorities) {
    rows('priority = ? AND due_at IS NOT NULL ORDER BY due_at, attempt, key', priority);
    search.look(placesOf(q, blocks.due.inTurn(priority, undefined, undefined, false)), ofBlocks);
    search.look(placesOf(q, blocks.retries.inTurn(priority)), ofBlocks);
  }
  search.look(ownRows(q, `state = ${STATE.pending} ORDER BY key`), ofRows, true);
  const keys = new Map(Array.from(wanted, ([group, count]) => [group, firstOf(search.found.get(group), count)]));
  const taken = () => {
    for (const [group, chosen] of keys) {
      const stays = line.get(group)?.find((key) => !chosen.includes(key));
      const last = line.get(group)?.at(-1);
      const isFull = (line.get(group)?.length ?? 0) >= (wanted.get(group) as number);
      cursors.hasReadForGroup(group, (stays ?? (isFull && last !== undefined ? last + 1 : end)) - 1);
    }
  };
  return { keys, isAll: search.isAll, taken };
}

function* placesOf(q: Stored, rows: Iterable<JobRow>): Generator<Place> {
  for (const row of rows) {
    if (undoesOther(q, row)) continue;
    const { key, enqueued_at, due_at, body } = row;
    yield { key, enqueued_at, due_at, group: groupOfRow(row), chars: body.length };
  }
}

function* ownRows({ store: { sql } }: Stored, where: string, ...bindings: number[]): Generator<Place> {
  const columns = `key, enqueued_at, due_at, length(body) AS chars, ${GROUP_OF_BODY} AS grp`;
  const rows = sql.exec<OwnRow & Record<string, SqlStorageValue>>(
    `SELECT ${columns} FROM jobs WHERE ${UNDOES_NONE} AND ${where}`,
    ...bindings,
  );
  for (const { grp, ...row } of rows) yield { ...row, group: grp ?? undefined };
}

function firstOf(found: readonly Candidate[] = [], count: number): number[] {
  const inOrder = [...found].sort((a, b) => a.at - b.at || (a.key % RANK_BIT) - (b.key % RANK_BIT));
  return inOrder.slice(0, count).map(({ key }) => key);
}
