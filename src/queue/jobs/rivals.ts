/**
 * Unique jobs inside one queue: who stands in the way of a newcomer, and what becomes of both. Whether a job stands in
 * the way is read from the job itself, by the policy of the newcomer, so nothing is released when a job changes state.
 *
 * Check and insert belong to one transaction. A batch is planned whole before anything is written, because a refusal must
 * leave nothing behind: {@link UniquePlanner} therefore treats earlier entries as if they were stored already.
 */
import { ApiError, duplicate, unavailable } from '../../job/errors';
import { sequenceOf } from '../../job/ids';
import type { JobView, NewJob, UniquePolicy } from '../../job/record';
import { type JobState, TERMINAL_STATES } from '../../job/states';
import { blocks, initialState, keepSchedule, mayBlock } from '../../job/unique';
import type { UniqueQuestion, UniqueRivals } from '../../rpc/queue';
import { viewOfArchived, viewOfRow } from '../read/find';
import { findArchived } from '../store/archive';
import { type ArchivedJob, idOf, type JobRow, rowByKey, STATE, stateOf } from '../store/rows';
import type { QueueState } from '../store/state';
import { forgetKey } from '../store/unique-keys';
import { cancel } from './cancel';

/** Rows looked at for one fingerprint; many collect only where a policy lets many jobs with the same one wait. */
const MAX_RIVALS = 100;

/** A stored job with the fingerprint in question. Without a row it has completed. */
interface Stored {
  key: number;
  /** `held`: part of a batch over several queues that is not decided. */
  state: JobState | 'held';
  row?: JobRow;
}

/** An earlier entry of the same batch. */
interface Entry {
  index: number;
  state: JobState;
  job: NewJob;
}

/** Someone with the same fingerprint. */
export type Rival = Stored | Entry;

/** What becomes of one entry of a batch. */
export type Placement = { job: NewJob; replaces: Rival[] } | { existing: Rival };

type Criteria = Pick<UniquePolicy, 'states' | 'period_ms'>;

/** The stored jobs with this fingerprint, newest first. */
function storedRivals(q: QueueState, fingerprint: string, now: number): Stored[] {
  const keys = q.sql
    .exec<{ key: number }>('SELECT key FROM unique_keys WHERE fingerprint = ?', fingerprint)
    .toArray()
    .map(({ key }) => key)
    .sort((a, b) => sequenceOf(b) - sequenceOf(a));
  return keys.map((key) => {
    const row = rowByKey(q.sql, key);
    if (!row) return { key, state: 'completed' };
    return { key, row, state: row.state === STATE.held ? 'held' : stateOf(row, q.leases.active.has(key), now) };
  });
}

/** A completed job, also one that this transaction has completed. */
function completedJob(q: QueueState, key: number): ArchivedJob | undefined {
  return q.archive.find(key) ?? findArchived(q.sql, key);
}

/** Does this one stand in the way of a newcomer with these criteria? `undecided`: it may, once its batch is decided. */
function standing(q: QueueState | undefined, rival: Rival, criteria: Criteria, now: number): boolean | 'undecided' {
  if ('index' in rival) return blocks(criteria, { state: rival.state, createdAt: now }, now);
  const { state, row } = rival;
  if (state === 'held') return mayBlock(criteria) && 'undecided';
  if (!criteria.states.includes(state)) return false;
  const createdAt = row?.created_at ?? (q && completedJob(q, rival.key)?.at[0]);
  // A row that outlived its job says nothing.
  return createdAt !== undefined && blocks(criteria, { state, createdAt }, now);
}

function viewOfStored(q: QueueState, key: number, now: number): JobView | undefined {
  const row = rowByKey(q.sql, key);
  if (row) return viewOfRow(q, row, now);
  const archived = completedJob(q, key);
  return archived && viewOfArchived(q, archived);
}

/** What this queue knows of a fingerprint, for a newcomer that goes to another queue. Writes nothing. */
export function rivalsHere(q: QueueState, question: UniqueQuestion, now: number): UniqueRivals {
  const rivals = storedRivals(q, question.fingerprint, now);
  const found: UniqueRivals = { known: rivals.length > 0, undecided: false, blocking: [] };
  for (const rival of rivals) {
    const stands = standing(q, rival, question, now);
    if (stands === 'undecided') found.undecided = true;
    else if (stands) {
      const view = viewOfStored(q, rival.key, now);
      if (view) found.blocking.push(view);
    }
  }
  return found;
}

/** 503: whether the job is a duplicate depends on a batch that is being decided. Nothing was written. */
export function undecided(): ApiError {
  const { data } = unavailable('A batch that is being enqueued has a job with the same unique fingerprint; try again.');
  return new ApiError({ ...data, details: { reason: UNDECIDED } });
}

