/** The planner of unique conflicts against the contract read word by word: one entry after the other, into a list of jobs. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError, outcomeOf } from '../../../src/job/errors';
import type { NewJob, UniquePolicy } from '../../../src/job/record';
import { JOB_STATES, type JobState, TERMINAL_STATES } from '../../../src/job/states';
import { type Candidate, ConflictPlanner, isEarlierEntry, type Placement } from '../../../src/job/unique/conflicts';

const NOW = 1_000_000;
const FINGERPRINTS = ['a', 'b'];

interface Stored extends Candidate {
  fingerprint: string;
  state: Candidate['state'];
}

/** A job of the model. Entries have no id before they are enqueued. */
interface ModelJob {
  name: string;
  fingerprint: string;
  state: JobState;
  createdAt: number;
  scheduledAt: number | undefined;
}

const bodyOf = (scheduledAt: number | undefined) =>
  JSON.stringify({ type: 't', args: [], ...(scheduledAt !== undefined && { scheduled_at: scheduledAt }) });

const schedule = fc.option(fc.constantFrom(NOW - 10, NOW + 10, NOW + 20), { nil: undefined });

const policy: fc.Arbitrary<UniquePolicy> = fc.record(
  {
    fingerprint: fc.constantFrom(...FINGERPRINTS),
    scope: fc.constantFrom('queue' as const, 'global' as const),
    states: fc.subarray([...JOB_STATES], { minLength: 1 }),
    period_ms: fc.constantFrom(1, 20, 100),
    on_conflict: fc.constantFrom('reject', 'ignore', 'replace', 'replace_except_schedule'),
  },
  { requiredKeys: ['fingerprint', 'scope', 'states', 'on_conflict'] },
);

const entry: fc.Arbitrary<NewJob> = fc
  .record({ unique: fc.option(policy, { nil: undefined, freq: 6 }), scheduledAt: schedule, pending: fc.boolean() })
  .map(({ unique, scheduledAt, pending }) => ({
    type: 't',
    priority: 0,
    body: bodyOf(scheduledAt),
    ...(scheduledAt !== undefined && { scheduledAt }),
    ...(pending && { pending }),
    ...(unique && { unique }),
  }));

/** Stored jobs, newest first. */
const stored = (states: readonly Candidate['state'][]): fc.Arbitrary<Stored[]> =>
  fc
    .array(
      fc.record({
        fingerprint: fc.constantFrom(...FINGERPRINTS),
        state: fc.constantFrom(...states),
        age: fc.constantFrom(0, 20, 100, 1000),
        scheduledAt: schedule,
      }),
      { maxLength: 5 },
    )
    .map((jobs) =>
      jobs
        .sort((a, b) => a.age - b.age)
        .map(({ fingerprint, state, age, scheduledAt }, key) => ({
          ...{ key, fingerprint, state, createdAt: NOW - age, id: `s${key}`, body: bodyOf(scheduledAt) },
        })),
    );

const scheduledIn = (body: string): number | undefined => JSON.parse(body).scheduled_at;

function born({ pending, scheduledAt }: { pending?: boolean | undefined; scheduledAt?: number | undefined }): JobState {
  if (pending) return 'pending';
  return scheduledAt !== undefined && scheduledAt > NOW ? 'scheduled' : 'available';
}

/** What the contract says comes of the batch: the jobs afterwards, and the one that each entry stands for. */
function byTheContract(existing: readonly Stored[], entries: readonly NewJob[]) {
  const world: ModelJob[] = existing.map(({ id, fingerprint, state, createdAt, body }) => ({
    ...{
      name: id,
      fingerprint,
      state: state as JobState,
      createdAt: createdAt as number,
      scheduledAt: scheduledIn(body),
    },
  }));
  const standsFor: string[] = [];
  for (const [index, { unique, scheduledAt, pending }] of entries.entries()) {
    const state = born({ scheduledAt, pending });
    const job: ModelJob = { name: `e${index}`, fingerprint: '', createdAt: NOW, scheduledAt, state };
    const conflicts = world.filter(
      (other) =>
        unique?.fingerprint === other.fingerprint &&
        unique.states.includes(other.state) &&
        (unique.period_ms === undefined || NOW - other.createdAt < unique.period_ms),
    );
    const [newest] = conflicts;
    if (unique) job.fingerprint = unique.fingerprint;
    if (newest && unique?.on_conflict === 'reject') return { refusedAt: index, because: newest.name };
    if (newest && unique?.on_conflict === 'ignore') {
      standsFor.push(newest.name);
      continue;
    }
    if (newest && unique?.on_conflict === 'replace_except_schedule') {
      job.scheduledAt = newest.scheduledAt;
      job.state = born({ scheduledAt: newest.scheduledAt, pending });
    }
    for (const other of conflicts) if (!TERMINAL_STATES.includes(other.state)) other.state = 'cancelled';
    world.unshift(job);
    standsFor.push(job.name);
  }
  return { world: new Map(world.map(({ name, state, scheduledAt }) => [name, { state, scheduledAt }])), standsFor };
}

