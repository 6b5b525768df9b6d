/**
 * Lanes: jobs that a consumer has read and that wait for their keys, by rank and key. A closed lane costs nothing; an
 * *open* one is merged in rank order until a job finds no room. With group turns its jobs are read ahead; in strict
 * order they stay in their groups.
 *
 * Memory only, a hint: losing it costs reads, never a job.
 */
import type { Position } from '../due-index';
import { isBegun, type JobRow } from '../job-row';
import { UNSHARED } from '../sizes';
import { SortedList } from '../sorted-list';

/** The memory of a lane, or of a run of jobs in it, in entries. */
const ENTRIES = 4;

/** Times that the lowest key is asked for before it is looked up again. */
const ASKED_PER_LOOK = 64;

/** Jobs with consecutive keys that became available together. */
type Run = Position & { count: number };

type Order = (a: Position, b: Position) => number;

/** The lane of a key: jobs whose start was counted before wait in one of their own, since no rate delays them. */
export const laneName = (key: string, hasBegun: boolean): string => (hasBegun ? `${key} +` : key);

/** The lane that a job waits in; undefined: no key limits it. */
export const laneOf = (row: Pick<JobRow, 'limit_key' | 'attempt' | 'history'>): string | undefined =>
  row.limit_key === null ? undefined : laneName(row.limit_key, isBegun(row));

class KeyLane implements Position {
  at = 0;
  attempt = 0;
  key = 0;
  /** How many of its jobs may be taken until it is opened again; 0: it is not open. */
  left = 0;
  length = 0;
  private readonly runs: SortedList<Run, Position>;

  constructor(
    readonly name: string,
    order: Order,
  ) {
    this.runs = new SortedList<Run, Position>(order);
  }

  get isEmpty(): boolean {
    return this.runs.isEmpty;
  }

  has(position: Position): boolean {
    const run = this.runAt(position);
    return run !== undefined && position.key < run.key + run.count;
  }

  /** Does a job stand here that is not before this position? */
  hasAfter(position: Position): boolean {
    return !this.runs.after(position).next().done;
  }

  add(position: Position): void {
    if (this.has(position)) return;
    const run = this.runAt(position);
    if (run && run.key + run.count === position.key) run.count++;
    else {
      this.runs.add({ at: position.at, attempt: position.attempt, key: position.key, count: 1 });
      this.length++;
    }
    this.begin();
  }

  shift(): void {
    const first = this.runs.first as Run;
    if (first.count > 1) {
      first.key++;
      first.count--;
    } else {
      this.runs.delete(first);
      this.length--;
    }
    this.left--;
    this.begin();
  }

  private begin(): void {
    const { first } = this.runs;
    if (first) [this.at, this.attempt, this.key] = [first.at, first.attempt, first.key];
  }

  /** The run that the position follows, or is in. */
  private runAt({ at, attempt, key }: Position): Run | undefined {
    const [run] = this.runs.before({ at, attempt, key: key + 1 });
    return run?.at === at && run.attempt === attempt ? run : undefined;
  }
}

export class KeyLanes {
  private readonly lanes = new Map<string, KeyLane>();
  private readonly open: SortedList<KeyLane, Position>;
  /** Jobs that were held back for their consumer in the running selection. */
  private aside: [name: string, position: Position][] = [];
  /** From here on jobs were passed over that are not known, and their lanes. */
  private forgotten: { from: Position; names: Set<string> } | undefined;
  /** One of those may have room. */
  private mustGoBack = false;
  /** Lanes and runs of jobs in them, and their maximum. What comes behind is read again when its turn may come. */
  private size = 0;
  private most = 0;
  private asked = 0;
  private bound = 0;

  constructor(
    private readonly order: Order,
    private readonly memory = UNSHARED,
  ) {
    this.open = new SortedList<KeyLane, Position>(order);
    this.most = memory.roomFor(0) / ENTRIES;
  }

  /** Memory that it takes, in entries. */
  get held(): number {
    return ENTRIES * this.size;
  }

  get isEmpty(): boolean {
    return this.lanes.size === 0 && !this.forgotten && this.aside.length === 0;
  }

  /** The open lane whose first job comes first. */
  get first(): KeyLane | undefined {
    return this.open.first;
  }

  /** May jobs start that were forgotten, before any that follow them? The next selection reads them again. */
  get isUnfinished(): boolean {
    return this.mustGoBack;
  }

  /** A key that none of the jobs here is below, as it was a while ago: what is read later has a higher one. */
  get lowest(): number {
    if (this.asked++ % ASKED_PER_LOOK === 0) {
      this.bound = this.forgotten?.from.key ?? Number.POSITIVE_INFINITY;
      for (const { key } of this.lanes.values()) this.bound = Math.min(this.bound, key);
      for (const [, { key }] of this.aside) this.bound = Math.min(this.bound, key);
    }
    return this.bound;
  }

