/** How far one consumer of jobs has read, and its verdict on a job. */
import { getOrInsert } from '../../job/get-or-insert';
import type { GroupRules } from '../../job/group-rules';
import { compare, compareInLine, type Position, positionInLine, positionOf, START } from './due-index';
import { Turns } from './groups/turns';
import type { JobRow } from './job-row';
import { KeyLanes, laneName, laneOf } from './limits/lanes';
import { type Sizes, type Turn, UNSHARED } from './sizes';

/** Whose job it is that enters the due index. */
export interface Owned {
  group: string | undefined;
  /** Do all others of its group wait for its end? */
  isHolder: boolean;
  /** Is that found where it stands in the due index? */
  isFoundLater: boolean;
  /** May others of its group that were read already have to wait for it? */
  isOutOfOrder: boolean;
  /** It continues, and does not wait for the rate of its group. */
  goesOn: boolean;
}

/** Names the line among the ranks; others have the number of their priority. */
export const LINE = 'line';
export type RankName = number | typeof LINE;

export class Scan {
  line = 0;
  /** Where it began to read the line. */
  private start = 0;
  /** True while nothing was passed over that another consumer might want. */
  exact = true;
  readonly due = new Map<number, Position>();
  /** The last selection left nothing behind that its consumer wants. */
  emptied = false;
  /** The last selection ended because it had read enough, and moved on: the next one continues there. */
  unfinished = false;
  /** {@link unfinished} because it read ahead as much as one selection may. */
  isCutShort = false;

  /** What was read ahead, by priority, where the queue serves its groups in turns. */
  readonly turns = new Map<number, Turns>();

  /** What was read and waits for its key, by rank. */
  readonly behind = new Map<RankName, KeyLanes>();
  /** The keys of jobs that were read ahead again since their keys have room, and were not looked at since. */
  private readonly again = new Set<number>();

  constructor(readonly memory = UNSHARED) {}

  /** How far the line is taken, as far as this consumer knows; 0: it does not. */
  get head(): number {
    if (!this.exact) return 0;
    const behind = this.behind.get(LINE);
    const taken = behind && !behind.isEmpty ? Math.min(this.line, behind.lowest - 1) : this.line;
    const turns = this.turns.get(0);
    return turns ? Math.min(taken, turns.inLineFrom(this.line) - 1) : taken;
  }

  get hasBehind(): boolean {
    for (const lanes of this.behind.values()) if (!lanes.isEmpty) return true;
    return false;
  }

  behindAt(rank: RankName): KeyLanes {
    return getOrInsert(this.behind, rank, () => new KeyLanes(rank === LINE ? compareInLine : compare, this.memory));
  }

  /** Jobs wait for the key that may start. @param starts how many @param runs and of those that have begun */
  opens(key: string, starts: number, runs: number): boolean {
    let isNew = false;
    for (const lanes of this.behind.values()) {
      if (starts > 0 && lanes.opens(laneName(key, false), this.atOnce(starts))) isNew = true;
      if (runs > 0 && lanes.opens(laneName(key, true), this.atOnce(runs))) isNew = true;
    }
    return isNew;
  }

  /** How many jobs of a key are read again when it has room; read ahead, no more than that. */
  protected atOnce(room: number): number {
    return this.turns.size > 0 ? room : Number.POSITIVE_INFINITY;
  }

  /** A job that has waited for its key is read ahead again: it may take a part of the room. */
  readsAgain(key: number): void {
    if (this.again.size % AGAIN_PER_LOOK === 0 && this.again.size >= this.memory.roomFor(this.again.size))
      this.again.clear();
    this.again.add(key);
  }

  /** A job is looked at. @returns was it read again since its key has room, and not looked at since? */
  looksAgain(key: number): boolean {
    return this.again.delete(key);
  }

  /** A job was read ahead, and waits for its key, which has no room. @param priority at which it was read */
  waits(row: JobRow, priority = row.priority): void {
    const name = laneOf(row);
    if (name === undefined) return;
    this.behindAt(rankOf(row, priority)).waits(name, row.due_at === null ? positionInLine(row) : positionOf(row));
  }

  /** A job leaves the room of its key to another. @returns whether one waits for it */
  yields(row: JobRow, priority = row.priority): boolean {
    const name = laneOf(row);
    return name !== undefined && this.behind.get(rankOf(row, priority))?.opensForOne(name) === true;
  }

  /** Drops the first jobs behind this key whose starts are not counted, as long as they no longer wait. */
  dropBehind(key: string, isOver: (key: number) => boolean): void {
    for (const lanes of this.behind.values()) lanes.dropWhile(laneName(key, false), isOver);
  }

  /** Do jobs wait here for this key, as far as is known without room? */
  waitsFor(key: string): boolean {
    for (const lanes of this.behind.values()) {
      if (lanes.isClosed(laneName(key, false)) || lanes.isClosed(laneName(key, true))) return true;
    }
    return false;
  }

