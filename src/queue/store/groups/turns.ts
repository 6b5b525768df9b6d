/**
 * Whose turn it is: the waiting jobs of one priority by group, as one consumer has read them ahead.
 *
 * A group with up to 30 waiting jobs is *quiet*. Quiet jobs are taken in the order in which they became available,
 * before those of *noisy* groups. Noisy groups take turns of up to 8 jobs. The lane with the least virtual time comes
 * first, and each of its jobs adds 1 ÷ weight to that time. An eighth of what is claimed is kept for noisy groups, so
 * they always make progress.
 *
 * Entries here are hints: the row of a job decides whether it still waits. Losing all of them costs reads, never a job.
 */
import { getOrInsert } from '../../../job/get-or-insert';
import type { Position } from '../due-index';
import { SIZES, type Sizes } from '../sizes';
import { Lane, LaneHeap } from './lane';

/** A group with more waiting jobs is noisy. */
export const QUIET = 30;

/** Jobs of a noisy group in one turn. */
const TURN = 8;

/** The share of a claim that is kept for noisy groups, and what they may have saved of it. */
const SHARE = 1 / 8;
const MOST_SAVED = 64;

/** A lane takes about as much memory as this many entries. */
const LANE_ENTRIES = 16;

/** Claims after which it is looked where the first job of the line waits. */
const CLAIMS_PER_LOOK = 64;

export class Turns {
  private readonly lanes = new Map<string | undefined, Lane>();
  private readonly quiet = new LaneHeap('quiet');
  private readonly noisy = new LaneHeap('noisy');
  /** Not everything here is in order: it must be read again. */
  isStale = false;
  /** When the last one became available of those that were read. */
  private latest = Number.NEGATIVE_INFINITY;
  private nextOrder = 0;
  private entries = 0;
  /** Entries of the lanes that may not start jobs. */
  private blocked = 0;
  /** The number of entries after such lanes were cut. */
  private cutAt = 0;
  private quietJobs = 0;
  /** The virtual time of the last turn: a lane that begins has as much. */
  private time = 0;
  private saved = 0;
  /** What is left for noisy groups of the claim under way, and of the turn of the lane that is served. */
  private kept = 0;
  private turn: { lane: Lane; left: number } | undefined;
  /** Jobs of noisy groups that went before others which were not read yet, beside what is kept for them. */
  private readonly early = new Map<Lane, number>();
  private readonly aside: { group: string | undefined; position: Position }[] = [];
  private readonly waiting: Lane[] = [];
  /** Jobs that have begun and wait for their moments, by key, and the first of these moments. */
  private readonly sleeping = new Map<number, { group: string | undefined; position: Position }>();
  /** Groups that start no job before a moment, epoch ms. */
  private readonly closed = new Map<string, number>();
  private firstDue = Number.POSITIVE_INFINITY;
  /** No job of the line that waits here has a lower key. */
  private bound = 0;
  private claims = 0;

  constructor(private readonly weightOf: (group: string) => number) {}

  get isEmpty(): boolean {
    return this.entries === 0;
  }

  /** Memory that it takes, in entries. The jobs of blocked lanes fill no bound: they would shut others out. */
  get held(): number {
    return this.entries + LANE_ENTRIES * this.lanes.size - this.blocked;
  }

  /** May more be read ahead? Cuts blocked lanes first. @param count left of the claim @param room for {@link held} */
  wantsMore(count: number, room: number = SIZES.memory, { entries, quiet }: Readonly<Sizes> = SIZES): boolean {
    if (this.entries >= entries) this.cut(entries);
    const hasRoom = this.entries - this.blocked < entries && this.held < room;
    return hasRoom && this.quietJobs < Math.min(quiet, count + QUIET);
  }

  /**
   * A key before which no job of the line waits here. What is read later has a higher key or lowers the answer, so an
   * older one still holds: most claims use that.
   * @param line the key up to which the line was read
   */
  inLineFrom(line: number): number {
    if (this.claims % CLAIMS_PER_LOOK === 0) {
      this.bound = line + 1;
      for (const lane of this.lanes.values()) this.bound = Math.min(this.bound, lane.inLine);
    }
    this.claims++;
    return this.bound;
  }

