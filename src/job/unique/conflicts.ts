/**
 * Conflict rules of unique jobs: the new job's policy decides which jobs with its fingerprint conflict, and what
 * happens to both. A batch is planned whole before anything is written; earlier entries count as if stored.
 *
 * | `on_conflict` | the entry | the jobs in conflict |
 * |---|---|---|
 * | `reject` | refused, and the batch with it | stay |
 * | `ignore` | stands for the newest of them | stay |
 * | `replace` | is enqueued | cancelled, unless they have ended |
 * | `replace_except_schedule` | is enqueued at the scheduled time of the newest | cancelled, unless they have ended |
 * | `accumulate` | becomes a part of the newest that no worker has had, if it fits | stay; a full one is due |
 */
import { type ApiError, duplicate, refusal } from '../errors';
import type { NewJob, UniquePolicy } from '../record';
import { type JobState, TERMINAL_STATES } from '../states';
import { undecided } from '../undecided';
import { continued, Gathering, keepSchedule, startingAt, type Target } from './coalesced';

/** An existing job with the fingerprint. `undecided`: it exists once its batch over several queues commits. */
export interface Candidate extends Target {
  /** Tells candidates apart: the same job has the same key, whichever entry it is a candidate for. */
  readonly key: number | string;
  readonly id: string;
}

export interface EarlierEntry {
  index: number;
}

export type Placement<C> =
  /** It is enqueued as `job`; the jobs that it replaces are cancelled. */
  | { job: NewJob; replaces: (C | EarlierEntry)[] }
  /** It is not enqueued, and stands for this job, which has its arguments if they accumulate. */
  | { job: NewJob; existing: C | EarlierEntry; accumulated?: true };

/** What the planner keeps of an entry. */
interface PlannedEntry extends EarlierEntry, Target {
  state: JobState;
  /** It is rewritten when others become a part of it. */
  placement: { job: NewJob };
}

export const isEarlierEntry = (conflict: object): conflict is EarlierEntry => 'index' in conflict;

export class ConflictPlanner<C extends Candidate> {
  private readonly entries = new Map<string, PlannedEntry[]>();
  /** Keys of the candidates that earlier entries replace. */
  private readonly replaced = new Set<C['key']>();
  /** Jobs that entries become a part of, or that are full, in the order of the entries. */
  private readonly gatherings = new Map<C['key'] | PlannedEntry, { into: C | PlannedEntry; gathered: Gathering }>();
  private placed = 0;

  /** @param meets can an entry conflict with this earlier one? @param mayAccumulate may it join a candidate? */
  constructor(
    private readonly now: number,
    private readonly meets: (index: number, earlier: number) => boolean = () => true,
    private readonly mayAccumulate = true,
  ) {}

  /**
   * Plans the next entry. @param candidates existing jobs with its fingerprint, newest first
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
    if (policy.on_conflict === 'accumulate') {
      // Under an id, a job may be sent again after a lost answer: it must not become a part of another one twice.
      const isPart = job.id === undefined;
      return (isPart && this.accumulate(job, policy, conflicts)) || this.enter(job, policy, index, []);
    }
    const replaces = conflicts.filter((other) => !TERMINAL_STATES.some((state) => state === this.stateOf(other)));
    const placed = this.timed(job, policy, newest);
    for (const other of replaces) this.replace(other);
    return this.enter(placed, policy, index, replaces);
  }

  /** Call after all entries are placed. @returns the candidates that change, and what they become */
  gathered(): { into: C; gathered: Gathering }[] {
    const changed: { into: C; gathered: Gathering }[] = [];
    for (const { into, gathered } of this.gatherings.values()) {
      if (isEarlierEntry(into)) into.placement.job = gathered.applyTo(into.placement.job);
      else if (gathered.isChanged) changed.push({ into, gathered });
    }
    return changed;
  }

