/** Unique jobs in a queue: candidates for the planner (`job/unique/conflicts`) and its decisions, in a transaction. */
import { charsToTell, MAX_EXISTING_CHARS } from '../../job/message';
import type { JobBody, JobView, NewJob } from '../../job/record';
import { type JobState, TERMINAL_STATES } from '../../job/states';
import type { Gathering } from '../../job/unique/coalesced';
import {
  blocks,
  type Candidate,
  ConflictPlanner,
  type EarlierEntry,
  isEarlierEntry,
  type Placement,
} from '../../job/unique/conflicts';
import type { UniqueConflicts, UniqueQuestion } from '../../rpc/queue';
import { viewOfArchived, viewOfRow } from '../read/find';
import { type JobRow, STATE } from '../store/job-row';
import type { QueueParts, StoredQueue } from '../store/parts';
import { completedByKey, rowByKey } from '../store/row-lookup';
import { type ArchivedJob, idOf, idOfArchived, stateOf } from '../store/rows';
import { forgetKey, MAX_RIVALS, rivalKeys } from '../store/unique-keys';
import { cancel } from './cancel';
import { hasExpired } from './expire';

/** A stored job with the fingerprint. A completed one has no row, and is read from the archive when needed. */
export class StoredJob implements Candidate {
  readonly state: JobState | 'undecided';
  private readonly row: JobRow | undefined;
  private found: ArchivedJob | undefined;

  constructor(
    private readonly q: StoredQueue,
    readonly key: number,
    now: number,
  ) {
    this.row = rowByKey(q.store, key);
    if (!this.row) this.state = 'completed';
    else if (this.row.state === STATE.held) this.state = 'undecided';
    // Its time is over, but it is not discarded yet.
    else if (hasExpired(q, this.row, now)) this.state = 'discarded';
    else this.state = stateOf(this.row, q.store.leases.active.has(key), now);
  }

  /** Undefined: the key has outlived its job. */
  get createdAt(): number | undefined {
    return this.row?.created_at ?? this.archived?.at[0];
  }

  /** Claimed at least once, also by a worker that gave it back unused. */
  get hasRun(): boolean {
    return this.row === undefined || this.row.claims > 0 || this.q.store.leases.active.has(this.key);
  }

  get dueAt(): number | undefined {
    return this.row?.due_at ?? undefined;
  }

  get id(): string {
    return this.row ? idOf(this.q.route, this.row) : this.archived ? idOfArchived(this.q.route, this.archived) : '';
  }

  get body(): string {
    return this.row?.body ?? JSON.stringify(this.archived?.b);
  }

  view(now: number): JobView | undefined {
    if (this.row) return viewOfRow(this.q, this.row, now);
    return this.archived && viewOfArchived(this.q, this.archived);
  }

  /** The completed job, also one that this transaction has completed. */
  private get archived(): ArchivedJob | undefined {
    this.found ??= completedByKey(this.q.store, this.key);
    return this.found;
  }
}

export class AnswerRoom {
  private left = MAX_EXISTING_CHARS;

  take({ record, layers }: JobView): JobView {
    const chars = charsToTell(record);
    if (chars <= this.left) {
      this.left -= chars;
      return { record, layers };
    }
    const { result: _, progress_data: __, ...rest } = record;
    const { type, scheduled_at, coalesced } = JSON.parse(record.body) as JobBody;
    return {
      record: { ...rest, history: {}, body: JSON.stringify({ type, args: [], meta: {}, scheduled_at, coalesced }) },
      layers,
    };
  }
}

/** The stored jobs with a fingerprint, for a new job in another queue. Writes nothing. */
export function conflictsHere(
  q: StoredQueue,
  question: UniqueQuestion,
  now: number,
  room: AnswerRoom,
): UniqueConflicts {
  const stored = storedJobs(q, question.fingerprint, now);
  const found: UniqueConflicts = { known: stored.length > 0, undecided: false, blocking: [] };
  for (const job of stored) {
    const answer = blocks(question, job, now);
    if (answer === 'undecided') found.undecided = true;
    const view = answer === true ? job.view(now) : undefined;
    if (view) found.blocking.push(room.take(view));
  }
  return found;
}

/** The stored jobs with this fingerprint, newest first. */
const storedJobs = (q: StoredQueue, fingerprint: string, now: number): StoredJob[] =>
  rivalKeys(q.store.sql, fingerprint).map((key) => new StoredJob(q, key, now));

export interface Accumulated {
  into: StoredJob;
  gathered: Gathering;
}

/** Plans the jobs of one enqueue, in their order. Reads only. */
export class QueueConflicts {
  private readonly planner: ConflictPlanner<StoredJob>;
  private readonly stored = new Map<string, StoredJob[]>();
  private readonly outdated: { fingerprint: string; key: number }[] = [];

  /** @param mayAccumulate whether jobs may become a part of stored ones */
  constructor(
    private readonly q: StoredQueue,
    private readonly now: number,
    mayAccumulate: boolean,
  ) {
    this.planner = new ConflictPlanner(now, undefined, mayAccumulate);
  }

  /** @throws {ApiError} 409 `duplicate`; 503 while that is not decided */
  place(job: NewJob): Placement<StoredJob> {
    return this.planner.place(job, job.unique ? this.candidates(job.unique.fingerprint) : []);
  }

  /** All are placed. @returns what becomes of stored jobs that they are a part of, or that are full */
  gathered(): Accumulated[] {
    return this.planner.gathered();
  }

  /** Deletes keys that no longer decide anything; call when new ones have been written. */
  tidy(): void {
    for (const { fingerprint, key } of this.outdated) forgetKey(this.q.store.sql, fingerprint, key);
  }

  private candidates(fingerprint: string): StoredJob[] {
    const known = this.stored.get(fingerprint);
    if (known) return known;
    const ended = new Set<string>();
    const candidates = storedJobs(this.q, fingerprint, this.now).filter(({ key, state }, place) => {
      // Of those that ended the same way, the newest conflicts the longest.
      const counts = place < MAX_RIVALS && !(isTerminal(state) && ended.has(state));
      ended.add(state);
      if (!counts) this.outdated.push({ fingerprint, key });
      return counts;
    });
    this.stored.set(fingerprint, candidates);
    return candidates;
  }
}

const isTerminal = (state: StoredJob['state']): boolean => state !== 'undecided' && TERMINAL_STATES.includes(state);

/** The current state of the job that an ignored entry stands for. @param earlier the jobs of earlier entries */
export function existingJob(
  q: StoredQueue,
  existing: StoredJob | EarlierEntry,
  earlier: readonly JobView[],
  now: number,
): JobView {
  const view = isEarlierEntry(existing) ? earlier[existing.index] : new StoredJob(q, existing.key, now).view(now);
  if (!view) throw new Error(`Queue ${q.name} lost a job within a transaction.`);
  return view;
}

export function cancelKey(q: QueueParts, key: number, now: number): JobView | undefined {
  const stored = rowByKey(q.store, key);
  const row = stored && q.store.locks.seen(stored);
  if (!row || isTerminal(stateOf(row, q.store.leases.active.has(key), now))) return undefined;
  return cancel(q, idOf(q.route, row), now);
}