/** `details.reason` of {@link undecided}. */
export const UNDECIDED = 'undecided_batch';

/** Decides what becomes of the jobs of one enqueue, in their order. Reads only. */
export class UniquePlanner {
  private readonly rivals = new Map<string, Rival[]>();
  /** Rows of jobs that can no longer decide anything. */
  private readonly outdated: { fingerprint: string; key: number }[] = [];
  private placed = 0;

  /** @param q absent: a queue that has no jobs yet, so that only earlier entries stand in the way */
  constructor(
    private readonly q: QueueState | undefined,
    private readonly now: number,
  ) {}

  /** @throws {ApiError} 409 `duplicate`; 503 while that is not decided */
  place(job: NewJob): Placement {
    const index = this.placed++;
    const policy = job.unique;
    if (!policy) return { job, replaces: [] };
    const rivals = this.rivalsOf(policy.fingerprint);
    const blocking = rivals.filter((rival) => {
      const stands = standing(this.q, rival, policy, this.now);
      if (stands === 'undecided') throw undecided();
      return stands;
    });
    const [newest] = blocking;
    if (newest && policy.on_conflict === 'reject') throw this.refusal(newest);
    if (newest && policy.on_conflict === 'ignore') return { existing: newest };
    const replaces = blocking.filter((rival) => !isTerminal(rival.state));
    for (const rival of replaces) rival.state = 'cancelled';
    const kept = newest && policy.on_conflict === 'replace_except_schedule' ? this.bodyOf(newest) : undefined;
    const placement = { job: kept === undefined ? job : keepSchedule(job, kept), replaces };
    const state = job.superseded ? 'cancelled' : initialState(placement.job, this.now);
    rivals.unshift({ index, state, job: placement.job });
    return placement;
  }

  /** Deletes the rows that can no longer decide anything; call when new ones have been written. */
  tidy(): void {
    for (const { fingerprint, key } of this.outdated) if (this.q) forgetKey(this.q.sql, fingerprint, key);
  }

  private rivalsOf(fingerprint: string): Rival[] {
    let rivals = this.rivals.get(fingerprint);
    if (!rivals) {
      const stored = this.q ? storedRivals(this.q, fingerprint, this.now) : [];
      const ended = new Set<string>();
      rivals = stored.filter((rival, place) => {
        // Of those that ended the same way, the newest stands in the way the longest.
        const needed = place < MAX_RIVALS && !(isTerminal(rival.state) && ended.has(rival.state));
        ended.add(rival.state);
        if (!needed) this.outdated.push({ fingerprint, key: rival.key });
        return needed;
      });
      this.rivals.set(fingerprint, rivals);
    }
    return rivals;
  }

  private bodyOf(rival: Rival): string | undefined {
    if ('index' in rival) return rival.job.body;
    if (rival.row) return rival.row.body;
    const archived = this.q && completedJob(this.q, rival.key);
    return archived && JSON.stringify(archived.b);
  }

  private refusal(rival: Rival): ApiError {
    if ('index' in rival) return duplicateOfEntry(rival.index, rival.state);
    const record = this.q && viewOfStored(this.q, rival.key, this.now)?.record;
    return duplicate(record?.id ?? '', record?.state ?? rival.state);
  }
}

/** 409: an earlier entry of the same batch has the same fingerprint. */
export function duplicateOfEntry(index: number, state: JobState | 'held'): ApiError {
  const { data } = duplicate('', state);
  return new ApiError({
    ...data,
    message: `Entry ${index} of the batch has the same unique fingerprint.`,
    details: { existing_job_state: state, existing_index: index },
  });
}

function isTerminal(state: JobState | 'held'): boolean {
  return state !== 'held' && TERMINAL_STATES.includes(state);
}

/**
 * The job that an ignored entry stands for.
 * @param earlier the jobs of the entries before it
 */
export function existingJob(q: QueueState, rival: Rival, earlier: readonly JobView[], now: number): JobView {
  const view = 'index' in rival ? earlier[rival.index] : viewOfStored(q, rival.key, now);
  if (!view) throw new Error(`Queue ${q.name} lost a job within a transaction.`);
  return view;
}

/** Cancels the job with this key unless it has ended. */
export function cancelKey(q: QueueState, key: number, now: number): JobView | undefined {
  const stored = rowByKey(q.sql, key);
  const row = stored && q.locks.seen(stored);
  if (!row || isTerminal(stateOf(row, q.leases.active.has(key), now))) return undefined;
  return cancel(q, idOf(q.route, row), now);
}
