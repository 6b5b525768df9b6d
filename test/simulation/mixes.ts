/** Histories of their own kinds: workers that wait, queues with a bound, keys that limit. No entry fires in them. */
import fc from 'fast-check';
import type { Area, Weighted } from './area';
import { batchSteps } from './batches';
import { EVES } from './calendar';
import { area as jobs } from './jobs';
import type { JobKind, JobOrder, LimitKey } from './model';
import { order } from './orders';
import { arriving, connects, pullSteps } from './pulls';
import { area as reports } from './reports';
import { bounding, settingsSteps } from './settings';
import type { History, Step } from './steps';
import { fullBatch, heavySteps, pullThemes, replacedInFull, startsTogether, workThemes } from './themes';
import { manyOf } from './together';
import { area as trouble, troubles } from './trouble';

const kind = fc.constantFrom<(JobKind | undefined)[]>(undefined, 'x', 'y');

/** One step among others becomes one that takes part in these histories: whoever claims waits, jobs are of several types. */
function fitted(step: Step, of: JobKind | undefined): Step {
  if (step.op === 'claim') {
    const { op: _, ...claim } = step;
    return { op: 'poll', ...claim, wait: 0 };
  }
  if (step.op !== 'enqueue') return step;
  const { claim: _, ...enqueue } = step;
  return { ...enqueue, jobs: step.jobs.map((job) => ({ ...job, kind: of })) };
}

/**
 * Jobs of a key are of one type. Those of several types stand in one line: the first of them hold the key's places, also from
 * workers that would take only those behind.
 */
const KIND_OF: Record<LimitKey, JobKind | undefined> = { narrow: 'x', rated: 'y', spaced: undefined };

const ofOneKind = (job: JobOrder): JobOrder => (job.limit === null ? job : { ...job, kind: KIND_OF[job.limit] });

/** @param change what becomes of each job */
function calmOf(change: (job: JobOrder) => JobOrder, more: Weighted<Step>[]): fc.Arbitrary<Step> {
  const plain = fc.oneof(...[jobs, reports].flatMap(({ steps = [] }) => steps as Weighted<Step>[]), ...batchSteps);
  const all = fc.tuple(plain, kind).map(([step, of]) => {
    const own = fitted(step, of);
    return 'jobs' in own && own.op !== 'hand-over' ? { ...own, jobs: own.jobs.map(change).map(ofOneKind) } : own;
  });
  const together = manyOf(fc.oneof({ weight: 5, arbitrary: all }, ...arriving));
  return fc.oneof(
    { weight: 30, arbitrary: all },
    { weight: 6, arbitrary: together },
    { weight: 4, arbitrary: fc.oneof(...((trouble.steps ?? []) as Weighted<Step>[])) },
    ...more,
  );
}

const asIs = (job: JobOrder) => job;

/** Steps among jobs of one key, all of one priority, which become available sooner or later, and start a few at a time. */
const keyedSteps: Weighted<Step>[] = [
  {
    weight: 6,
    arbitrary: fc
      .array(fc.tuple(order, fc.constantFrom(0, 0, 1, 400, 3_000)), { minLength: 1, maxLength: 3 })
      .map((jobs): Step => ({ op: 'enqueue', jobs: jobs.map(([job, delay]) => keyed(job, delay)) })),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('poll' as const),
      // What one of them has seen wait, the other may begin: each type has a cursor of its own.
      ...{ count: fc.constantFrom(1, 1, 2, 3), worker: fc.constantFrom('ann', 'yak') },
      ...{ visibility: fc.constant(0), wait: fc.constant(0) },
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('snooze' as const),
      ...{ pick: fc.integer({ min: 1, max: 4 }), attempt: fc.constant('right' as const), signal: fc.constant(false) },
      ...{ in: fc.constantFrom(0, 300, 2_000), mark: fc.constantFrom(0, 1, 2) },
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('ack' as const),
      ...{ pick: fc.integer({ min: 1, max: 4 }), attempt: fc.constant('right' as const) },
      worker: fc.constant('right' as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('pass' as const), ms: fc.constantFrom(1, 350, 500, 2_000, 3_000) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ op: fc.constant('jump' as const), ms: fc.constantFrom(350, 500, 2_000, 3_000) }),
  },
];

const keyed = (job: JobOrder, delay: number): JobOrder => ({
  ...{ ...job, delay, limit: 'rated', kind: KIND_OF.rated, priority: 0 },
  ...{ pending: false, ttl: 0, unique: null, maxAttempts: 3, timeout: 0 },
});

/** The key is used in part, jobs come for now and for later, and its period ends before the next of them start. */
const slidWindow: fc.Arbitrary<Step[]> = fc
  .record({
    jobs: fc.array(fc.tuple(order, fc.constantFrom(0, 0, 400, 3_000)), { minLength: 2, maxLength: 4 }),
    used: fc.constantFrom(1, 1, 2),
    ms: fc.constantFrom(500, 4_600, 5_000, 5_500),
    count: fc.constantFrom(1, 2, 3),
  })
  .map(({ jobs, used, ms, count }): Step[] => {
    const poll = { op: 'poll' as const, worker: 'ann', visibility: 0, wait: 0 };
    return [
      { op: 'pass', ms: 25_000 },
      { ...poll, count: used },
      { op: 'nack-all', error: {} },
      { op: 'enqueue', jobs: jobs.map(([job, delay]) => keyed(job, delay)) },
      { op: 'jump', ms },
      { ...poll, count },
    ];
  });