  /** A selection begins. @returns after which position it must read again */
  begin(): Position | undefined {
    this.most = this.memory.roomFor(this.held) / ENTRIES;
    for (const [name, position] of this.aside.splice(0)) {
      this.add(name, position);
      this.opens(name, Number.POSITIVE_INFINITY);
    }
    if (!this.forgotten || !this.mustGoBack) return undefined;
    const { from } = this.forgotten;
    this.mustGoBack = false;
    this.forgotten = undefined;
    this.asked = 0;
    return { ...from, key: from.key - 1 };
  }

  has(name: string, position: Position): boolean {
    return this.lanes.get(name)?.has(position) === true;
  }

  /** The keys of all lanes, as often as they have any. */
  *keys(): Generator<string> {
    for (const name of [...this.lanes.keys(), ...(this.forgotten?.names ?? [])]) yield name.replace(/ \+$/, '');
  }

  add(name: string, position: Position): void {
    let lane = this.lanes.get(name);
    const isBehind = this.forgotten && this.order(position, this.forgotten.from) >= 0;
    if (isBehind || (this.size >= this.most && !lane?.has(position))) {
      this.forget(name, position, lane);
      return;
    }
    if (!lane) {
      lane = new KeyLane(name, this.order);
      this.lanes.set(name, lane);
      this.size++;
    }
    this.change(lane, (changed) => changed.add(position));
    this.bound = Math.min(this.bound, position.key);
  }

  /** A job waits for its key, which has no room. */
  waits(name: string, position: Position): void {
    this.add(name, position);
    const lane = this.lanes.get(name);
    if (lane) this.close(lane);
  }

  /** Drops the first jobs of the lane, as long as they no longer wait where they stood. */
  dropWhile(name: string, isOver: (key: number) => boolean): void {
    let lane = this.lanes.get(name);
    while (lane && isOver(lane.key)) {
      this.drop(lane);
      lane = this.lanes.get(name);
    }
  }

  /** The first job of the lane waits no more where it stood, and takes nothing of the room. */
  drop(lane: KeyLane): void {
    lane.left++;
    this.shift(lane);
  }

  /** The first job of the lane is taken, or may be. */
  shift(lane: KeyLane): void {
    this.change(lane, () => lane.shift());
    if (!lane.isEmpty) return;
    this.remove(lane);
    if (lane.left >= 0 && this.forgotten?.names.has(lane.name)) this.mustGoBack = true;
  }

  /** The first job of the lane is for this consumer, but not now: it waits again when the next selection begins. */
  setAside(lane: KeyLane): void {
    this.aside.push([lane.name, { at: lane.at, attempt: lane.attempt, key: lane.key }]);
    this.shift(lane);
  }

  /** Its key has no room. */
  close(lane: KeyLane): void {
    this.change(lane, () => {
      lane.left = 0;
    });
  }

  /** The key has room. @param most jobs that may be taken then @returns whether the lane was closed */
  opens(name: string, most: number): boolean {
    const lane = this.lanes.get(name);
    if (!lane) {
      if (!this.forgotten?.names.has(name) || this.mustGoBack) return false;
      this.mustGoBack = true;
      return true;
    }
    const wasOpen = lane.left > 0;
    this.change(lane, () => {
      lane.left = Math.max(lane.left, most);
    });
    return !wasOpen;
  }

  /** One job of a closed lane may be taken. @returns whether there is such a lane */
  opensForOne(name: string): boolean {
    return this.lanes.has(name) && this.opens(name, 1);
  }

  /** Does a job wait in this lane that has no room, as far as is known? */
  isClosed(name: string): boolean {
    const lane = this.lanes.get(name);
    return lane ? lane.left <= 0 : this.forgotten?.names.has(name) === true && !this.mustGoBack;
  }

  /** There is no memory left for the job, or for one before it: jobs of its lane that follow it are forgotten, too. */
  private forget(name: string, position: Position, lane: KeyLane | undefined): void {
    let from = position;
    if (lane?.hasAfter(position)) {
      if (this.order(lane, from) < 0) from = { at: lane.at, attempt: lane.attempt, key: lane.key };
      this.remove(lane);
    }
    this.forgotten ??= { from, names: new Set() };
    if (this.order(from, this.forgotten.from) < 0) this.forgotten.from = from;
    this.forgotten.names.add(name);
  }

  private remove(lane: KeyLane): void {
    this.open.delete(lane);
    this.lanes.delete(lane.name);
    this.size -= 1 + lane.length;
  }

  /** Changes a lane, which may stand at another place among the open ones then. */
  private change(lane: KeyLane, how: (lane: KeyLane) => void): void {
    if (lane.left > 0 && !lane.isEmpty) this.open.delete(lane);
    this.size -= lane.length;
    how(lane);
    this.size += lane.length;
    if (lane.left > 0 && !lane.isEmpty) this.open.add(lane);
  }
}