  /** Did this job become available before one that was read already? Jobs of one moment have no order. */
  isLate({ at }: Position): boolean {
    return at < this.latest;
  }

  /** A job was read that waits behind all others of its group. */
  add(position: Position, group: string | undefined): void {
    const lane = this.laneOf(group);
    if (lane.isCut) lane.skip(position.key);
    else this.count(lane, () => lane.push(position.key, this.nextOrder++));
    this.latest = Math.max(this.latest, position.at);
  }

  /** A job waits that became available before others that were read. @param isHolder others of its group wait for it */
  putBack(position: Position, group: string | undefined, isHolder = false): void {
    this.bound = Math.min(this.bound, position.key);
    const lane = this.laneOf(group);
    this.count(lane, () => lane.putBack(isHolder ? { ...position, at: Number.NEGATIVE_INFINITY } : position));
    // It may be what the others of its group wait for.
    if (lane.place === 'blocked' || lane.first === position.key) this.place(lane);
  }

  freed(group: string): void {
    const lane = this.lanes.get(group);
    if (lane?.place === 'blocked') this.place(lane);
  }

  /** A claim begins. @param count jobs that it takes at most @param now epoch ms */
  begin(count: number, now: number): void {
    this.wake(now);
    this.saved = Math.max(0, this.saved);
    this.kept = Math.min(count, Math.floor(Math.min(MOST_SAVED, this.saved + count * SHARE)));
  }

  /** It ends: what was held back for its consumer waits again. @param isBehind more waits than could be read ahead */
  end(isBehind = false): void {
    if (!isBehind) this.early.clear();
    const { turn } = this;
    this.turn = undefined;
    if (turn?.lane.place === 'noisy') this.place(turn.lane);
    for (const { group, position } of this.aside.splice(0)) this.putBack(position, group);
    for (const lane of this.waiting.splice(0)) if (lane.place === 'blocked') this.place(lane);
  }

  /** The lane whose turn it is. @param left jobs that the claim still takes */
  next(left: number): Lane | undefined {
    const { turn } = this;
    if (turn && turn.left > 0 && turn.lane.place === 'noisy' && left <= this.kept) return turn.lane;
    if (left > this.kept) {
      const lane = this.quiet.first;
      if (lane) return lane;
    }
    return this.beginTurn() ?? this.quiet.first;
  }

  private beginTurn(): Lane | undefined {
    if (this.turn && this.turn.left > 0 && this.turn.lane.place === 'noisy') return this.turn.lane;
    const lane = this.noisy.first;
    if (!lane) return undefined;
    this.time = Math.max(this.time, lane.time);
    this.turn = { lane, left: TURN };
    return lane;
  }

  /** Has the noisy group had as many jobs as a quiet one has, while quiet ones may not be read yet? */
  isTooEarly(lane: Lane): boolean {
    return lane.isNoisy && lane.group !== undefined && this.kept <= 0 && (this.early.get(lane) ?? 0) >= QUIET;
  }

  taken(lane: Lane): void {
    // What is only looked at, or asked for in vain, saves nothing.
    this.saved = Math.min(MOST_SAVED, this.saved + SHARE);
    if (lane.isNoisy && lane.group !== undefined) {
      lane.time += 1 / lane.weight;
      if (this.kept > 0) {
        this.kept--;
        this.saved--;
      } else this.early.set(lane, (this.early.get(lane) ?? 0) + 1);
      if (this.turn?.lane === lane) this.turn.left--;
    }
    this.drop(lane);
  }

  /** The first job of the lane waits no more, or not for this consumer. */
  drop(lane: Lane): void {
    this.count(lane, () => lane.shift());
    const goesOn = this.turn?.lane === lane && this.turn.left > 0 && lane.size > 0;
    if (!goesOn) this.place(lane);
  }

  /** The first job of the lane is for this consumer, but not now: it waits again once the claim is over. */
  setAside(lane: Lane, position: Position): void {
    this.aside.push({ group: lane.group, position });
    this.drop(lane);
  }

  /** {@link setAside}, where no other job of the lane may go before it. */
  setLaneAside(lane: Lane): void {
    this.block(lane);
    this.waiting.push(lane);
  }

