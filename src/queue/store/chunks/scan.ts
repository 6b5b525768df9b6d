/**
 * The chunks that one consumer gathers: a cursor that reads all jobs of its chunked types ahead, and what it has read.
 *
 * Jobs gather in lanes: one for each type, or for each type and group. A lane is ready when it has as many jobs as a
 * chunk takes, or when its oldest job has waited for as long as it may. That moment is known: no timer polls for it.
 * All of this is memory, and read again after an eviction. It is bounded. What may not start counts in no bound: of a
 * held lane the first jobs are kept, and what follows is read again once these are taken.
 */
import { getOrInsert } from '../../../job/get-or-insert';
import { Scan } from '../scan';
import { SortedList } from '../sorted-list';
import { ChunkLane, type Gathered, type Offer } from './lane';

export interface Place {
  lane: string;
  group: string | undefined;
  isStrict: boolean;
}

export interface LaneRules {
  offer(lane: ChunkLane): Offer;
  /** Does this job still wait where it was read? */
  isThere(job: Gathered): boolean;
}

export class ChunkScan extends Scan {
  private readonly lanes = new Map<string, ChunkLane>();
  private readonly byKey = new Map<number, ChunkLane>();
  private readonly byGroup = new Map<string, Set<ChunkLane>>();
  /** Lanes that changed since they were last looked at. `freed`: the group may start a job again. */
  private readonly changed = new Map<ChunkLane, 'changed' | 'freed'>();
  readonly ready = new Set<ChunkLane>();
  private readonly edited = new Set<number>();
  /** Groups that start no job before a moment, epoch ms. */
  private readonly closed = new Map<string, number>();
  /** Lanes that will be ready by themselves. */
  private moments = new SortedList<ChunkLane, ChunkLane>(byMoment);
  private expected = 0;
  private time = 0;
  /** Jobs that were passed over may start: everything is read again. */
  private isStale = false;
  /** Jobs and lanes that may not start. */
  private readonly kept = { jobs: 0, lanes: 0 };

  /** Entries that its lanes may take. */
  private room = Number.POSITIVE_INFINITY;

  get isFull(): boolean {
    const { byKey, lanes, kept } = this;
    const { sizes } = this.memory;
    const isOver = byKey.size - kept.jobs >= sizes.chunkJobs || lanes.size - kept.lanes >= sizes.chunkLanes;
    return isOver || this.gathered >= this.room;
  }

  /** Memory that its lanes take which may start, in entries. */
  private get gathered(): number {
    const { byKey, lanes, kept } = this;
    return JOB_ENTRIES * (byKey.size - kept.jobs) + LANE_ENTRIES * (lanes.size - kept.lanes);
  }

  override get held(): number {
    return super.held + this.gathered;
  }

  /** Gathering continues: what may not start makes room, or counts no more. @param head how far the line is taken */
  begin(head: number): void {
    if (this.isStale) this.reset(head);
    const { byKey, lanes, kept, memory } = this;
    Object.assign(kept, { jobs: 0, lanes: 0 });
    this.room = memory.roomFor(this.gathered);
    if (!this.isFull) return;
    const hasMostJobs = byKey.size >= memory.sizes.chunkJobs || this.gathered >= this.room;
    for (const lane of lanes.values()) {
      if (!lane.isHeld) continue;
      if (hasMostJobs) for (const { key } of lane.cut()) byKey.delete(key);
      kept.jobs += lane.jobs.length;
      kept.lanes++;
    }
  }

  laneOf(key: number): ChunkLane | undefined {
    return this.byKey.get(key);
  }

  gather(job: Gathered, { lane: name, group, isStrict }: Place): void {
    this.drop(job.key);
    const parked = job.group === undefined ? undefined : this.lanes.get(parkedName(name, job.group));
    const lane = parked ?? this.laneFor({ lane: name, group, isStrict });
    if (lane.takes(job)) this.put(job, lane);
  }

  private laneFor({ lane: name, group, isStrict }: Place, parkedFrom?: ChunkLane): ChunkLane {
    const known = this.lanes.get(name);
    if (known) return known;
    const lane = new ChunkLane(name, group, isStrict, parkedFrom);
    lane.time = this.time;
    this.lanes.set(name, lane);
    if (group !== undefined) getOrInsert(this.byGroup, group, () => new Set<ChunkLane>()).add(lane);
    return lane;
  }

  private put(job: Gathered, lane: ChunkLane): void {
    lane.add(job);
    this.byKey.set(job.key, lane);
    this.note(lane, 'changed');
  }

  /** The group may start no job now: its jobs leave their lane, so that it need not look at them. */
  park(from: ChunkLane, group: string): void {
    const jobs = from.takeGroup(group);
    const lane = this.laneFor({ lane: parkedName(from.name, group), group, isStrict: false }, from);
    for (const job of jobs) this.put(job, lane);
    lane.isHeld = true;
    this.note(from, 'changed');
  }

  /** Some of the parked jobs are in their lane again: as many as a chunk takes. */
  private unpark(parked: ChunkLane, from: ChunkLane): void {
    const jobs = parked.jobs.slice(0, parked.wanted);
    parked.removeAll(new Set(jobs.map(({ key }) => key)));
    const lane = this.laneFor({ lane: from.name, group: from.group, isStrict: from.isStrict });
    for (const job of jobs) this.put(job, lane);
    if (parked.jobs.length === 0) this.forget(parked);
  }

