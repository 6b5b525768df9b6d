/** The planner of unique conflicts against the contract read word by word: one entry after the other, into a list of jobs. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError, outcomeOf } from '../../../src/job/errors';
import type { Coalesced, NewJob, UniquePolicy } from '../../../src/job/record';
import { JOB_STATES, type JobState, TERMINAL_STATES } from '../../../src/job/states';
import { type Candidate, ConflictPlanner, isEarlierEntry, type Placement } from '../../../src/job/unique/conflicts';
import { histories } from '../../support/long';

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
  dueAt: number | undefined;
  hasRun: boolean;
  args: unknown[];
  coalesced: Coalesced | undefined;
}

const UNSTARTED: JobState[] = ['scheduled', 'available', 'pending'];

const bodyOf = (args: unknown[], scheduledAt: number | undefined, coalesced?: Coalesced) =>
  JSON.stringify({
    ...{ type: 't', args, coalesced },
    ...(scheduledAt !== undefined && { scheduled_at: scheduledAt }),
  });

const schedule = fc.option(fc.constantFrom(NOW - 10, NOW + 10, NOW + 20), { nil: undefined });

const policy: fc.Arbitrary<UniquePolicy> = fc
  .record(
    {
      fingerprint: fc.constantFrom(...FINGERPRINTS),
      scope: fc.constantFrom('queue' as const, 'global' as const),
      states: fc.subarray([...JOB_STATES], { minLength: 1 }),
      period_ms: fc.constantFrom(1, 20, 100),
      on_conflict: fc.constantFrom(
        'reject',
        'ignore',
        'replace',
        'replace_except_schedule',
        'accumulate',
        'accumulate',
      ),
      max_wait_ms: fc.constantFrom(15, 1_000),
      max_count: fc.constantFrom(2, 3),
      window_ms: fc.constant(50),
    },
    { requiredKeys: ['fingerprint', 'scope', 'states', 'on_conflict'] },
  )
  .map(({ max_wait_ms, max_count, window_ms, ...rest }): UniquePolicy => {
    const longest = max_wait_ms !== undefined && { max_wait_ms };
    if (rest.on_conflict === 'replace') return { ...rest, ...longest };
    if (rest.on_conflict === 'replace_except_schedule')
      return { ...rest, ...(window_ms !== undefined && { window_ms }) };
    if (rest.on_conflict !== 'accumulate') return rest;
    return { ...rest, states: UNSTARTED, ...longest, ...(max_count !== undefined && { max_count }) };
  });

const entry: fc.Arbitrary<NewJob> = fc
  .record({
    unique: fc.option(policy, { nil: undefined, freq: 6 }),
    scheduledAt: schedule,
    pending: fc.boolean(),
    args: fc.array(fc.nat(9), { maxLength: 2 }),
  })
  .map(({ unique, scheduledAt, pending, args }) => ({
    type: 't',
    priority: 0,
    body: bodyOf(args, scheduledAt),
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
        hasRun: fc.boolean(),
        coalesced: fc.option(fc.constant({ since: NOW - 2_000, calls: 2 }), { nil: undefined }),
      }),
      { maxLength: 5 },
    )
    .map((jobs) =>
      jobs
        .sort((a, b) => a.age - b.age)
        .map(({ fingerprint, state, age, scheduledAt, hasRun, coalesced }, key) => ({
          ...{ key, fingerprint, state, createdAt: NOW - age, id: `s${key}`, hasRun },
          // A limit may have given it another time than its producer asked for.
          dueAt: state === 'scheduled' ? Math.max(NOW + 15, scheduledAt ?? 0) : undefined,
          body: bodyOf([`s${key}`], scheduledAt, coalesced),
        })),
    );

const scheduledIn = (body: string): number | undefined => JSON.parse(body).scheduled_at;

/** What is told of a job that there is in the end. */
const told = ({ state, scheduledAt, args, coalesced }: Omit<ModelJob, 'name'>) => ({
  ...{ state, scheduledAt, args, coalesced },
});

function born({ pending, scheduledAt }: { pending?: boolean | undefined; scheduledAt?: number | undefined }): JobState {
  if (pending) return 'pending';
  return scheduledAt !== undefined && scheduledAt > NOW ? 'scheduled' : 'available';
}

