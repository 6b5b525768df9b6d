/**
 * Taking jobs by the chunk, for one consumer. It reads the jobs of its chunked types ahead; what has gathered is taken
 * once it is a chunk. What was read is a hint: the row of each job decides when its chunk starts.
 */
import { type ChunkSettings, MAX_CHUNK_BYTES } from '../../job/chunk';
import { WEIGHTS } from '../../job/group';
import type { JobBody } from '../../job/record';
import type { ChunkLane, Gathered, Offer } from '../store/chunks/lane';
import type { ChunkScan, LaneRules, Place } from '../store/chunks/scan';
import { bodyOf, groupOfRow, historyOf, type JobRow, STATE } from '../store/job-row';
import type { Configured, QueueParts } from '../store/parts';
import { selectReady } from '../store/ranks';
import { rowByKey } from '../store/row-lookup';
import { availableSince, placeOf, stateOf } from '../store/rows';
import { type LimitCheck, roomFor } from './limit-check';
import { bytesOnTheWay, passOver } from './pass-over';

const PAGE = 4096;

/** How a consumer gathers jobs like this one; undefined: it takes none of them by the chunk. */
type SettingsOf = (row: JobRow) => ChunkSettings | undefined;

/** What a consumer takes along with other jobs of its claim. */
export interface ChunkClaim {
  limits: LimitCheck;
  starting: Map<string, number>;
  expired: JobRow[];
  most: number;
  /** May a job start that must not share its call? */
  mayStartAlone?(row: JobRow): boolean;
}

/** The numbers of chunks by the keys of their jobs, from 1. A job that is its whole chunk runs by itself. */
export function numbersOf(chunks: readonly (readonly JobRow[])[]): Map<number, number> {
  const shared = chunks.filter(({ length }) => length > 1);
  return new Map(shared.flatMap((rows, at) => rows.map(({ key }) => [key, at + 1] as const)));
}

export class Chunks implements LaneRules {
  /** The next selection finds more here by itself. */
  private goesOn = false;
  /** Reading reached its bound. */
  private wasFull = false;
  private readonly tried = new Set<ChunkLane>();
  /** Jobs by group that the claim has taken, which have no leases yet. */
  private starting: ReadonlyMap<string, number> | undefined;

  /** @param now epoch ms */
  constructor(
    private readonly q: QueueParts,
    readonly scan: ChunkScan,
    private readonly settingsOf: SettingsOf,
    private readonly now: number,
  ) {}

  /** Does the next selection continue where this one ended? Jobs that are found to be over make room for others. */
  get isUnfinished(): boolean {
    return this.goesOn || (this.wasFull && !this.scan.isFull);
  }

  /** Reads ahead, and finds out what is ready. */
  gather(): void {
    const { scan, now } = this;
    const { sql, blocks, priorities, leases, turn } = this.q.store;
    scan.begin(leases.head);
    selectReady({ sql, blocks, priorities, turn }, scan, now, PAGE, (row) => {
      if (scan.isFull) return 'stop';
      this.read(row);
      return 'pass';
    });
    for (const key of scan.takeEdited()) {
      const row = rowByKey(this.q.store, key);
      if (row && stateOf(row, false, now) === 'available') this.read(row);
    }
    scan.look(this, now);
    this.wasFull = scan.isFull;
    if (this.wasFull) scan.begin(leases.head);
    this.goesOn = scan.unfinished;
  }

  private read(row: JobRow): void {
    const { q, scan, now } = this;
    if (q.store.leases.active.has(row.key)) return;
    const settings = this.settingsOf(row);
    const group = groupOfRow(row);
    // Once its group is resumed, all are read again.
    if (group !== undefined && q.store.gates.isPaused(group)) return;
    const isStrict = q.store.gates.isStrict && group !== undefined;
    // Where the order is strict, jobs of other types stand between those of a chunk.
    if (!settings && !isStrict) return;
    const isAlone = settings !== undefined && travelsAlone(q, row, bodyOf(row));
    const job: Gathered = {
      key: row.key,
      type: row.type,
      priority: q.store.gates.priorityOf(group, row.priority),
      at: placeOf(row),
      since: waitsSince(row, settings, now),
      chars: row.body.length,
      isAlone,
    };
    if (settings) job.settings = settings;
    if (isStrict && row.holds_group !== null) job.isHolder = true;
    const isMixed = settings?.by !== 'group' && !isStrict && !isAlone;
    if (isMixed && group !== undefined && q.store.gates.rules) job.group = group;
    scan.gather(job, laneFor(row, { settings, group, isStrict, isAlone }));
  }

