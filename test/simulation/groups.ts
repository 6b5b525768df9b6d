/** Histories of queues that serve their groups fairly, or in strict order. */
import fc from 'fast-check';
import { configure, overrideGroup } from '../../src/queue/features/lifecycle/settings';
import type { Area, Weighted } from './area';
import { EVES } from './calendar';
import { stepOf } from './histories';
import { PROBE } from './jobs';
import type { JobOrder } from './model';
import { type GroupTerms, groupsOf } from './model-groups';
import type { Scene } from './scene';
import type { History, Step } from './steps';

/** From now on the queue serves its groups so; null: it knows none. */
export type GroupStep =
  | { op: 'regroup'; terms: GroupTerms | null }
  /** An operator pauses a group, or resumes it. */
  | { op: 'group-pause'; group: string; isPaused: boolean };

function regroup(scene: Scene, terms: GroupTerms | null): void {
  // What a failure means for the others of a chunk in a strict group, tests of their own show.
  if (terms?.order === 'strict' && scene.model.jobs.some(({ lease }) => lease?.isShared)) return;
  const { maxWaiting, ...rest } = terms ?? {};
  const groups = terms && { ...rest, ...(maxWaiting !== undefined && { max_waiting: maxWaiting }) };
  scene.write(() => configure(scene.q, { groups } as never));
  scene.tidy();
  Object.assign(groupsOf(scene.model), { terms: terms ?? undefined, turns: undefined });
}