/** What the contract says comes of the batch: the jobs afterwards, and the one that each entry stands for. */
function byTheContract(existing: readonly Stored[], entries: readonly NewJob[]) {
  const world: ModelJob[] = existing.map(({ id, fingerprint, state, createdAt, body, dueAt, hasRun }) => ({
    ...{ name: id, fingerprint, state: state as JobState, createdAt: createdAt as number, dueAt, hasRun },
    ...{ scheduledAt: scheduledIn(body), args: JSON.parse(body).args, coalesced: JSON.parse(body).coalesced },
  }));
  const standsFor: string[] = [];
  for (const [index, { unique, scheduledAt, pending, body }] of entries.entries()) {
    const job: ModelJob = {
      ...{ name: `e${index}`, fingerprint: unique?.fingerprint ?? '', createdAt: NOW, hasRun: false },
      ...{ scheduledAt, args: JSON.parse(body).args, coalesced: undefined },
      ...{ dueAt: undefined, state: 'available' },
    };
    const start = (at: number | undefined) => {
      job.scheduledAt = at;
      job.state = born({ scheduledAt: at, pending });
      job.dueAt = job.state === 'scheduled' ? at : undefined;
    };
    start(scheduledAt);
    const conflicts = world.filter(
      (other) =>
        unique?.fingerprint === other.fingerprint &&
        unique.states.includes(other.state) &&
        (unique.period_ms === undefined || NOW - other.createdAt < unique.period_ms),
    );
    const [newest] = conflicts;
    if (newest && unique?.on_conflict === 'reject') return { refusedAt: index, because: newest.name };
    if (newest && unique?.on_conflict === 'ignore') {
      standsFor.push(newest.name);
      continue;
    }
    if (unique?.on_conflict === 'accumulate') {
      const into = conflicts.find(({ hasRun }) => !hasRun);
      const { since, calls } = into?.coalesced ?? { since: into?.createdAt ?? 0, calls: 1 };
      if (into && calls < (unique.max_count ?? 1_000)) {
        into.args = [...into.args, ...job.args];
        into.coalesced = { since, calls: calls + 1 };
        const asked = Math.max(NOW, Math.min(scheduledAt ?? NOW, since + (unique.max_wait_ms ?? 0)));
        if (unique.max_wait_ms !== undefined && into.state === 'scheduled' && asked !== into.dueAt) dueAt(into, asked);
        standsFor.push(into.name);
        continue;
      }
      if (into?.state === 'scheduled') dueAt(into, NOW);
    } else {
      if (newest && unique?.on_conflict === 'replace_except_schedule') start(newest.scheduledAt);
      else if (unique?.window_ms !== undefined && scheduledAt === undefined) start(NOW + unique.window_ms);
      const isInTime = newest && UNSTARTED.includes(newest.state) && !newest.hasRun;
      if (isInTime && unique?.max_wait_ms !== undefined) {
        const { since, calls } = newest.coalesced ?? { since: newest.createdAt, calls: 1 };
        job.coalesced = { since, calls: calls + 1 };
        const last = since + unique.max_wait_ms;
        if (scheduledAt !== undefined && scheduledAt > last) start(last > NOW ? last : undefined);
      }
      for (const other of conflicts) if (!TERMINAL_STATES.includes(other.state)) other.state = 'cancelled';
    }
    world.unshift(job);
    standsFor.push(job.name);
  }
  return { world: new Map(world.map((job) => [job.name, told(job)])), standsFor };
}

function dueAt(job: ModelJob, at: number): void {
  job.scheduledAt = at > NOW ? at : undefined;
  job.dueAt = job.scheduledAt;
  job.state = at > NOW ? 'scheduled' : 'available';
}

/** The same, by planning the batch and carrying the plan out. */
function byThePlan(existing: readonly Stored[], entries: readonly NewJob[]) {
  const planner = new ConflictPlanner<Stored>(NOW);
  const nameOf = (job: Stored | { index: number }): string =>
    isEarlierEntry(job) ? (standsFor[job.index] as string) : (job as Stored).id;
  const jobs = new Map(existing.map(({ id, state, body }) => [id, { state: state as JobState, body }]));
  const standsFor: string[] = [];
  const enqueued: { name: string; placement: { job: NewJob } }[] = [];
  const cancelled = new Set<string>();
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
    for (const replaced of placement.replaces) cancelled.add(nameOf(replaced));
    standsFor.push(`e${index}`);
    enqueued.push({ name: `e${index}`, placement });
  }
  for (const { into, gathered } of planner.gathered()) {
    expect(gathered.isChanged).toBe(true);
    jobs.set(into.id, { state: gathered.state as JobState, body: gathered.body });
  }
  for (const { name, placement } of enqueued) {
    const { job } = placement;
    expect(scheduledIn(job.body)).toBe(job.scheduledAt);
    jobs.set(name, { state: born(job), body: job.body });
  }
  const world = new Map(
    Array.from(jobs, ([name, { state, body }]) => {
      const { args, coalesced, scheduled_at: scheduledAt } = JSON.parse(body);
      return [name, { state: cancelled.has(name) ? 'cancelled' : state, scheduledAt, args, coalesced }];
    }),
  );
  return { world, standsFor };
}

describe('a plan', () => {
  it('comes to what the contract says of the entries one after the other', () => {
    fc.assert(
      fc.property(stored(JOB_STATES), fc.array(entry, { maxLength: 6 }), (existing, entries) => {
        expect(byThePlan(existing, entries)).toEqual(byTheContract(existing, entries));
      }),
      { numRuns: histories(3000) },
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
      ...{
        key: 1,
        id: 's1',
        body: '{}',
        fingerprint: 'a',
        state: 'completed' as const,
        hasRun: true,
        dueAt: undefined,
      },
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
