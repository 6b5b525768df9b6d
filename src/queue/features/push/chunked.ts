/** Which chunks of jobs start at a target, beside its other jobs. A chunk is one call, and takes one slot. */
import type { TargetConfig } from '../../../dispatch/config';
import { type ChunkClaim, Chunks, hasCrashed, startsBefore } from '../../jobs/chunks';
import type { ChunkLane } from '../../store/chunks/lane';
import type { ChunkScan } from '../../store/chunks/scan';
import type { JobRow } from '../../store/job-row';
import type { QueueParts, Stored, StoredQueue } from '../../store/parts';
import { targetOf } from './handled-types';
import { MAX_CHARS_UNDER_WAY, type Round } from './plan';
import type { PushTarget } from './target';

export const chunksName = (target: Pick<PushTarget, 'id'>): string => `push ${target.id}`;

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
