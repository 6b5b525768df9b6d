/**
 * Which jobs share a call. A call answers as a whole, so only jobs with the same execution limit share one. A call can
 * also die as a whole. So a job whose last attempt took its call down, and a job without further attempts, travel
 * alone.
 */

import type { TargetConfig } from '../../../dispatch/config';
import type { JobBody } from '../../../job/record';
import { type ChunkClaim, Chunks, hasCrashed, startsBefore } from '../../jobs/chunks';
import type { Claimed } from '../../jobs/claim';
import type { LimitCheck } from '../../jobs/limit-check';
import type { ChunkLane } from '../../store/chunks/lane';
import type { ChunkScan } from '../../store/chunks/scan';
import type { JobRow } from '../../store/job-row';
import type { QueueParts, Stored, StoredQueue } from '../../store/parts';
import { targetOf } from './handled-types';
import type { PushTarget } from './target';

/** Characters of job bodies in one call, and of the answers to expect, at most, unless a single job has more. */
const MAX_CALL_CHARS = 4 * 1024 * 1024;

export interface Passenger {
  key: number;
  /** Size of its body, and of the answer to expect. */
  chars: number;
  timeoutMs: number;
  alone: boolean;
}

interface Call {
  keys: number[];
  chars: number;
}

export class CallPlan {
  private readonly planned: Call[] = [];
  /** The call of each execution limit that still has seats. */
  private readonly open = new Map<number, Call>();
  private refused = false;
  private closed = false;

  /** @param maxCalls calls that may be made @param batchSize jobs in a call at most */
  constructor(
    private readonly maxCalls: number,
    private readonly batchSize: number,
  ) {}

  get calls(): readonly (readonly number[])[] {
    return this.planned.map(({ keys }) => keys);
  }

  get isRefused(): boolean {
    return this.refused;
  }

  /** Takes no more jobs: one was refused, and none after it may pass it, or the plan was closed. */
  get isClosed(): boolean {
    return this.refused || this.closed;
  }

  close(): void {
    this.closed = true;
  }

  /** Seats a job. Answers false when that would need one call too many. */
  add(job: Passenger): boolean {
    if (this.isClosed) return false;
    const shared = job.alone || this.batchSize === 1 ? undefined : this.open.get(job.timeoutMs);
    if (shared && shared.keys.length < this.batchSize && shared.chars + job.chars <= MAX_CALL_CHARS) {
      shared.keys.push(job.key);
      shared.chars += job.chars;
      return true;
    }
    if (!this.mayAdd()) return false;
    const call: Call = { keys: [job.key], chars: job.chars };
    this.planned.push(call);
    if (!job.alone) this.open.set(job.timeoutMs, call);
    return true;
  }

  /** May a call be added? If not, what it is for was refused. */
  mayAdd(): boolean {
    this.refused ||= this.planned.length >= this.maxCalls;
    return !this.refused;
  }

  /** Seats the jobs of a chunk. Ask {@link mayAdd} first. */
  addChunk(keys: number[]): void {
    this.planned.push({ keys, chars: 0 });
  }
}

export class PushSelection {
  readonly calls: { target: PushTarget; jobs: Claimed[] }[] = [];
  readonly ask = new Set<PushTarget>();
  /** Work was left because calls ran out. */
  starved = false;
  /** Work was left because too many jobs run. */
  full = false;
  /** Reading reached its bound before it knew what is left: the next selection continues there. */
  unfinished = false;
  readonly expired: JobRow[] = [];
  readonly orphans: JobRow[] = [];

  /** @param chars characters of bodies that may still be under way to handlers */
  constructor(public chars: number) {}
}

export interface Round {
  target: PushTarget;
  plan: CallPlan;
  /** Jobs running there, by the announced entry that bounds them. */
  running: Map<string, number>;
  /** Epoch ms. */
  now: number;
  selection: PushSelection;
  limits: LimitCheck;
  bodies: Map<number, JobBody>;
  /** Keys of the jobs that were looked at by the cursor of their type, and whether it took them. */
  seen: Map<number, boolean>;
  starting: Map<string, number>;
  slots: number;
  starts: number;
  chunks: JobRow[][];
}