function pause(scene: Scene, group: string, isPaused: boolean): void {
  const book = groupsOf(scene.model);
  if (!book.terms) return;
  scene.write((now) => overrideGroup(scene.q, group, { paused: isPaused }, now));
  scene.tidy();
  book.paused = [...(book.paused ?? []).filter((other) => other !== group), ...(isPaused ? [group] : [])];
  // What was read ahead is read again.
  book.turns = undefined;
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

/** A job that is there for its group alone. */
const plainOf = (name: string | undefined): JobOrder => ({ ...PROBE, priority: 0, group: name });

/** Groups with very many waiting jobs, and some of others that come in between: now and then, or as many as are taken. */
const crowd: fc.Arbitrary<Step[]> = fc
  .record({
    noisy: fc.constantFrom(['a'], ['a', 'b']),
    times: fc.integer({ min: 32, max: 75 }),
    isSteady: fc.boolean(),
    claims: fc.array(fc.tuple(fc.constantFrom(1, 3, 4, 8, 20), fc.boolean(), group), { minLength: 10, maxLength: 24 }),
  })
  .map(({ noisy, times, claims, isSteady }): Step[] => [
    { op: 'enqueue', jobs: noisy.map(plainOf), times },
    ...claims.flatMap(([count, isQuiet, name]) => taking(isSteady ? 4 : count, isSteady || isQuiet, name)),
  ]);

function taking(count: number, isQuiet: boolean, name: string | undefined): Step[] {
  const quiet = [isQuiet ? 'f' : name, 'c', 'd', undefined, 'e'].slice(0, count);
  return [
    ...(isQuiet ? [{ op: 'enqueue' as const, jobs: quiet.map(plainOf) }] : []),
    { op: 'claim', count, worker: 'ann', visibility: 0 },
    // Of leases that end together, one transaction sees to so many only.
    ...(count >= 8 ? [{ op: 'nack-all' as const, error: {} }] : []),
  ];
}

/** Several jobs of a group run when its order becomes strict, and wait for their retries. */
const becoming: fc.Arbitrary<Step[]> = fc
  .record({
    backoffs: fc.array(fc.constantFrom(0, 50, 3_000), { minLength: 2, maxLength: 4 }),
    count: fc.integer({ min: 2, max: 3 }),
    waits: fc.array(fc.constantFrom(1, 50, 500, 3_000), { minLength: 1, maxLength: 3 }),
  })
  .map(({ backoffs, count, waits }): Step[] => {
    const claim = { op: 'claim' as const, count, worker: 'ann', visibility: 0 };
    const jobs = backoffs.map((backoff) => ({ ...plainOf('a'), maxAttempts: 3, backoff }));
    return [
      { op: 'enqueue', jobs },
      claim,
      { op: 'regroup', terms: { order: 'strict' } },
      { op: 'nack-all', error: {} },
      ...waits.flatMap((ms): Step[] => [claim, { op: 'jump', ms }]),
    ];
  });

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

/** Jobs end early, and run again in a place that must be found again. */
const again: Weighted<Step>[] = [
  { weight: 2, arbitrary: fc.record({ op: fc.constant('cancel' as const), pick: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('redrive' as const), pick: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 1, arbitrary: fc.constant<Step>({ op: 'bulk', action: 'retry', priority: 0 }) },
  { weight: 1, arbitrary: fc.constant<Step>({ op: 'evict' }) },
];

/** Groups are paused and resumed, and the object forgets what it has read. */
const pauses: Weighted<Step>[] = [
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('group-pause' as const),
      ...{ group: fc.constantFrom('a', 'b', 'c'), isPaused: fc.boolean() },
    }),
  },
  { weight: 1, arbitrary: fc.constant<Step>({ op: 'evict' }) },
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
/** Few may wait. */
const narrow = fc.constantFrom<GroupTerms[]>(
  { order: 'fair', maxWaiting: 2 },
  { order: 'fair', maxWaiting: 3, concurrency: 2 },
  { order: 'strict', maxWaiting: 1 },
  { order: 'strict', maxWaiting: 4 },
);
const fair = fc.constantFrom<GroupTerms[]>(
  { order: 'fair' },
  { order: 'fair', concurrency: 1 },
  { order: 'fair', concurrency: 2 },
);

const noisyTerms = fc.constantFrom<GroupTerms[]>(
  { order: 'fair' },
  { order: 'fair', weights: { a: 5 } },
  { order: 'fair', weights: { a: 5 } },
  { order: 'fair', maxWaiting: 60 },
  { order: 'fair', concurrency: 20 },
  strict,
);

/** Among other steps, now and then, groups have very many jobs. */
function crowds(length: number): fc.Arbitrary<History> {
  const calm = fc.tuple(stepOf(0), names).map(([step, of]) => withoutPriority(named(step, of, unlimited)));
  const some = fc.oneof({ weight: 3, arbitrary: crowd }, { weight: 40, arbitrary: calm.map((step) => [step]) });
  return fc.record({
    start: fc.constantFrom(...EVES),
    drains: fc.constantFrom(true, false),
    groups: noisyTerms,
    steps: fc
      .tuple(crowd, fc.array(some, { minLength: 0, maxLength: length }))
      .map(([first, rest]) => [...first, ...rest.flat()].slice(0, length)),
  }) as fc.Arbitrary<History>;
}

export const area: Area<GroupStep> = {
  kinds: {
    regroup: (scene, { terms }) => regroup(scene, terms),
    'group-pause': (scene, step) => pause(scene, step.group, step.isPaused),
  },
  begin(scene, { groups }) {
    if (groups) regroup(scene, groups);
  },
  clear(scene) {
    for (const name of groupsOf(scene.model).paused ?? []) pause(scene, name, false);
  },
  // What was saved for noisy groups is in memory only.
  evicted: (scene) => {
    groupsOf(scene.model).turns = undefined;
  },
  histories: (length) => [
    { weight: 30, arbitrary: historiesOf(length, fc.constant(strict), inStrictOrder) },
    { weight: 15, arbitrary: historiesOf(length, fc.constant(strict), unlimited) },
    { weight: 15, arbitrary: historiesOf(length, fc.constant(strict), inStrictOrder, again) },
    { weight: 20, arbitrary: historiesOf(length, fair, asIs) },
    { weight: 12, arbitrary: historiesOf(length, narrow, inStrictOrder) },
    { weight: 8, arbitrary: historiesOf(length, fc.constant(strict), inStrictOrder, pauses) },
    {
      weight: 15,
      arbitrary: fc
        .tuple(historiesOf(length, fc.constant(strict), inStrictOrder, again), fc.constantFrom(0, 1, 2))
        .map(([history, holders]) => ({ ...history, sizes: { ...history.sizes, holders } })),
    },
    { weight: 8, arbitrary: historiesOf(length, fair, asIs, pauses) },
    { weight: 8, arbitrary: crowds(length) },
    {
      weight: 5,
      arbitrary: fc
        .tuple(becoming, historiesOf(length, fc.constant(null), unlimited))
        .map(([first, { steps, ...terms }]) => ({ ...terms, steps: [...first, ...steps].slice(0, length) })),
    },
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