  /** A row enters the due index, not behind the cursor. @param owned absent: the queue knows no groups */
  entered(priority: number, position: Position, owned?: Owned): void {
    const turns = this.turns.get(priority);
    if (turns && owned?.isHolder && (!owned.isFoundLater || turns.knows(owned.group))) {
      turns.putBack(position, owned.group, true);
      return;
    }
    const cursor = this.due.get(priority);
    if (!cursor || compare(position, cursor) > 0) return;
    if (!turns) this.due.set(priority, { ...position, key: position.key - 1 });
    else if (owned?.isHolder) turns.putBack(position, owned.group, true);
    else if (owned?.goesOn) turns.putBack(position, owned.group);
    // Jobs that were enqueued before it in its millisecond may not be read yet: the line has a cursor of its own.
    else if (owned?.isOutOfOrder) turns.isStale = true;
    else if (!turns.isLate(position)) turns.add(position, owned?.group);
    else turns.putBack(position, owned?.group);
  }

  moved(priority: number, key: number, group: string | undefined): void {
    this.turns.get(priority)?.moved(key, group);
  }

  /**
   * What was read ahead at this priority. Jobs that hold up their groups are there from the start, however long the
   * backlog before them. @param holders the keys of these jobs, by group
   */
  turnsAt(
    priority: number,
    rules: Pick<GroupRules, 'weightOf'>,
    holders: Iterable<readonly [string, readonly number[]]>,
  ): Turns {
    return getOrInsert(this.turns, priority, () => {
      const turns = new Turns((group) => rules.weightOf(group));
      for (const [group, keys] of holders) for (const key of keys) turns.putBack({ ...START, key }, group, true);
      return turns;
    });
  }

  /** Memory that it takes, in entries. */
  get held(): number {
    let sum = this.again.size;
    for (const { held } of this.turns.values()) sum += held;
    for (const { held } of this.behind.values()) sum += held;
    return sum;
  }

  /** The group may start a job again. */
  freed(group: string): void {
    for (const turns of this.turns.values()) turns.freed(group);
  }

  /** When the first of the groups may start a job again that wait for a moment, epoch ms. */
  get nextGroup(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { nextWake } of this.turns.values()) next = Math.min(next, nextWake);
    return next;
  }

  /** Groups may start a job again whose moment has come. */
  wakeGroups(now: number): void {
    for (const turns of this.turns.values()) turns.wake(now);
  }

  copy(other: Scan): void {
    // What another one has read ahead, and not taken, is read again.
    const isAhead = other.turns.size > 0 || other.hasBehind;
    this.reset(isAhead ? other.head : other.line);
    this.exact = false;
    if (isAhead) return;
    for (const [priority, position] of other.due) this.due.set(priority, position);
  }

  /** Reads again what is not taken, if some of it was read in a wrong order. @returns whether it does */
  rereads(priority: number): boolean {
    if (!this.turns.get(priority)?.isStale) return false;
    this.reset(this.start);
    return true;
  }

  /** What was read ahead is read again: a job takes its place among those of its moment. */
  readsInOrder(): void {
    for (const turns of this.turns.values()) turns.isStale = true;
  }

  /** Starts over: after an error, or when what the consumer wants has changed. */
  reset(head = 0): void {
    this.start = head;
    this.line = head;
    this.exact = true;
    this.due.clear();
    this.turns.clear();
    this.behind.clear();
    this.again.clear();
  }
}

/** Keys of jobs that were read again between two checks of how much memory they take. */
const AGAIN_PER_LOOK = 100;

const rankOf = ({ due_at }: JobRow, priority: number): RankName => (due_at === null ? LINE : priority);

export type Verdict =
  | 'take'
  /** Never for this consumer while the row stays as it is: running, expired, or of a type that is not pushed. */
  | 'pass'
  /** For this consumer, but not now. */
  | 'hold'
  /** Like `hold`, and the selection can end. */
  | 'stop'
  /** For this consumer, once its key has room. */
  | 'wait';

/** Characters of job bodies taken at most by one selection, unless one job alone is larger: a message holds 32 MiB. */
export const MAX_TAKEN_CHARS = 8 * 1024 * 1024;

/** One selection of jobs: what it has taken and read so far. */
export class JobSelection {
  readonly taken: JobRow[] = [];
  /** Was anything read that the next selection need not read again? */
  hasMoved = false;
  /** Took less than it could, because it has read as many rows ahead as it may. */
  isCutShort = false;
  private stopped = false;
  private read = 0;
  private readChars = 0;
  private chars = 0;

  /** @param limit jobs at most @param judge called per row in turn @param starting jobs by group without a lease */
  constructor(
    private readonly limit: number,
    private readonly judge: (row: JobRow) => Verdict,
    readonly starting: Map<string, number>,
    private readonly sizes: Pick<Sizes, 'read' | 'readChars'>,
    private readonly turn?: Turn,
  ) {}

  get left(): number {
    return this.limit - this.taken.length;
  }

  get isSated(): boolean {
    return this.stopped || this.left <= 0 || this.chars >= MAX_TAKEN_CHARS;
  }

  /** {@link isSated}, or as much was read as one selection may. */
  get isFull(): boolean {
    return this.isSated || this.read >= this.sizes.read || this.readChars >= this.sizes.readChars;
  }

  look(row: JobRow): Verdict {
    const verdict = this.judge(row);
    this.passed(row);
    this.stopped = verdict === 'stop';
    if (verdict === 'take') {
      this.taken.push(row);
      this.chars += row.body.length;
    }
    return verdict;
  }

  /** A row was read that there was no need to look at. */
  passed({ body }: Pick<JobRow, 'body'>): void {
    this.read++;
    this.readChars += body.length;
    this.turn?.spend({ looks: 1 });
  }
}