/** The same, by planning the batch and carrying the plan out. */
function byThePlan(existing: readonly Stored[], entries: readonly NewJob[]) {
  const planner = new ConflictPlanner<Stored>(NOW);
  const nameOf = (job: Stored | { index: number }): string =>
    isEarlierEntry(job) ? (standsFor[job.index] as string) : (job as Stored).id;
  const world = new Map(existing.map(({ id, state, body }) => [id, { state, scheduledAt: scheduledIn(body) }]));
  const standsFor: string[] = [];
  for (const [index, job] of entries.entries()) {
    const candidates = existing.filter(({ fingerprint }) => fingerprint === job.unique?.fingerprint);
    const outcome = outcomeOf((): Placement<Stored> => planner.place(job, candidates));
    if (!outcome.ok) {
      const { existing_index: earlier, existing_job_id: id } = outcome.error.details ?? {};
      expect(outcome.error).toMatchObject({ status: 409, code: 'duplicate' });
      return { refusedAt: index, because: earlier === undefined ? id : `e${earlier}` };
    }
    const placement = outcome.value;
    if ('existing' in placement) {
      standsFor.push(nameOf(placement.existing));
      continue;
    }
    for (const replaced of placement.replaces) {
      const old = world.get(nameOf(replaced));
      if (old) old.state = 'cancelled';
    }
    const { scheduledAt, body } = placement.job;
    expect(scheduledIn(body)).toBe(scheduledAt);
    standsFor.push(`e${index}`);
    world.set(`e${index}`, { state: born(placement.job), scheduledAt });
  }
  return { world, standsFor };
}

describe('a plan', () => {
  it('comes to what the contract says of the entries one after the other', () => {
    fc.assert(
      fc.property(stored(JOB_STATES), fc.array(entry, { maxLength: 6 }), (existing, entries) => {
        expect(byThePlan(existing, entries)).toEqual(byTheContract(existing, entries));
      }),
      { numRuns: 3000 },
    );
  });

  it('waits for an undecided job with the fingerprint, if it can be in conflict once it is decided', () => {
    fc.assert(
      fc.property(stored([...JOB_STATES, 'undecided']), entry, (existing, job) => {
        const candidates = existing.filter(({ fingerprint }) => fingerprint === job.unique?.fingerprint);
        const isUndecided =
          candidates.some(({ state }) => state === 'undecided') &&
          job.unique?.states.some((state) => !TERMINAL_STATES.includes(state));
        const outcome = outcomeOf(() => new ConflictPlanner<Stored>(NOW).place(job, candidates));
        const error = outcome.ok ? undefined : outcome.error;
        expect(error?.details?.reason === 'undecided_batch' && error.status === 503).toBe(isUndecided === true);
      }),
    );
  });

  it('leaves earlier entries alone that the entry does not meet', () => {
    const unique: UniquePolicy = { fingerprint: 'a', scope: 'global', states: ['available'], on_conflict: 'reject' };
    const job: NewJob = { type: 't', priority: 0, body: '{}', unique };
    const planner = new ConflictPlanner<Stored>(NOW, (index, earlier) => index % 2 !== earlier % 2);
    expect(planner.place(job, [])).toEqual({ job, replaces: [] });
    expect(() => planner.place(job, [])).toThrow(ApiError);
    expect(planner.place(job, [])).toEqual({ job, replaces: [] });
  });

  it('reads when a job was created only if its state counts', () => {
    const unread = {
      ...{ key: 1, id: 's1', body: '{}', fingerprint: 'a', state: 'completed' as const },
      get createdAt(): number {
        throw new Error('read');
      },
    };
    const place = (states: JobState[]) =>
      new ConflictPlanner<Stored>(NOW).place(
        {
          type: 't',
          priority: 0,
          body: '{}',
          unique: { fingerprint: 'a', scope: 'queue', states, on_conflict: 'reject' },
        },
        [unread],
      );
    expect(place(['available'])).toMatchObject({ replaces: [] });
    expect(() => place(['completed'])).toThrow('read');
  });
});
