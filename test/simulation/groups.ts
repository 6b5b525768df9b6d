/** Histories of queues that serve their groups fairly, or in strict order. */
import fc from 'fast-check';
import { configure } from '../../src/queue/features/lifecycle/settings';
import type { Area, Weighted } from './area';
import { EVES } from './calendar';
import { stepOf } from './histories';
import type { JobOrder } from './model';
import { type GroupTerms, groupsOf } from './model-groups';
import type { Scene } from './scene';
import type { History, Step } from './steps';

/** From now on the queue serves its groups so; null: it knows none. */
export type GroupStep = { op: 'regroup'; terms: GroupTerms | null };

function regroup(scene: Scene, terms: GroupTerms | null): void {
  scene.write(() => configure(scene.q, { groups: terms } as never));
  scene.tidy();
  groupsOf(scene.model).terms = terms ?? undefined;
}

const group = fc.constantFrom(undefined, 'a', 'a', 'b', 'b', 'c');

/** One job in one way for each of some names, so that groups have several jobs. */
function named(step: Step, names: readonly (string | undefined)[], change: (job: JobOrder) => JobOrder): Step {
  if (step.op === 'fault' || step.op === 'die') return { ...step, step: named(step.step, names, change) };
  if (!('jobs' in step) || step.op === 'hand-over') return step;
  return { ...step, jobs: step.jobs.map((job, at) => change({ ...job, group: names[at % names.length] })) };
}

/** What is said of priorities has no effect on groups in strict order, and is refused later. */
function withoutPriority(step: Step): Step {
  if (step.op === 'fault' || step.op === 'die') return { ...step, step: withoutPriority(step.step) };
  if (step.op !== 'patch') return step;
  const { priority: _, ...change } = step.change;
  return { ...step, change };
}

/** In strict order jobs become available by the time alone. */
const inStrictOrder = (job: JobOrder): JobOrder => ({ ...job, priority: 0, unique: null });

const unlimited = (job: JobOrder): JobOrder => ({ ...inStrictOrder(job), limit: null });

const asIs = (job: JobOrder): JobOrder => job;

const names = fc.array(group, { minLength: 1, maxLength: 4 });

/** Workers that take some, so that the rest is read ahead, and end them. */
const busy: Weighted<Step>[] = [
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('claim' as const),
      ...{ count: fc.constantFrom(1, 2, 5, 20), worker: fc.constant('ann'), visibility: fc.constantFrom(0, 0, 500) },
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ op: fc.constant('ack' as const), pick: fc.integer({ min: 1, max: 9 }) },
      ...{ attempt: fc.constant('right' as const), worker: fc.constant('right' as const) },
    }),
  },
];

function historiesOf(
  length: number,
  terms: fc.Arbitrary<GroupTerms | null>,
  change: (job: JobOrder) => JobOrder,
  more: Weighted<Step>[] = [],
): fc.Arbitrary<History> {
  const plain = fc.tuple(stepOf(0), names).map(([step, of]) => {
    const own = named(step, of, change);
    return change === asIs ? own : withoutPriority(own);
  });
  const step = fc.oneof({ weight: 30, arbitrary: plain }, ...busy, ...more);
  return fc.record({
    start: fc.constantFrom(...EVES),
    drains: fc.constantFrom(true, false),
    groups: terms,
    steps: fc.array(fc.option(step, { freq: 200 }), { minLength: length, maxLength: length }),
  }) as fc.Arbitrary<History>;
}

const strict: GroupTerms = { order: 'strict' };
const fair = fc.constantFrom<GroupTerms[]>(
  { order: 'fair' },
  { order: 'fair', concurrency: 1 },
  { order: 'fair', concurrency: 2 },
);

export const area: Area<GroupStep> = {
  kinds: { regroup: (scene, { terms }) => regroup(scene, terms) },
  begin(scene, { groups }) {
    if (groups) regroup(scene, groups);
  },
  histories: (length) => [
    { weight: 30, arbitrary: historiesOf(length, fc.constant(strict), inStrictOrder) },
    { weight: 30, arbitrary: historiesOf(length, fc.constant(strict), unlimited) },
    { weight: 20, arbitrary: historiesOf(length, fair, asIs) },
    {
      weight: 10,
      arbitrary: historiesOf(length, fc.constant(null), unlimited, [
        { weight: 1, arbitrary: fair.map((terms): Step => ({ op: 'regroup', terms })) },
        { weight: 1, arbitrary: fc.constant<Step>({ op: 'regroup', terms: strict }) },
      ]).map(onceStrict),
    },
  ],
};

/** What was begun in an earlier strict order holds its group up in the next one: that is not played. */
function onceStrict(history: History): History {
  let isStrict = false;
  let wasStrict = false;
  const steps = history.steps.map((step) => {
    if (step?.op !== 'regroup') return step;
    const becomes = step.terms?.order === 'strict';
    if (becomes && wasStrict && !isStrict) return null;
    isStrict = becomes;
    wasStrict ||= becomes;
    return step;
  });
  return { ...history, steps };
}
