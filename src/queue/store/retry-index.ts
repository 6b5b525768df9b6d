/** The jobs of retry blocks in memory: where each is, and in which order they become available. */
import { getOrInsert } from '../../job/get-or-insert';
import { sequenceOf } from '../../job/ids';
import { compare, type Position, START } from './due-index';
import type { JobRow } from './job-row';
import { SortedList } from './sorted-list';

export interface RetryBlock {
  readonly id: number;
  readonly entries: readonly RetryEntry[];
  /** Jobs in it that are not over. */
  left: number;
}

/** A job of a retry block, at the time when that was written. */
export interface RetryEntry extends Position {
  readonly sequence: number;
  readonly priority: number;
  readonly claims: number;
  /** Undefined: the transaction that has brought it is not over. */
  block: RetryBlock | undefined;
  place: number;
  /** Until its block is written. */
  row: JobRow | undefined;
  /** It waits or runs, and nothing later is known of it. */
  isLive: boolean;
  /** The block lists it as over. */
  isGone: boolean;
  /** The job's entry in a block that was written before. */
  older: RetryEntry | undefined;
}

export type RetryPlace = Readonly<Position> & Pick<RetryEntry, 'priority'>;

export interface RetriesAround {
  nextSequence(): number;
  /** The row with this key is about to be deleted. */
  forget(key: number): void;
}

/** The entry of a job that waits here. A later call marks it as over or as moved into a block. */
export function entryOf(row: JobRow): RetryEntry {
  const { key, due_at, attempt, claims, priority } = row;
  const place = { block: undefined, place: 0, row, isLive: true, isGone: false, older: undefined };
  return { key, sequence: sequenceOf(key), at: due_at as number, attempt, claims, priority, ...place };
}

type Numbered = Pick<RetryEntry, 'sequence'>;

const byNumber = (a: Numbered, b: Numbered): number => a.sequence - b.sequence;

export class RetryIndex {
  private readonly latest = new Map<number, RetryEntry>();
  /** Live ones of each priority, in the order in which they become available. */
  private readonly turns = new Map<number, SortedList<RetryEntry, Position>>();
  private numbers = new SortedList<RetryEntry, Numbered>(byNumber);
  size = 0;

  clear(): void {
    this.latest.clear();
    this.turns.clear();
    this.numbers = new SortedList<RetryEntry, Numbered>(byNumber);
    this.size = 0;
  }

  live(key: number): RetryEntry | undefined {
    const entry = this.latest.get(key);
    return entry?.isLive ? entry : undefined;
  }

  *of(key: number): Generator<RetryEntry> {
    for (let entry = this.latest.get(key); entry; entry = entry.older) yield entry;
  }

  *priorities(): Generator<number> {
    for (const [priority, turn] of this.turns) if (!turn.isEmpty) yield priority;
  }

  // ---- changes ----------------------------------------------------------------------------------

  /** Learns of a stored entry. It lives until {@link begin}, unless it is over or its job has a later one. */
  learn(entry: RetryEntry): void {
    const known = this.latest.get(entry.key);
    if (!known || known.claims < entry.claims) {
      if (known) this.end(known);
      entry.older = known;
      this.latest.set(entry.key, entry);
      return;
    }
    this.end(entry);
    entry.older = known.older;
    known.older = entry;
  }

  /** All that were stored are known. @returns those that are not over as far as their blocks show */
  learnt(): RetryEntry[] {
    return [...this.latest.values()].filter(({ isLive }) => isLive);
  }

  /** Those that were learnt and are not over take their places. */
  begin(): void {
    const live = this.learnt();
    this.numbers.fill([...live]);
    for (const [priority, entries] of Map.groupBy(live, (entry) => entry.priority)) this.turn(priority).fill(entries);
    this.size = live.length;
  }

  add(entry: RetryEntry): void {
    entry.older = this.latest.get(entry.key);
    this.latest.set(entry.key, entry);
    this.turn(entry.priority).add(entry);
    this.numbers.add(entry);
    this.size++;
  }

  /** The entry is over, before all of them have places. */
  end(entry: RetryEntry): void {
    if (!entry.isLive) return;
    entry.isLive = false;
    if (entry.block) entry.block.left--;
  }

  leave(entry: RetryEntry): void {
    if (!entry.isLive) return;
    this.end(entry);
    this.turn(entry.priority).delete(entry);
    this.numbers.delete(entry);
    this.size--;
  }

  /** The block of the entry is no more, or it never had one. */
  forget(entry: RetryEntry): void {
    const first = this.latest.get(entry.key);
    if (first === entry) {
      if (entry.older) this.latest.set(entry.key, entry.older);
      else this.latest.delete(entry.key);
      return;
    }
    for (let known = first; known; known = known.older) if (known.older === entry) known.older = entry.older;
  }

  private turn(priority: number): SortedList<RetryEntry, Position> {
    return getOrInsert(this.turns, priority, () => new SortedList<RetryEntry, Position>(compare));
  }

  // ---- reading in order. Do not change anything meanwhile ---------------------------------------

  /** Those of a priority that come after a position and become available up to a moment, epoch ms. */
  *inTurn(priority: number, after: Position = START, until = Number.POSITIVE_INFINITY): Generator<RetryEntry> {
    for (const entry of this.turns.get(priority)?.after(after) ?? []) {
      if (entry.at > until) return;
      yield entry;
    }
  }

  after(sequence: number): Generator<RetryEntry> {
    return this.numbers.after({ sequence });
  }

  before(sequence: number): Generator<RetryEntry> {
    return this.numbers.before({ sequence });
  }
}