  private enter(job: NewJob, policy: UniquePolicy, index: number, replaces: (C | EarlierEntry)[]): Placement<C> {
    const placement = { job, replaces };
    const state = job.superseded ? 'cancelled' : initialState(job, this.now);
    const dueAt = state === 'scheduled' ? job.scheduledAt : undefined;
    const entry = { index, state, createdAt: this.now, hasRun: false, dueAt, body: job.body, placement };
    this.entries.set(policy.fingerprint, [entry, ...(this.entries.get(policy.fingerprint) ?? [])]);
    return placement;
  }

  /** When a job that takes the place of others starts. */
  private timed(job: NewJob, policy: UniquePolicy, newest: PlannedEntry | C | undefined): NewJob {
    const { on_conflict, max_wait_ms, window_ms } = policy;
    if (newest && on_conflict === 'replace_except_schedule') return keepSchedule(job, this.seen(newest).body);
    // The search of other queues may have found its time there.
    if (window_ms !== undefined && job.scheduledAt === undefined) return startingAt(job, this.now + window_ms);
    if (!newest || max_wait_ms === undefined) return job;
    const replaced = this.seen(newest);
    return UNSTARTED.has(this.stateOf(newest)) && !replaced.hasRun
      ? continued(job, replaced, max_wait_ms, this.now)
      : job;
  }

  /** Makes an entry a part of the newest job that can take it. Undefined: there is none, or it is full. */
  private accumulate(
    job: NewJob,
    policy: UniquePolicy,
    conflicts: readonly (PlannedEntry | C)[],
  ): Placement<C> | undefined {
    const into = conflicts.find((other) => !other.hasRun && (this.mayAccumulate || isEarlierEntry(other)));
    if (!into) return undefined;
    const name = isEarlierEntry(into) ? into : into.key;
    const known = this.gatherings.get(name)?.gathered;
    const gathered = known ?? new Gathering(into, this.now);
    this.gatherings.set(name, { into, gathered });
    if (gathered.take(job, policy)) return { job, existing: into, accumulated: true };
    gathered.close();
    return undefined;
  }

  /** A job as it is once the earlier entries are enqueued. */
  private seen(other: PlannedEntry | C): Target {
    return this.gatherings.get(isEarlierEntry(other) ? other : other.key)?.gathered ?? other;
  }

  private isInConflict(policy: UniquePolicy, other: PlannedEntry | C): boolean {
    const state = this.stateOf(other);
    const isChanged = state !== other.state;
    const answer = blocks(policy, isChanged ? { state, createdAt: other.createdAt } : other, this.now);
    if (answer === 'undecided') throw undecided();
    return answer;
  }

  /** The state of a job once the earlier entries are enqueued. */
  private stateOf(other: PlannedEntry | C): C['state'] {
    if (isEarlierEntry(other) ? other.state === 'cancelled' : this.replaced.has(other.key)) return 'cancelled';
    return this.seen(other).state;
  }

  private replace(other: PlannedEntry | C): void {
    if (isEarlierEntry(other)) other.state = 'cancelled';
    else this.replaced.add(other.key);
  }
}

/** States of a job that has not started, unless it has run before. */
const UNSTARTED: ReadonlySet<string> = new Set<JobState>(['scheduled', 'available', 'pending']);

/** 409: names the job that is in conflict, or the earlier entry. */
function duplicateOf(other: PlannedEntry | Candidate): ApiError {
  if (!isEarlierEntry(other)) return duplicate(other.id, other.state);
  const { index, state } = other;
  return refusal(409, 'duplicate', `Entry ${index} of the batch has the same unique fingerprint.`, {
    details: { existing_job_state: state, existing_index: index },
  });
}

/** Does an existing job conflict with a new one? `undecided`: once its batch is decided. @param now epoch ms */
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

function initialState(job: Pick<NewJob, 'pending' | 'scheduledAt'>, now: number): JobState {
  if (job.pending) return 'pending';
  return job.scheduledAt !== undefined && job.scheduledAt > now ? 'scheduled' : 'available';
}
