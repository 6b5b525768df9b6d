/**
 * Taking jobs to run them. The attempt is on record before anyone sees the job: the lease row says which claim runs, so
 * even a job that kills its runner, or this object, runs out of attempts.
 */
import type { JobBody, JobView } from '../../job/record';
import { DEFAULTS } from '../../job/settings';
import type { ClaimRequest } from '../../rpc/workers';
import { viewForRunner } from '../read/find';
import { lease } from '../store/attempts';
import type { JobRow } from '../store/columns';
import { selectReady } from '../store/lanes';
import type { Active } from '../store/leases';
import { startsLeft } from '../store/limits/queue-limit';
import { readableBody } from '../store/rows';
import type { QueueState } from '../store/state';
import { expire } from './expire';
import { LimitCheck, noteStarts } from './limit-check';
import { quarantine } from './settle';

/** A claimed row with its parsed body and its lease. */
export interface Claimed {
  row: JobRow;
  body: JobBody;
  active: Active;
}

/** Terms of a claim: who holds it, and for how long. */
export interface Terms {
  workerId?: string;
  target?: string;
  /** Execution limit in ms. */
  timeoutMs: (body: JobBody) => number;
  /** Lease length in ms. */
  visibilityMs: (body: JobBody) => number;
}

/** Grants a lease for these rows. One row written for the whole batch, unless it is huge. */
export function grant(q: QueueState, rows: JobRow[], terms: Terms, now: number): Claimed[] {
  const readable: { row: JobRow; body: JobBody; entry: Omit<Active, 'leaseId'> }[] = [];
  for (const row of rows) {
    const body = readableBody(row);
    if (!body) {
      // One row that cannot be read must not stop the others: it becomes a dead letter that a human can look at.
      quarantine(q, row, now);
      continue;
    }
    const visibilityMs = terms.visibilityMs(body);
    readable.push({
      row,
      body,
      entry: {
        key: row.key,
        type: row.type,
        claim: row.claims + 1,
        attempt: row.attempt + 1,
        startedAt: now,
        expiresAt: now + visibilityMs,
        visibilityMs,
        timeoutAt: now + terms.timeoutMs(body),
        indexed: row.due_at !== null,
        ...(row.limit_key !== null && { limitKey: row.limit_key }),
        ...(terms.workerId !== undefined && { workerId: terms.workerId }),
        ...(terms.target !== undefined && { target: terms.target }),
      },
    });
  }
  if (readable.length === 0) return [];
  const leased = lease(q, readable, now);
  return readable.map(({ row, body }, index) => ({ row, body, active: leased[index] as Active }));
}

/** Judges a row for any consumer: already running or expired rows are passed over, the latter discarded later. */
export function passOver(q: QueueState, row: JobRow, now: number, expired: JobRow[]): boolean {
  if (q.leases.active.has(row.key)) return true;
  if (row.expires_at === null || row.expires_at > now) return false;
  expired.push(row);
  return true;
}

/** Characters of checkpoints in one answer at most, unless a single one is larger. */
const MAX_CHECKPOINT_CHARS = 8 * 1024 * 1024;

/** So many jobs without room for their key, found by one selection, mean that it may have seen nothing else. */
export const CROWD = 1_000;

/** Selections that one claim makes to get past such a crowd. */
const MAX_SELECTIONS = 8;

/** A claim by a worker that pulls: the next jobs, in order. A paused queue gives none. */
export function claim(q: QueueState, request: ClaimRequest, now: number): JobView[] {
  if (q.paused) return [];
  const terms: Terms = {
    ...(request.worker_id !== undefined && { workerId: request.worker_id }),
    timeoutMs: (body) => body.timeout_ms ?? q.settings.default_timeout_ms ?? DEFAULTS.timeoutMs,
    visibilityMs: (body) =>
      request.visibility_timeout_ms ??
      body.visibility_timeout_ms ??
      q.settings.visibility_timeout_ms ??
      DEFAULTS.visibilityMs,
  };
  const claimed: Claimed[] = [];
  for (let selections = 0; selections < MAX_SELECTIONS; selections++) {
    const limit = Math.min(request.count - claimed.length, startsLeft(q, now));
    if (limit <= 0) break;
    const { jobs, refused } = claimOnce(q, limit, terms, now);
    claimed.push(...jobs);
    if (refused < CROWD) break;
    // Whoever waits looks again, even if this claim does not come to the end of the crowd.
    q.workArrived = true;
  }
  return claimed.map(({ row }) => viewForRunner(q, row, now));
}

function claimOnce(q: QueueState, limit: number, terms: Terms, now: number): { jobs: Claimed[]; refused: number } {
  const expired: JobRow[] = [];
  const limits = new LimitCheck(q, now);
  let carried = 0;
  const rows = selectReady(q, q.pullScan, now, limit, (row) => {
    if (passOver(q, row, now, expired)) return 'pass';
    const size = q.checkpoints.sizeOf(row.key);
    if (carried > 0 && carried + size > MAX_CHECKPOINT_CHARS) return 'hold';
    if (!limits.allows(row)) return 'pass';
    carried += size;
    limits.count(row);
    return 'take';
  });
  for (const row of expired) expire(q, row, now);
  const jobs = grant(q, rows, terms, now);
  noteStarts(
    q,
    jobs.map(({ row }) => row),
    now,
  );
  return { jobs, refused: limits.setAside() };
}