  /** The lane whose chunk starts next, of those that are ready. @param fits may a chunk of this lane start at all? */
  next(fits: (lane: ChunkLane) => boolean): ChunkLane | undefined {
    const isFair = this.q.store.gates.rules !== undefined;
    let best: ChunkLane | undefined;
    for (const lane of this.scan.ready) {
      if (!this.tried.has(lane) && fits(lane) && (!best || precedes(lane, best, isFair))) best = lane;
    }
    return best;
  }

  /** Takes a chunk of a lane that is ready. @returns its jobs; none if too few of them wait after all, or may start */
  take(lane: ChunkLane, claim: ChunkClaim): JobRow[] {
    const { q, scan, now } = this;
    this.starting = claim.starting;
    const { jobs, isClosed } = this.offer(lane);
    const settings = jobs[0]?.settings;
    // One by one they could not be asked about: the group runs no other one meanwhile.
    const room = lane.isStrict && lane.group !== undefined ? q.store.gates.roomForChunk(lane.group, now) : claim.most;
    const found = this.rowsOf(lane, jobs, Math.min(settings?.size ?? 0, claim.most, room), claim);
    const isDue = found.rows.some((row) => waitsSince(row, settings, now) + (settings?.wait_ms ?? 0) <= now);
    const isWhole = found.isFull || found.rows.length === settings?.size;
    const taken = isWhole || isClosed || isDue || scan.isFull ? this.within(lane, found.rows, claim) : [];
    if (taken.length === 0) {
      if (!found.hasChanged) this.tried.add(lane);
      scan.spare(lane);
    } else {
      for (const row of taken) {
        const group = groupOfRow(row);
        if (group !== undefined) claim.starting.set(group, (claim.starting.get(group) ?? 0) + 1);
      }
      const weight = lane.group === undefined ? 1 : (q.store.gates.rules?.weightOf(lane.group) ?? WEIGHTS.default);
      scan.took(
        lane,
        taken.map(({ key }) => key),
        weight,
      );
    }
    scan.look(this, now);
    return taken;
  }

  /** The rows of the first jobs that still wait; whether no more of them fit; whether others were found to be over. */
  private rowsOf(lane: ChunkLane, jobs: readonly Gathered[], size: number, claim: ChunkClaim) {
    const { q, scan, now } = this;
    const { gates } = q.store;
    const found = { rows: [] as JobRow[], isFull: false, hasChanged: false };
    const joining = new Map<string, number>();
    const held = new Set<string>();
    let bytes = 0;
    for (const job of [...jobs]) {
      if (found.rows.length >= size) break;
      if (job.group !== undefined && held.has(job.group)) continue;
      const row = this.rowOf(job);
      if (!row || passOver(q, row, now, claim.expired)) {
        scan.drop(job.key);
        found.hasChanged = true;
        // Which job of the group is the first one now?
        if (lane.isStrict) return { ...found, rows: [] };
        continue;
      }
      if (job.isAlone && claim.mayStartAlone?.(row) === false) break;
      const group = gates.rules && groupOfRow(row);
      if (group !== undefined && !lane.isStrict) {
        const taken = (claim.starting.get(group) ?? 0) + (joining.get(group) ?? 0);
        if (this.isHeld(group, row, taken)) {
          this.goesOn ||= roomFor(q, row, now) > 0 && scan.yields(row);
          held.add(group);
          if (job.group !== undefined && this.isHeld(group, row, 0)) scan.park(lane, group);
          continue;
        }
        joining.set(group, (joining.get(group) ?? 0) + 1);
      }
      bytes += bytesOnTheWay(q, row);
      if (found.rows.length > 0 && bytes > MAX_CHUNK_BYTES) return { ...found, isFull: true };
      found.rows.push(row);
    }
    return found;
  }

  /** Those whose own limits have room for them. The others are put aside; in a strict group none overtakes them. */
  private within(lane: ChunkLane, rows: readonly JobRow[], { limits }: ChunkClaim): JobRow[] {
    const within: JobRow[] = [];
    for (const row of rows) {
      const judged = limits.judge(row);
      if (judged === 'wait') this.scan.waits(row);
      if (judged && !(judged === 'wait' && lane.isStrict)) this.scan.drop(row.key);
      if (!judged) {
        limits.count(row);
        within.push(row);
      } else if (lane.isStrict) break;
    }
    return within;
  }

