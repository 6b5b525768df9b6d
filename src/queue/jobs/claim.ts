/**
 * Claims jobs. The attempt is on record before anyone sees the job, so even a job that kills its runner or this
 * object runs out of attempts.
 */
import { groupOf } from '../../job/group';
import { deliveryId } from '../../job/ids';
import type { JobBody, RunnerView } from '../../job/record';
import { MAX_CLAIM_BYTES } from '../../job/size';
import type { JobChunk } from '../../job/wire';
import type { ClaimRequest } from '../../rpc/workers';
import { DEFAULTS } from '../../settings';
import { viewForRunner } from '../read/find';
import type { Active } from '../store/active';
import { lease } from '../store/attempts';
import { type JobRow, readableBody } from '../store/job-row';
import { startsLeft } from '../store/limits/queue-limit';
import type { QueueParts, StoredQueue } from '../store/parts';
import { selectReady } from '../store/ranks';
import { placeOf } from '../store/rows';
import type { Scan, Verdict } from '../store/scan';
import { type ChunkClaim, numbersOf } from './chunks';
import { quarantine } from './end-attempt';
import { expire } from './expire';
import { LimitCheck, noteStarts } from './limit-check';
import { bytesOnTheWay, passOver } from './pass-over';
import { consumerKey, PulledChunks, type PullRound } from './pulled-chunks';

export interface Claimed {
  row: JobRow;
  body: JobBody;
  active: Active;
}

export interface Terms {
  workerId?: string;
  target?: string;
  timeoutMs: (body: JobBody) => number;
  /** Lease length in ms. */
  visibilityMs: (body: JobBody) => number;
  /** The numbers of their chunks, from 1, by the keys of the jobs that run in any. */
  chunks?: ReadonlyMap<number, number>;
}

/** Grants a lease for these rows: one row for the batch, unless it is huge. @param bodies parsed ones, by key */
export function grant(
  q: QueueParts,
  rows: JobRow[],
  terms: Terms,
  now: number,
  bodies?: ReadonlyMap<number, JobBody>,
): Claimed[] {
  const readable: { row: JobRow; body: JobBody; entry: Omit<Active, 'leaseId'> }[] = [];
  for (const row of rows) {
    const body = bodies?.get(row.key) ?? readableBody(row);
    if (!body) {
      // One unreadable row must not stop the others: it becomes a dead letter that a human can look at.
      quarantine(q, row, now);
      continue;
    }
    const visibilityMs = terms.visibilityMs(body);
    const entry: Omit<Active, 'leaseId'> = {
      key: row.key,
      type: row.type,
      claim: row.claims + 1,
      attempt: row.attempt + 1,
      startedAt: now,
      expiresAt: now + visibilityMs,
      visibilityMs,
      timeoutAt: now + terms.timeoutMs(body),
      indexed: row.due_at !== null,
    };
    if (row.limit_key !== null) entry.limitKey = row.limit_key;
    const group = groupOf(body);
    if (group !== undefined) entry.group = group;
    if (terms.workerId !== undefined) entry.workerId = terms.workerId;
    if (terms.target !== undefined) entry.target = terms.target;
    const chunk = terms.chunks?.get(row.key);
    if (chunk !== undefined) entry.chunk = chunk;
    if (chunk !== undefined && group !== undefined && q.store.gates.isStrict) entry.place = placeOf(row);
    readable.push({ row, body, entry });
  }
  if (readable.length === 0) return [];
  const leased = lease(q, readable, now);
  return readable.map(({ row, body }, index) => ({ row, body, active: leased[index] as Active }));
}

/** Selections of one claim, to get past a crowd without room, or past more rows than one selection reads. */
const MAX_SELECTIONS = 4;

export interface PullClaim {
  jobs: RunnerView[];
  bytes: number;
  /** There may be more jobs of these types: the claim took as many as it may. */
  hasMore: boolean;
  /** The claim has read as much as one transaction may, and continues there in the next one. */
  isUnfinished: boolean;
  /** The queue itself hands out nothing now. */
  isClosed: boolean;
}

const NOTHING: PullClaim = { jobs: [], bytes: 0, hasMore: false, isUnfinished: false, isClosed: false };

/** A claim by a worker that pulls: the next jobs, in order. A closed queue gives none. */
export function claim(q: QueueParts, request: ClaimRequest, now: number): PullClaim {
  if (request.handlers) q.config.announced.setPulled(request.types, request.handlers, now);
  if (q.config.isClosed(now)) return { ...NOTHING, isClosed: true };
  // While no worker came, nothing was asked of the desks of keys.
  if (q.store.cursors.pull.asks(now)) for (const key of q.store.allowances.keys()) q.store.limiters.touch(key);
  const puller = new Puller(q, request, now);
  for (let selections = 0; selections < MAX_SELECTIONS; selections++) {
    const calls = request.count - puller.calls;
    if (calls <= 0 || startsLeft(q, now) <= 0) break;
    puller.select(calls);
    if (!puller.isUnfinished || q.store.turn.isSpent || (puller.calls > 0 && puller.isCutShort)) break;
  }
  const { claimed, chunked, bytes, isUnfinished } = puller;
  const isClosed = puller.calls < request.count && startsLeft(q, now) <= 0;
  return {
    jobs: [
      ...claimed.map((job) => viewForWorker(q, job, request, now)),
      ...chunked.flatMap((jobs) => asChunk(jobs.map((job) => viewForWorker(q, job, request, now)))),
    ],
    bytes,
    hasMore: !isClosed && (isUnfinished || (puller.calls > 0 && puller.hasMore)),
    isUnfinished: !isClosed && isUnfinished,
    isClosed,
  };
}

