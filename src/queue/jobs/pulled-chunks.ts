import { chunkFor } from '../../job/chunk';
import { MAX_CLAIM_BYTES } from '../../job/size';
import type { WaitingFor } from '../../job/waiting';
import type { ClaimRequest } from '../../rpc/workers';
import type { ChunkLane } from '../store/chunks/lane';
import { PULLED, typesKey } from '../store/cursors';
import type { JobRow } from '../store/job-row';
import type { QueueParts, Stored } from '../store/parts';
import { type ChunkClaim, Chunks, startsBefore } from './chunks';
import { bytesOnTheWay } from './pass-over';
import { waitsForChunk } from './waiting';

type Wanted = Pick<ClaimRequest, 'types' | 'chunks'>;

/** Names what a worker takes, and how: the same for all that take the same. Empty: any type, one by one. */
export const consumerKey = ({ types, chunks }: Wanted): string =>
  chunks ? `${typesKey(types)} ${JSON.stringify(chunks)}` : typesKey(types);

/** When the next chunk for workers that pull is complete by itself, epoch ms; infinite: none is. */
export function nextPulledChunk({ store: { cursors } }: Stored, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const [name, { nextMoment }] of cursors.chunks) {
    if (name.startsWith(PULLED) && nextMoment !== undefined && nextMoment > now) next = Math.min(next, nextMoment);
  }
  return next;
}

/** Why a job waits that is gathered for workers that pull. */
export function waitsForPulledChunk({ store: { cursors } }: Stored, row: JobRow, now: number): WaitingFor | undefined {
  for (const [name, scan] of cursors.chunks) {
    const found = name.startsWith(PULLED) ? waitsForChunk(scan, row, now) : undefined;
    if (found && !found.isReady) return found.why;
  }
  return undefined;
}

export interface PullRound {
  calls: number;
  starts: number;
  bytes: number;
}

export class PulledChunks {
  private taken: JobRow[][] = [];
  private readonly chunks: Chunks;

  constructor(
    private readonly q: QueueParts,
    private readonly request: Wanted,
    now: number,
  ) {
    const scan = q.store.cursors.chunksOf(PULLED + consumerKey(request));
    const wanted = request.types && new Set(request.types);
    const settingsOf = ({ type }: JobRow) => (!wanted || wanted.has(type) ? this.settingsOf(type) : undefined);
    this.chunks = new Chunks(q, scan, settingsOf, now);
  }

  private settingsOf(type: string) {
    return this.request.chunks && chunkFor(this.request.chunks, type);
  }

  takes(type: string): boolean {
    return this.settingsOf(type) !== undefined;
  }

  get areAll(): boolean {
    return this.request.types?.every((type) => this.takes(type)) === true;
  }

  gather(): void {
    this.chunks.gather();
  }

  get isUnfinished(): boolean {
    return this.chunks.isUnfinished && !this.chunks.scan.isFull;
  }

  get hasMore(): boolean {
    return this.chunks.next(() => true) !== undefined;
  }

  /** Takes chunks while there is room. @param next only those that precede this job */
  start(claim: ChunkClaim, round: PullRound, next?: JobRow): void {
    const fits = ({ nextChars }: ChunkLane) => round.bytes === 0 || round.bytes + nextChars <= MAX_CLAIM_BYTES;
    while (round.calls > 0 && round.starts > 0 && !claim.limits.isFull) {
      const lane = this.chunks.next(fits);
      if (!lane || (next && !startsBefore(lane, next))) return;
      claim.most = round.starts;
      const rows = this.chunks.take(lane, claim);
      if (rows.length === 0) continue;
      this.taken.push(rows);
      round.calls--;
      round.starts -= rows.length;
      for (const row of rows) round.bytes += bytesOnTheWay(this.q, row);
    }
  }

  take(): JobRow[][] {
    return this.taken.splice(0);
  }
}