  offer(lane: ChunkLane): Offer {
    const { gates } = this.q.store;
    const { group, isStrict } = lane;
    const offer = lane.offer(isStrict && group !== undefined ? gates.holdersOf(group) : []);
    const [first] = offer.jobs;
    if (group === undefined || !first || !(isStrict || gates.rules)) return offer;
    const row = this.rowOf(first);
    // Taking finds out that the job is gone, and drops it.
    if (!row && !isStrict) return offer;
    const taken = this.starting?.get(group) ?? 0;
    return row && !this.isHeld(group, row, taken) ? offer : { jobs: [], isClosed: false };
  }

  /** May the group not start the job? Where its rate says so, it is looked at again when that ends. */
  private isHeld(group: string, row: JobRow, taken: number): boolean {
    const hold = this.q.store.gates.holdOf(group, row, taken, this.now);
    if (hold?.by === 'rate') this.scan.close(group, hold.opensAt);
    return hold !== undefined;
  }

  isThere(job: Gathered): boolean {
    return this.rowOf(job) !== undefined;
  }

  /** The row of a job, if it still waits where it was read. */
  private rowOf({ key, priority, at }: Gathered): JobRow | undefined {
    const { store } = this.q;
    const row = store.leases.active.has(key) ? undefined : rowByKey(store, key);
    if (!row || row.state !== STATE.waiting || row.ended_at !== null) return undefined;
    if (row.due_at !== null && row.due_at > this.now) return undefined;
    const counts = store.gates.priorityOf(groupOfRow(row), row.priority);
    return counts === priority && placeOf(row) === at ? row : undefined;
  }
}

function laneFor(
  { key, type }: JobRow,
  of: { settings: ChunkSettings | undefined; group: string | undefined; isStrict: boolean; isAlone: boolean },
): Place {
  const { settings, group, isStrict, isAlone } = of;
  if (isStrict) return { lane: `strict ${group}`, group, isStrict };
  if (isAlone) return { lane: `alone ${key}`, group, isStrict };
  // No name of a type or group meets that of another kind of lane.
  if (settings?.by === 'group') return { lane: `type ${type} ${group ?? ''}`, group, isStrict };
  return { lane: `type ${type}`, group: undefined, isStrict };
}

/** Does the chunk of one lane start before that of the other? @param isFair groups share by their weights */
function precedes(a: ChunkLane, b: ChunkLane, isFair: boolean): boolean {
  const [one, other] = [a.jobs[0], b.jobs[0]] as [Gathered, Gathered];
  if (one.priority !== other.priority) return one.priority > other.priority;
  if (isFair && a.time !== b.time) return a.time < b.time;
  return one.at < other.at;
}

export function startsBefore({ jobs: [first] }: ChunkLane, row: JobRow): boolean {
  if (!first) return false;
  if (first.priority !== row.priority) return first.priority > row.priority;
  return first.at < placeOf(row);
}

/**
 * When the job began to wait for its chunk, epoch ms. If it became available in the future, the clock was set back
 * since: it has waited for as long as it may.
 */
function waitsSince(row: JobRow, settings: ChunkSettings | undefined, now: number): number {
  const since = availableSince(row);
  return since <= now ? since : now - (settings?.wait_ms ?? 0);
}

/** Errors after which a job is suspected of having killed its handler Worker. */
const CRASH_TYPES = new Set(['tocsin.crash', 'tocsin.batch_crash']);

/** Errors after which a job is suspected of having taken its call down. */
const SUSPECT_TYPES = new Set([...CRASH_TYPES, 'timeout', 'tocsin.visibility_timeout']);

/** Did the last attempt end with the death of the handler Worker? Its calls then lose attempts, so it runs alone. */
export const hasCrashed = (row: JobRow): boolean => hasEndedBy(row, CRASH_TYPES);

/** A call that dies costs all its jobs an attempt: a suspect, or a job on its last attempt, does not share one. */
export function travelsAlone({ config }: Configured, row: JobRow, body: JobBody): boolean {
  if (hasEndedBy(row, SUSPECT_TYPES)) return true;
  return row.attempt + 1 >= config.policyFor(row.type, body).max_attempts;
}

/** Did the last attempt end with an error of one of these types? Most histories are not read for that. */
function hasEndedBy({ attempt, history }: JobRow, types: ReadonlySet<string>): boolean {
  if (attempt === 0 || history === null) return false;
  const mayHave = [...types].some((type) => history.includes(JSON.stringify(type)));
  return mayHave && types.has(historyOf({ history }).error?.type ?? '');
}
