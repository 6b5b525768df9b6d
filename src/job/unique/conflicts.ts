/**
 * The conflict rules of unique jobs. The policy of a new job decides which jobs with its fingerprint are in conflict
 * with it, and what becomes of both. The state of an existing job says whether it counts, so a job that changes state
 * releases nothing.
 *
 * A batch is planned whole before anything is written, because a refusal must leave nothing behind. The planner
 * therefore treats the earlier entries of the batch as if they were stored.
 *
 * | `on_conflict` | the entry | the jobs in conflict |
 * |---|---|---|
 * | `reject` | refused, and the batch with it | stay |
 * | `ignore` | stands for the newest of them | stay |
 * | `replace` | is enqueued | cancelled, unless they have ended |
 * | `replace_except_schedule` | is enqueued at the scheduled time of the newest | cancelled, unless they have ended |
 */
import { parseExactly } from '../envelope/exact';
import { type ApiError, duplicate, refusal } from '../errors';
import type { JobBody, NewJob, UniquePolicy } from '../record';
import { type JobState, TERMINAL_STATES } from '../states';
import { undecided } from '../undecided';

/** An existing job with the fingerprint of an entry. Members beyond the first two are read only when they count. */
export interface Candidate {
  /** Tells candidates apart: the same job has the same key, whichever entry it is a candidate for. */
  readonly key: number | string;
  /** `undecided`: it becomes a job when the batch over several queues that it is part of is committed. */
  readonly state: JobState | 'undecided';
  /** Epoch ms; undefined: nothing is left of the job. */
  readonly createdAt: number | undefined;
  readonly id: string;
  /** JSON of its {@link JobBody}. */
  readonly body: string;
}

/** An earlier entry of the same batch, by its index. */
export interface EarlierEntry {
  index: number;
}

/** What becomes of one entry. */
export type Placement<C> =
  /** It is enqueued as `job`; the jobs that it replaces are cancelled. */
  | { job: NewJob; replaces: (C | EarlierEntry)[] }
  /** It is not enqueued, and stands for this job. */
  | { job: NewJob; existing: C | EarlierEntry };

/** What the planner keeps of an entry. */
interface PlannedEntry extends EarlierEntry {
  state: JobState;
  createdAt: number;
  body: string;
}

export function isEarlierEntry(conflict: object): conflict is EarlierEntry {
  return 'index' in conflict;
}

/** Plans the entries of one batch, in their order. */
export class ConflictPlanner<C extends Candidate> {
  /** Earlier entries by fingerprint, newest first. */
  private readonly entries = new Map<string, PlannedEntry[]>();
  /** Keys of the candidates that earlier entries replace. */
  private readonly replaced = new Set<C['key']>();
  private placed = 0;

  /**
   * @param now epoch ms
   * @param meets whether an entry can be in conflict with this earlier one; by default it always can
   */
  constructor(
    private readonly now: number,
    private readonly meets: (index: number, earlier: number) => boolean = () => true,
  ) {}

  /**
   * Plans the next entry.
   * @param candidates existing jobs with its fingerprint, newest first
   * @throws {ApiError} 409 `duplicate`; 503 while a candidate is undecided that may be in conflict with it
   */
  place(job: NewJob, candidates: readonly C[]): Placement<C> {
    const index = this.placed++;
    const policy = job.unique;
    if (!policy) return { job, replaces: [] };
    const earlier = this.entries.get(policy.fingerprint) ?? [];
    const met = [...earlier.filter((entry) => this.meets(index, entry.index)), ...candidates];
    const conflicts = met.filter((other) => this.isInConflict(policy, other));
    const [newest] = conflicts;
    if (newest && policy.on_conflict === 'reject') throw duplicateOf(newest);
    if (newest && policy.on_conflict === 'ignore') return { job, existing: newest };
    const replaces = conflicts.filter((other) => !TERMINAL_STATES.some((state) => state === this.stateOf(other)));
    for (const other of replaces) this.replace(other);
    const keepsSchedule = newest && policy.on_conflict === 'replace_except_schedule';
    const placed = keepsSchedule ? keepSchedule(job, newest.body) : job;
    const state = job.superseded ? 'cancelled' : initialState(placed, this.now);
    const entry = { index, state, createdAt: this.now, body: placed.body };
    this.entries.set(policy.fingerprint, [entry, ...earlier]);
    return { job: placed, replaces };
  }

  private isInConflict(policy: UniquePolicy, other: PlannedEntry | C): boolean {
    const isReplaced = this.stateOf(other) !== other.state;
    const answer = blocks(policy, isReplaced ? { state: 'cancelled', createdAt: other.createdAt } : other, this.now);
    if (answer === 'undecided') throw undecided();
    return answer;
  }

  /** The state of a job once the earlier entries are enqueued. */
  private stateOf(other: PlannedEntry | C): C['state'] {
    return !isEarlierEntry(other) && this.replaced.has(other.key) ? 'cancelled' : other.state;
  }

  private replace(other: PlannedEntry | C): void {
    if (isEarlierEntry(other)) other.state = 'cancelled';
    else this.replaced.add(other.key);
  }
}

/** 409: names the job that is in conflict, or the earlier entry. */
function duplicateOf(other: PlannedEntry | Candidate): ApiError {
  if (!isEarlierEntry(other)) return duplicate(other.id, other.state);
  const { index, state } = other;
  return refusal(409, 'duplicate', `Entry ${index} of the batch has the same unique fingerprint.`, {
    details: { existing_job_state: state, existing_index: index },
  });
}

/**
 * Is an existing job in conflict with a new one?
 * @param criteria of the new job's policy
 * @param existing its creation is read only if its state counts
 * @param now epoch ms
 * @returns `undecided`: it can be, once its batch is decided
 */
export function blocks(
  criteria: Pick<UniquePolicy, 'states' | 'period_ms'>,
  existing: Pick<Candidate, 'state' | 'createdAt'>,
  now: number,
): boolean | 'undecided' {
  const { state } = existing;
  if (state === 'undecided') return criteria.states.some((counts) => !TERMINAL_STATES.includes(counts)) && state;
  if (!criteria.states.includes(state)) return false;
  const { createdAt } = existing;
  if (createdAt === undefined) return false;
  return criteria.period_ms === undefined || now < createdAt + criteria.period_ms;
}

/** The state of a job at its creation. */
function initialState(job: Pick<NewJob, 'pending' | 'scheduledAt'>, now: number): JobState {
  if (job.pending) return 'pending';
  return job.scheduledAt !== undefined && job.scheduledAt > now ? 'scheduled' : 'available';
}

/**
 * A new job with the schedule of the one it replaces.
 * @param existing JSON of the {@link JobBody} of the replaced job
 */
function keepSchedule(job: NewJob, existing: string): NewJob {
  const { scheduled_at } = JSON.parse(existing) as JobBody;
  const { scheduledAt: _, ...rest } = job;
  const { scheduled_at: __, ...body } = parseExactly(job.body) as JobBody;
  if (scheduled_at === undefined) return { ...rest, body: JSON.stringify(body) };
  return { ...rest, scheduledAt: scheduled_at, body: JSON.stringify({ ...body, scheduled_at }) };
}