/**
 * A claimed job for its worker, with its claim's name (snoozed attempts have several), and its lease length if the
 * worker proposed another.
 */
function viewForWorker(
  q: StoredQueue,
  { row, body, active }: Claimed,
  { visibility_timeout_ms, default_visibility_timeout_ms: proposed }: ClaimRequest,
  now: number,
): RunnerView {
  const { record, layers } = viewForRunner(q, row, now);
  record.delivery_id = deliveryId(record.id, active.claim);
  const isOther = visibility_timeout_ms === undefined && proposed !== undefined && proposed !== active.visibilityMs;
  if (isOther) record.lease_ms = active.visibilityMs;
  return { record, layers, body };
}

/** The jobs of a chunk as their worker gets them. The first one names the chunk: no other claim has its delivery. */
function asChunk(views: RunnerView[]): RunnerView[] {
  const chunk: JobChunk = { id: views[0]?.record.delivery_id ?? '', jobs: views.length };
  for (const { record } of views) record.chunk = chunk;
  return views;
}

class Puller {
  readonly claimed: Claimed[] = [];
  readonly chunked: Claimed[][] = [];
  /** Bytes of all that travels with the jobs taken. */
  bytes = 0;
  isUnfinished = false;
  private readonly scan: Scan;
  private readonly chunks: PulledChunks | undefined;
  private readonly types: ReadonlySet<string> | undefined;
  private readonly terms: Terms;

  constructor(
    private readonly q: QueueParts,
    request: ClaimRequest,
    private readonly now: number,
  ) {
    const { worker_id, types, visibility_timeout_ms, default_visibility_timeout_ms } = request;
    this.scan = q.store.cursors.pull.of(consumerKey(request), q.store.leases.head);
    this.chunks = request.chunks && new PulledChunks(q, request, now);
    this.types = types && new Set(types);
    this.terms = {
      ...(worker_id !== undefined && { workerId: worker_id }),
      timeoutMs: (body) => body.timeout_ms ?? q.config.settings.default_timeout_ms ?? DEFAULTS.timeoutMs,
      visibilityMs: (body) =>
        visibility_timeout_ms ??
        body.visibility_timeout_ms ??
        q.config.settings.visibility_timeout_ms ??
        default_visibility_timeout_ms ??
        DEFAULTS.visibilityMs,
    };
  }

  /** How many calls of handlers the jobs take: a chunk takes one. */
  get calls(): number {
    return this.claimed.length + this.chunked.length;
  }

  /** Did the last selection leave something behind? */
  get hasMore(): boolean {
    return !this.scan.emptied || this.chunks?.hasMore === true;
  }

  /** Has the last selection read ahead as much as it may? What it took leaves first. */
  get isCutShort(): boolean {
    return this.scan.isCutShort;
  }

  /** Takes the next jobs. @param calls of handlers that they may take at most */
  select(calls: number): void {
    const { q, now, scan, chunks } = this;
    const round: PullRound = { calls, starts: startsLeft(q, now), bytes: this.bytes };
    const limits = new LimitCheck(q, now);
    const claim: ChunkClaim = { limits, starting: new Map(), expired: [], most: 0 };
    chunks?.gather();
    const look = (row: JobRow): Verdict => this.look(row, claim, round);
    const limit = Math.min(round.calls, round.starts);
    const rows = chunks?.areAll ? [] : selectReady(q.store, scan, now, limit, look, claim.starting);
    if (chunks?.areAll) scan.emptied = true;
    chunks?.start(claim, round);
    for (const row of q.store.turn.draw(claim.expired)) expire(q, row, now);
    const together = chunks?.take() ?? [];
    const terms = together.length === 0 ? this.terms : { ...this.terms, chunks: numbersOf(together) };
    const jobs = grant(q, [...rows, ...together.flat()], terms, now);
    noteStarts(q, jobs, now);
    this.bytes = round.bytes;
    if (together.length === 0) this.claimed.push(...jobs);
    else this.note(jobs);
    this.isUnfinished = limits.setAside() || scan.unfinished || chunks?.isUnfinished === true;
  }

  private note(jobs: readonly Claimed[]): void {
    for (const [chunk, members] of Map.groupBy(jobs, ({ active }) => active.chunk)) {
      if (chunk === undefined) this.claimed.push(...members);
      else this.chunked.push(members);
    }
  }

  private look(row: JobRow, claim: ChunkClaim, round: PullRound): Verdict {
    const { q, now, types, scan, chunks } = this;
    const { limits } = claim;
    if (passOver(q, row, now, claim.expired)) return 'pass';
    if ((types && !types.has(row.type)) || chunks?.takes(row.type)) {
      // Other consumers take it.
      scan.exact = false;
      return 'pass';
    }
    chunks?.start(claim, round, row);
    if (round.calls <= 0 || round.starts <= 0) return 'stop';
    const size = bytesOnTheWay(q, row);
    if (round.bytes > 0 && round.bytes + size > MAX_CLAIM_BYTES) return 'stop';
    const judged = limits.isFull ? 'stop' : limits.judge(row);
    if (judged) return judged;
    round.bytes += size;
    round.calls--;
    round.starts--;
    limits.count(row);
    return 'take';
  }
}
