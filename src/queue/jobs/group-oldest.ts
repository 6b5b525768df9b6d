/** Finds the jobs of groups that have waited longest. Reads a bounded part of the backlog, and continues there. */
import { RANK_BIT } from '../../job/ids';
import { STANDS_IN_LINE } from '../store/columns';
import { type JobRow, STATE } from '../store/job-row';
import type { Stored } from '../store/parts';
import { groupOfRow } from '../store/row-texts';
import { availableSince } from '../store/rows';

/** Jobs looked at for one request: in the blocks of the line, and elsewhere, of each kind. */
const MAX_HEADS = 100_000;
const MAX_OTHERS = 25_000;

/** A job as it was found. `at`: when it became, or becomes, available, epoch ms. */
interface Candidate {
  key: number;
  at: number;
}

type OwnRow = Pick<JobRow, 'key' | 'body' | 'enqueued_at' | 'due_at'>;
type Place = OwnRow & Pick<JobRow, 'group'>;

const AT_LAST = Number.MAX_SAFE_INTEGER / 2;

class Search {
  readonly found = new Map<string, Candidate[]>();
  /** Looked at all that wait. */
  isAll = true;

  constructor(
    private readonly wanted: ReadonlyMap<string, number>,
    private readonly isOut: (key: number) => boolean,
  ) {}

  /**
   * Looks at ordered jobs of one kind until it has enough of each group. @returns the last key, unless all were seen
   */
  look(jobs: Iterable<Place>, most: number, isPending = false): number | undefined {
    const left = new Map(this.wanted);
    let looked = 0;
    for (const job of jobs) {
      if (left.size === 0) return job.key;
      if (looked++ >= most) {
        this.isAll = false;
        return job.key;
      }
      const group = groupOfRow(job);
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
export interface Longest {
  keys: Map<string, number[]>;
  /** False: there may be others that have waited longer, or as long. */
  isAll: boolean;
  /** These are about to go: the next search continues behind them. */
  taken(): void;
}

/**
 * The longest-waiting jobs of each group: available ones first, then delayed, then pending; never running ones.
 * @param except keys of others
 */
export function longestWaitingOf(q: Stored, wanted: ReadonlyMap<string, number>, except: ReadonlySet<number>): Longest {
  const { blocks, leases, cursors, priorities, locks } = q.store;
  const search = new Search(wanted, (key) => leases.active.has(key) || except.has(key) || locks.has(key));
  // No job comes back into a block of the line, so what was read once need not be read again.
  const known = Math.min(...Array.from(wanted.keys(), (group) => cursors.readForGroup(group)));
  const end = search.look(blocks.line.after(Math.max(leases.head, known), false), MAX_HEADS) ?? q.store.nextSequence;
  const line = new Map(Array.from(search.found, ([group, found]) => [group, found.map(({ key }) => key)]));
  const rows = (where: string, ...bindings: number[]) => search.look(ownRows(q, where, ...bindings), MAX_OTHERS);
  search.look(blocks.singles.after(0), MAX_OTHERS);
  rows(`key > ? AND key < ${RANK_BIT} AND ${STANDS_IN_LINE} ORDER BY key`, leases.head);
  for (const priority of priorities) {
    rows('priority = ? AND due_at IS NOT NULL ORDER BY due_at, attempt, key', priority);
    search.look(blocks.due.inTurn(priority, undefined, undefined, false), MAX_OTHERS);
    search.look(blocks.retries.inTurn(priority), MAX_OTHERS);
  }
  search.look(ownRows(q, `state = ${STATE.pending} ORDER BY key`), MAX_OTHERS, true);
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

function ownRows({ store: { sql } }: Stored, where: string, ...bindings: number[]): Iterable<OwnRow> {
  return sql.exec<OwnRow & Record<string, SqlStorageValue>>(
    `SELECT key, body, enqueued_at, due_at FROM jobs WHERE ${where}`,
    ...bindings,
  );
}

function firstOf(found: readonly Candidate[] = [], count: number): number[] {
  const inOrder = [...found].sort((a, b) => a.at - b.at || (a.key % RANK_BIT) - (b.key % RANK_BIT));
  return inOrder.slice(0, count).map(({ key }) => key);
}
