/** Histories of their own kinds: workers that wait, queues with a bound, keys that limit. No entry fires in them. */
import fc from 'fast-check';
import type { Area, Weighted } from './area';
import { batchSteps } from './batches';
import { EVES } from './calendar';
import { area as jobs } from './jobs';
import type { JobKind, JobOrder, LimitKey } from './model';
import { arriving, connects, pullSteps } from './pulls';
import { area as reports } from './reports';
import { bounding, settingsSteps } from './settings';
import type { History, Step } from './steps';
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

/** Jobs of keys, at one priority, that become available sooner or later. */
const limited = (job: JobOrder): JobOrder => {
  const { delay, backoff, limit, ttl } = job;
  const key = limit ?? (delay === 1 || backoff === 50 ? 'rated' : null);
  return { ...job, limit: key, priority: 0, pending: false, ttl: ttl === 300 ? 0 : ttl, unique: null };
};

/** Jobs that stay for a while. */
const lasting = (job: JobOrder): JobOrder => ({ ...job, ttl: job.ttl === 300 ? 0 : job.ttl });

export const area: Area<never> = {
  kinds: {},
  histories(length) {
    const start = fc.constantFrom(...EVES);
    const drains = fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.constant(true));
    const mostAtOnce = fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, fc.constantFrom(1, 3));
    const ofSteps = (calm: fc.Arbitrary<Step>, first: fc.Arbitrary<Step>[]): fc.Arbitrary<History> => {
      // What is due is seen to before a statement fails: a step in which time passes would be in both.
      const inNoTime = calm.map((step): Step => (step.op === 'pass' || step.op === 'jump' ? PING : step));
      const any = fc.oneof({ weight: 40, arbitrary: calm }, ...troubles(inNoTime));
      const rest = fc.array(fc.option(any, { freq: 200 }), { minLength: length, maxLength: length });
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
    const often = (all: Weighted<Step>[], times: number) => all.map((one) => ({ ...one, weight: one.weight * times }));
    return [
      {
        weight: 70,
        arbitrary: ofSteps(calmOf(asIs, [...often(pullSteps, 1), ...settingsSteps]), [connects, connects]),
      },
      { weight: 35, arbitrary: ofSteps(calmOf(lasting, settingsSteps), [bounding]) },
      { weight: 35, arbitrary: ofSteps(calmOf(limited, [{ weight: 3, arbitrary: fc.oneof(...pullSteps) }]), []) },
    ];
  },
};

/** An operation that changes nothing as a rule. */
const PING: Step = { op: 'pause', paused: false };