/** One worker has seen jobs wait for their key, another one begins the first of them, and it goes on at once. */
const begunByAnother: fc.Arbitrary<Step[]> = fc
  .record({
    jobs: fc.array(fc.tuple(order, fc.constantFrom(0, 400, 400)), { minLength: 1, maxLength: 3 }),
    mark: fc.constantFrom(0, 1, 2),
    ms: fc.constantFrom(4_600, 5_000, 5_500),
  })
  .map(({ jobs, mark, ms }): Step[] => {
    const poll = (worker: string, count: number) => ({ op: 'poll' as const, worker, count, visibility: 0, wait: 0 });
    const now = jobs.map(([job]) => keyed(job, 0)).slice(0, 2);
    return [
      { op: 'nack-all', error: {} },
      { op: 'pass', ms: 25_000 },
      ...[{ op: 'enqueue' as const, jobs: now }, poll('ann', 2)],
      { op: 'enqueue', jobs: jobs.map(([job, delay]) => keyed(job, delay)) },
      ...[{ op: 'jump' as const, ms: 500 }, poll('ann', 2), { op: 'nack-all' as const, error: {} }],
      ...[{ op: 'jump' as const, ms }, poll('yak', 1)],
      { op: 'snooze', pick: -1, attempt: 'right', in: 0, signal: false, mark },
      poll('ann', 3),
    ];
  });

/** The object dies, and before it has counted anything jobs of one moment end in the transaction in which others come. */
const countedAnew: fc.Arbitrary<Step[]> = fc
  .record({
    acks: fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 3 }),
    jobs: fc.array(order, { minLength: 1, maxLength: 2 }),
  })
  .map(({ acks, jobs }): Step[] => {
    const items = acks.map((pick) => ({ pick, attempt: 'right' as const, how: 'ack' as const, in: 0, mark: 0 }));
    const enqueue: Step = { op: 'enqueue', jobs: jobs.map(lasting).map(ofOneKind) };
    return [{ op: 'evict' }, { op: 'together', steps: [{ op: 'report-each', items, worker: 'none' }, enqueue] }];
  });

/** Jobs of one moment come together, and run. */
const oneMoment: fc.Arbitrary<Step[]> = fc
  .record({ job: order, times: fc.integer({ min: 2, max: 4 }), count: fc.integer({ min: 1, max: 4 }) })
  .map(({ job, times, count }): Step[] => {
    const plain = { ...job, delay: 400, priority: 0, pending: false, ttl: 0, limit: null, unique: null, timeout: 0 };
    return [
      { op: 'enqueue', jobs: Array.from({ length: times }, () => plain) },
      { op: 'pass', ms: 500 },
      { op: 'poll', worker: 'ann', count, visibility: 0, wait: 0 },
    ];
  });

/** Jobs that stay for a while. */
const lasting = (job: JobOrder): JobOrder => ({ ...job, ttl: job.ttl === 300 ? 0 : job.ttl });

export const area: Area<never> = {
  kinds: {},
  histories(length) {
    const start = fc.constantFrom(...EVES);
    const drains = fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.constant(true));
    const mostAtOnce = fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, fc.constantFrom(1, 3));
    const ofSteps = (
      calm: fc.Arbitrary<Step>,
      first: fc.Arbitrary<Step>[],
      chunks: Weighted<Step[]>[] = [],
    ): fc.Arbitrary<History> => {
      // What is due is seen to before a statement fails: a step in which time passes would be in both.
      const inNoTime = calm.map((step): Step => (step.op === 'pass' || step.op === 'jump' ? PING : step));
      const any = fc.oneof({ weight: 40, arbitrary: calm }, ...troubles(inNoTime));
      const one = fc.option(any, { freq: 200 }).map((step) => [step]);
      const rest = fc
        .array(fc.oneof({ weight: 100, arbitrary: one }, ...chunks), { minLength: length, maxLength: length })
        .map((all) => all.flat().slice(0, length));
      return fc
        .record({
          start,
          drains,
          mostAtOnce,
          pulls: fc.constant(true),
          first: fc.tuple(...first),
          rest,
        })
        .map(({ first, rest, ...terms }) => ({ ...terms, steps: [...first, ...rest] }));
    };
    return [
      {
        weight: 70,
        arbitrary: ofSteps(calmOf(asIs, [...pullSteps, ...settingsSteps]), [connects, connects], pullThemes),
      },
      {
        weight: 35,
        arbitrary: ofSteps(
          calmOf(lasting, settingsSteps),
          [bounding],
          [
            { weight: 6, arbitrary: oneMoment },
            { weight: 8, arbitrary: countedAnew },
            { weight: 2, arbitrary: replacedInFull },
          ],
        ),
      },
      // To drain them would take longer than to play them: a few start in each period.
      {
        weight: 35,
        arbitrary: ofSteps(
          fc.oneof(...keyedSteps),
          [],
          [
            { weight: 8, arbitrary: slidWindow },
            { weight: 8, arbitrary: begunByAnother },
            { weight: 4, arbitrary: startsTogether(order.map((job) => keyed(job, 0))) },
            ...workThemes,
          ],
        ).map((history) => ({ ...history, drains: false })),
      },
      {
        weight: 8,
        arbitrary: fc.record({ start, pulls: fc.constant(true), steps: heavySteps }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          ...{ start, large: fc.constant(true), longPolicy: fc.constant(true), steps: fc.constant(fullBatch) },
        }),
      },
    ];
  },
};

/** An operation that changes nothing as a rule. */
const PING: Step = { op: 'pause', paused: false };