/**
 * Characters of bodies under way to handlers at most, unless a single job is larger. Each is in memory several times
 * while it is sent, and an object has 128 MB.
 */
export const MAX_CHARS_UNDER_WAY = 16 * 1024 * 1024;

const chunksName = (target: Pick<PushTarget, 'id'>): string => `push ${target.id}`;

/** What is gathered for a target, if it takes chunks and was asked for work. */
export const gatheredFor = (q: Stored, target: PushTarget): ChunkScan | undefined =>
  q.store.cursors.chunks.get(chunksName(target));

/** Could a chunk start at a target, as far as is known without reading? */
export function hasChunk(q: StoredQueue, target: PushTarget, now: number): boolean {
  const scan = gatheredFor(q, target);
  return scan !== undefined && (scan.ready.size > 0 || (scan.nextMoment ?? Number.POSITIVE_INFINITY) <= now);
}

/** A target gathers other jobs from now on, or otherwise: everything is read again. */
export function forgetGathered(q: Stored, target: PushTarget): void {
  q.store.cursors.chunks.delete(chunksName(target));
  q.store.cursors.ofTarget(target.id).reset(q.store.leases.head);
}

/** Which chunks of jobs start at a target, beside its other jobs. A chunk is one call, and takes one slot. */
export class ChunkedRound {
  private readonly chunks: Chunks;

  constructor(
    private readonly q: QueueParts,
    configs: readonly TargetConfig[],
    private readonly round: Round,
  ) {
    const { target, now } = round;
    const isOurs = (row: JobRow) => targetOf(configs, q.name, row) === target.config;
    const settingsOf = (row: JobRow) => (isOurs(row) ? target.chunkFor(row.type) : undefined);
    this.chunks = new Chunks(q, q.store.cursors.chunksOf(chunksName(target)), settingsOf, now);
    this.chunks.gather();
  }

  /** Starts chunks while there is room. @param next only those that precede this job */
  start(next?: JobRow): void {
    const { round, chunks, q } = this;
    const { selection, plan, target, running } = round;
    const claim: ChunkClaim = {
      limits: round.limits,
      starting: round.starting,
      expired: selection.expired,
      most: round.starts,
      mayStartAlone: (row) => this.mayStartAlone(row),
    };
    while (!plan.isClosed && round.starts > 0) {
      const lane = chunks.next((each) => this.takes(each));
      if (!lane || (next && !startsBefore(lane, next))) break;
      if (round.slots <= 0 || !this.hasRoomFor(lane)) {
        selection.full = true;
        break;
      }
      if (!plan.mayAdd()) break;
      claim.most = round.starts;
      const rows = chunks.take(lane, claim);
      const [first] = rows;
      if (!first) continue;
      plan.addChunk(rows.map(({ key }) => key));
      round.chunks.push(rows);
      round.starts -= rows.length;
      round.slots--;
      for (const { body } of rows) selection.chars -= body.length;
      target.count(first.type, running);
      if (hasCrashed(first)) {
        selection.full = true;
        plan.close();
      }
    }
    if (next) return;
    selection.unfinished ||= chunks.isUnfinished && !chunks.scan.isFull;
    const { nextMoment } = chunks.scan;
    if (nextMoment !== undefined) q.wake.at(nextMoment);
  }

  /** Does the concurrency announced for the type leave room? */
  private takes({ jobs }: ChunkLane): boolean {
    const takes = this.round.target.takes(jobs[0]?.type ?? '', this.round.running);
    if (!takes) this.round.selection.full = true;
    return takes;
  }

  /** Bodies under way are bounded, unless nothing else is. */
  private hasRoomFor({ nextChars }: ChunkLane): boolean {
    const { chars } = this.round.selection;
    return chars === MAX_CHARS_UNDER_WAY || nextChars <= chars;
  }

  /** A suspect waits until nothing else runs at its target, and no later job passes it. */
  private mayStartAlone(row: JobRow): boolean {
    const { plan, target, selection } = this.round;
    if (!hasCrashed(row) || (plan.calls.length === 0 && !target.isBusy(this.q))) return true;
    selection.full = true;
    plan.close();
    return false;
  }
}
