/**
 * A lane: the waiting jobs of one group, as one consumer has read them ahead. In memory only, and without bodies.
 * Consecutive numbers are one entry, so a backlog of one group takes next to nothing; other entries take 24 bytes.
 */
import { RANK_BIT } from '../../../job/ids';
import { compare, type Position } from '../due-index';

/** Numbers of an entry of {@link Lane.runs}: the first key, how many consecutive ones, and the order of the first. */
const ENTRY = 3;

/** Taken entries are cut off once they have this many numbers. */
const MOST_TAKEN = 3 * 1024;

/** The order of jobs that came back: before all that were read since. */
const RETURNED = -1;

export class Lane {
  /** Where it stands among the lanes: nowhere, ready, or until its group may start another job. */
  place: 'none' | 'quiet' | 'noisy' | 'blocked' = 'none';
  /** Raised whenever it is put somewhere, so that its older entries of a heap count no more. */
  stamp = 0;
  /** Its virtual time: turns taken, divided by its weight. */
  time = 0;
  /** It has had more jobs waiting than a quiet one, and has not been empty since. */
  isNoisy = false;
  size = 0;
  /** There were more jobs behind these, which are read again once these are taken. */
  isCut = false;
  /** The first key of those that stand in the line. */
  private cutInLine = Number.POSITIVE_INFINITY;
  private runs: number[] = [];
  private start = 0;
  /** Jobs that came back: they stand before the others. */
  private readonly returned: Position[] = [];

  /** @param group undefined: the jobs without a group @param weight its share in the turns */
  constructor(
    readonly group: string | undefined,
    readonly weight: number,
  ) {}

  get entries(): number {
    return (this.runs.length - this.start) / ENTRY + this.returned.length;
  }

  /** The key of the job whose turn it is. */
  get first(): number | undefined {
    return this.returned[0]?.key ?? this.runs[this.start];
  }

  /** Did all others wait for the end of that job when it was put back? */
  get isFirstHolder(): boolean {
    return this.returned[0]?.at === Number.NEGATIVE_INFINITY;
  }

  get order(): number {
    return this.returned.length > 0 ? RETURNED : (this.runs[this.start + 2] as number);
  }

  /** The first key of a job that stands in the line; infinite when there is none. */
  get inLine(): number {
    let first = Math.min(this.cutInLine, this.inLineFrom(this.start));
    for (const { key } of this.returned) if (key < RANK_BIT && key < first) first = key;
    return first;
  }

  /** {@link inLine} of those that came from this place on, and did not come back. */
  private inLineFrom(start: number): number {
    for (let at = start; at < this.runs.length; at += ENTRY) {
      const key = this.runs[at] as number;
      if (key < RANK_BIT) return key;
    }
    return Number.POSITIVE_INFINITY;
  }

  /** Forgets all but the first entries. Those that came back stay. */
  cut(most: number): void {
    const { runs, start } = this;
    const end = start + ENTRY * Math.max(1, most - this.returned.length);
    if (end >= runs.length) return;
    this.isCut = true;
    this.cutInLine = Math.min(this.cutInLine, this.inLineFrom(end));
    for (let at = end; at < runs.length; at += ENTRY) this.size -= runs[at + 1] as number;
    runs.length = end;
  }

  /** A job was read that waits behind those that were cut. */
  skip(key: number): void {
    if (key < RANK_BIT) this.cutInLine = Math.min(this.cutInLine, key);
  }

  /** Takes the job out, wherever it stands. Looks at all entries. */
  remove(key: number): void {
    const { runs, returned } = this;
    const again = returned.findIndex((position) => position.key === key);
    if (again >= 0) returned.splice(again, 1);
    for (let at = this.start; again < 0; at += ENTRY) {
      if (at >= runs.length) return;
      const [from, count, order] = runs.slice(at, at + ENTRY) as [number, number, number];
      const before = key - from;
      if (before < 0 || before >= count) continue;
      const parts = [
        [from, before, order],
        [key + 1, count - before - 1, order + before + 1],
      ];
      runs.splice(at, ENTRY, ...parts.filter(([, left]) => left !== 0).flat());
      break;
    }
    this.size--;
  }

  /** A job was read that waits behind all others. */
  push(key: number, order: number): void {
    this.size++;
    const { runs } = this;
    const last = runs.length - ENTRY;
    const count = runs[last + 1] as number;
    if (last >= this.start && runs[last] === key - count && runs[last + 2] === order - count)
      runs[last + 1] = count + 1;
    else runs.push(key, 1, order);
  }

  /** A job waits again that was read before: it keeps the place that it had. */
  putBack(position: Position): void {
    this.size++;
    const { returned } = this;
    let at = returned.length;
    while (at > 0 && compare(returned[at - 1] as Position, position) > 0) at--;
    returned.splice(at, 0, position);
  }

  /** The first one is taken, or waits no more. */
  shift(): void {
    this.size--;
    if (this.returned.shift()) return;
    const { runs, start } = this;
    const left = (runs[start + 1] as number) - 1;
    if (left > 0) {
      runs[start] = (runs[start] as number) + 1;
      runs[start + 1] = left;
      runs[start + 2] = (runs[start + 2] as number) + 1;
      return;
    }
    this.start += ENTRY;
    if (this.start < MOST_TAKEN && this.start < runs.length) return;
    this.runs = runs.slice(this.start);
    this.start = 0;
  }
}

interface HeapEntry {
  lane: Lane;
  rank: number;
  /** Of one rank, a lane that was put in earlier comes first. */
  turn: number;
  stamp: number;
}

const isBefore = (a: HeapEntry, b: HeapEntry): boolean => a.rank < b.rank || (a.rank === b.rank && a.turn < b.turn);

/** Lanes in order of a rank that they have when they are put in. A lane that was put elsewhere since is passed over. */
export class LaneHeap {
  private readonly heap: HeapEntry[] = [];
  private turns = 0;

  constructor(private readonly place: Lane['place']) {}

  /** Puts a lane in. @param rank lower ones come first */
  put(lane: Lane, rank: number): void {
    lane.place = this.place;
    lane.stamp++;
    const { heap } = this;
    // Noisy lanes of one time have no order: those that were just served have their blocks in memory.
    const turn = this.place === 'quiet' ? this.turns++ : 0;
    const entry: HeapEntry = { lane, rank, turn, stamp: lane.stamp };
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as HeapEntry;
      if (!isBefore(entry, above)) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = entry;
  }

  /** The lane of the lowest rank; it stays. */
  get first(): Lane | undefined {
    for (;;) {
      const [top] = this.heap;
      if (!top) return undefined;
      if (top.lane.place === this.place && top.lane.stamp === top.stamp) return top.lane;
      this.removeFirst();
    }
  }

  private removeFirst(): void {
    const { heap } = this;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      const [left, right] = [heap[child], heap[child + 1]];
      if (!left) break;
      if (right && isBefore(right, left)) child++;
      const below = heap[child] as HeapEntry;
      if (!isBefore(below, last)) break;
      heap[at] = below;
      at = child;
    }
    heap[at] = last;
  }
}