  /** The job waits at another place: where it stood it must not be taken. */
  moved(key: number, group: string | undefined): void {
    const lane = this.lanes.get(group);
    if (!lane) return;
    this.count(lane, () => lane.remove(key));
    if (lane.place !== 'blocked' || lane.size === 0) this.place(lane);
  }

  /**
   * The first job of the lane has begun, and is due again later. Until then another one that has begun may run: there
   * are several where the queue had another order when they started.
   */
  sleep(lane: Lane, position: Position): void {
    this.sleeping.set(position.key, { group: lane.group, position });
    this.firstDue = Math.min(this.firstDue, position.at);
    this.drop(lane);
  }

  /** Has the job begun, and waits here for its moment? */
  isAsleep(key: number): boolean {
    return this.sleeping.has(key);
  }

  knows(group: string | undefined): boolean {
    return this.lanes.has(group);
  }

  /** None of the group may start before this moment. @param at epoch ms */
  close(lane: Lane, at: number): void {
    this.block(lane);
    if (lane.group === undefined) return;
    this.closed.set(lane.group, at);
    this.firstDue = Math.min(this.firstDue, at);
  }

  get nextWake(): number {
    return this.firstDue;
  }

  /** Groups may start jobs again whose moments have come. */
  wake(now: number): void {
    if (now < this.firstDue) return;
    this.firstDue = Number.POSITIVE_INFINITY;
    for (const [key, { group, position }] of this.sleeping) {
      if (position.at > now) this.firstDue = Math.min(this.firstDue, position.at);
      else {
        this.sleeping.delete(key);
        this.putBack(position, group, true);
      }
    }
    for (const [group, at] of this.closed) {
      if (at > now) this.firstDue = Math.min(this.firstDue, at);
      else {
        this.closed.delete(group);
        this.freed(group);
      }
    }
  }

  /** None of the group may start until everything is read again: what was read of it is forgotten. */
  forget(lane: Lane): void {
    if (this.turn?.lane === lane) this.turn = undefined;
    this.leave(lane);
    this.entries -= lane.entries;
    this.lanes.delete(lane.group);
  }

  /** None of the group may start until it is {@link freed}. */
  block(lane: Lane): void {
    this.leave(lane);
    lane.place = 'blocked';
    this.blocked += lane.entries;
    if (this.turn?.lane === lane) this.turn = undefined;
  }

  /** Makes room: of long lanes that may not start jobs, only the first ones stay. */
  private cut(entries: number): void {
    if (this.entries < this.cutAt + entries / 10) return;
    for (const lane of this.lanes.values()) {
      if (lane.place === 'blocked' && lane.entries > LANE_ENTRIES) this.count(lane, () => lane.cut(LANE_ENTRIES));
    }
    this.cutAt = this.entries;
  }

  private leave(lane: Lane): void {
    if (lane.place === 'quiet') this.quietJobs -= lane.size;
    if (lane.place === 'blocked') this.blocked -= lane.entries;
    lane.place = 'none';
    lane.stamp++;
  }

  private laneOf(group: string | undefined): Lane {
    return getOrInsert(this.lanes, group, () => new Lane(group, group === undefined ? 1 : this.weightOf(group)));
  }

  /** Changes a lane by one job, with all that is counted of it. */
  private count(lane: Lane, change: () => void): void {
    const [entries, size] = [lane.entries, lane.size];
    change();
    this.entries += lane.entries - entries;
    if (lane.place === 'blocked') this.blocked += lane.entries - entries;
    if (lane.place === 'quiet') this.quietJobs += lane.size - size;
    if (lane.size > QUIET && !lane.isNoisy && lane.group !== undefined) {
      lane.isNoisy = true;
      lane.time = this.time;
      if (lane.place === 'quiet') this.place(lane);
    }
    if (lane.place === 'none' && lane.size > 0) this.place(lane);
  }

  /** Puts a lane where it belongs. An empty one is forgotten; the others of one that was cut are read again. */
  private place(lane: Lane): void {
    this.leave(lane);
    if (lane.size === 0) {
      this.lanes.delete(lane.group);
      if (lane.isCut) this.isStale = true;
      return;
    }
    if (lane.isNoisy) {
      this.noisy.put(lane, lane.time);
    } else {
      this.quiet.put(lane, lane.order);
      this.quietJobs += lane.size;
    }
  }
}