  /** The jobs of this group that were parked may be the next ones. */
  private unparkFor(group: string): void {
    for (const lane of [...(this.byGroup.get(group) ?? [])]) if (lane.parkedFrom) this.unpark(lane, lane.parkedFrom);
  }

  /** The job was changed, and keeps its place: whether it may share a call may be different now. */
  edit(key: number): void {
    if (this.byKey.has(key)) this.edited.add(key);
  }

  takeEdited(): number[] {
    const keys = [...this.edited];
    this.edited.clear();
    return keys;
  }

  drop(key: number): void {
    const lane = this.byKey.get(key);
    if (!lane) return;
    this.byKey.delete(key);
    lane.remove(key);
    this.note(lane, 'changed');
  }

  /** Jobs of a lane are taken. @param weight the share of its group */
  took(lane: ChunkLane, keys: readonly number[], weight: number): void {
    const taken = new Set(keys);
    const groups = new Set(lane.jobs.flatMap(({ key, group }) => (group !== undefined && taken.has(key) ? group : [])));
    lane.removeAll(taken);
    for (const key of keys) this.byKey.delete(key);
    this.time = Math.max(this.time, lane.time);
    lane.time += keys.length / weight;
    lane.spared = 0;
    this.note(lane, 'changed');
    for (const group of groups) this.unparkFor(group);
  }

  /** A lane gave less than a chunk. */
  spare(lane: ChunkLane): void {
    lane.spared = lane.jobs.length;
    this.note(lane, 'changed');
  }

  /** Finds out which lanes are ready now. @param now epoch ms */
  look(rules: LaneRules, now: number): void {
    for (const [lane, why] of this.changed) this.assess(lane, rules, now, why === 'freed');
    this.changed.clear();
    for (let { first } = this.moments; first && first.moment <= now; { first } = this.moments) {
      this.moments.delete(first);
      // If the clock is set back, the moment comes again.
      first.moment = Number.NEGATIVE_INFINITY;
      this.ready.add(first);
    }
    const { first } = this.moments;
    if (first && this.isFull && this.ready.size === 0) this.ready.add(first);
  }

  /** When the next lane is ready by itself, epoch ms; undefined: none is. */
  get nextMoment(): number | undefined {
    return this.moments.first?.moment;
  }

  /** The group may start no job before this moment, epoch ms. */
  close(group: string, at: number): void {
    this.closed.set(group, at);
  }

  /** It reads ahead, and would read all of them each time. */
  protected override atOnce(room: number): number {
    return room;
  }

  override get nextGroup(): number {
    return Math.min(super.nextGroup, ...this.closed.values());
  }

  override wakeGroups(now: number): void {
    super.wakeGroups(now);
    for (const [group, at] of this.closed) {
      if (at > now) continue;
      this.closed.delete(group);
      this.freed(group);
    }
  }

  override freed(group: string): void {
    this.unparkFor(group);
    for (const lane of this.byGroup.get(group) ?? []) this.note(lane, 'freed');
  }

  override reset(head = 0): void {
    super.reset(head);
    // What it passes over is gathered only, or for other consumers.
    this.exact = false;
    const { lanes, byKey, byGroup, changed, ready, closed, edited } = this;
    for (const memory of [lanes, byKey, byGroup, changed, ready, closed, edited]) memory.clear();
    this.moments = new SortedList<ChunkLane, ChunkLane>(byMoment);
    this.isStale = false;
  }

  private note(lane: ChunkLane, why: 'changed' | 'freed'): void {
    if (why === 'freed' || !this.changed.has(lane)) this.changed.set(lane, why);
    if (why === 'freed') lane.spared = 0;
  }

  private assess(lane: ChunkLane, rules: LaneRules, now: number, isFreed: boolean): void {
    this.ready.delete(lane);
    // An earlier job of another type may have ended.
    while (isFreed && lane.isStrict && lane.jobs[0] && !rules.isThere(lane.jobs[0])) {
      this.byKey.delete(lane.jobs[0].key);
      lane.remove(lane.jobs[0].key);
    }
    if (lane.jobs.length === 0) {
      this.forget(lane);
      return;
    }
    if (lane.parkedFrom) return;
    const at = lane.startsAt(rules.offer(lane));
    lane.isHeld = at === Number.POSITIVE_INFINITY;
    if (lane.isCut && !lane.isHeld && lane.jobs.length < lane.wanted) this.isStale = true;
    if (at <= now) this.ready.add(lane);
    if (at === lane.moment) return;
    this.moments.delete(lane);
    lane.moment = at;
    lane.turn = this.expected++;
    if (at > now && at < Number.POSITIVE_INFINITY) this.moments.add(lane);
  }

  private forget(lane: ChunkLane): void {
    this.lanes.delete(lane.name);
    if (lane.isCut) this.isStale = true;
    this.moments.delete(lane);
    if (lane.group === undefined) return;
    const lanes = this.byGroup.get(lane.group);
    lanes?.delete(lane);
    if (lanes?.size === 0) this.byGroup.delete(lane.group);
  }
}

/** The memory of a job and of a lane, in entries. */
const JOB_ENTRIES = 8;
const LANE_ENTRIES = 24;

const byMoment = (a: ChunkLane, b: ChunkLane): number => a.moment - b.moment || a.turn - b.turn;

/** Names the lane of the jobs of one group that may not start, beside those of the lane that they belong to. */
const parkedName = (lane: string, group: string): string => `held ${lane} ${group}`;
