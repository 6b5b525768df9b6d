/**
 * Steps that belong together: what only a certain order of things brings out, with chance in what else may differ. They stand
 * among the other steps of a history, so that whatever was there before takes part.
 */
import fc from 'fast-check';
import type { Weighted } from './area';
import type { Item } from './batches';
import type { Fate } from './children';
import { PROBE } from './jobs';
import type { JobOrder } from './model';
import type { Ending } from './pushes';
import type { Step } from './steps';

const PLAIN: JobOrder = { ...PROBE, priority: 0, maxAttempts: 3, deadLetter: true };

const enqueue = (...jobs: JobOrder[]): Step => ({ op: 'enqueue', jobs });
const poll = (worker: string, count: number, wait = 0): Step => ({ op: 'poll', worker, count, visibility: 0, wait });
const connect: Step = { op: 'connect', worker: 'ann', visibility: 0 };
const PICKS = [0, 1, 2, 3];
const readyAll = (count: number): Step[] => PICKS.map((pick) => ({ op: 'tell', pick, what: { is: 'ready', count } }));
const pauseAll = PICKS.map((pick): Step => ({ op: 'tell', pick, what: { is: 'pause' } }));
const item = (how: Item['how'], more: Partial<Item> = {}): Item => ({
  ...{ pick: -1, attempt: 'right', how, in: 2_000, mark: 0 },
  ...more,
});
const told = (...items: Item[]): Step => ({ op: 'report-each', items, worker: 'none' });
const answered = (ending: Pick<Ending, 'how' | 'children'>, pick = 0): Step => ({
  ...({ op: 'answer-call', pick, reversed: false, twice: false } as const),
  endings: [{ ...ending, in: 2_000, signal: false, mark: 0 }],
});
const newest = fc.constantFrom(-1, -1, -2);

/** A worker with a socket may take two jobs: one has become available, which nobody has noticed, and another one arrives. */
const takenAlong = fc.nat(40).map((statement): Step[] => [
  ...[connect, ...readyAll(2), enqueue({ ...PLAIN, delay: 400 })],
  ...[
    { op: 'jump' as const, ms: 500 },
    { op: 'fault' as const, statement, step: enqueue(PLAIN) },
  ],
]);

/** A queue has no room for now. A fetch waits for it, and behind that a socket. */
const standsBehind = fc.constantFrom(350, 3_000).map((wait): Step[] => [
  ...[connect, ...pauseAll, { op: 'configure' as const, layer: 'own' as const, change: { limit: { rate: 1 } } }],
  ...[enqueue(PLAIN), poll('ann', 1), poll('bob', 1, wait), ...readyAll(1), enqueue(PLAIN)],
  ...[
    { op: 'pass' as const, ms: wait },
    { op: 'pass' as const, ms: 5_000 },
  ],
  { op: 'configure', layer: 'own', change: { limit: undefined } },
]);

/** A job has long steps, and says more, in the log too, when it ends its attempt. */
const longSteps = fc
  .record({
    first: fc.constantFrom(200, 700),
    second: fc.constantFrom(200, 700),
    how: fc.constantFrom('snooze', 'step'),
  })
  .map(({ first, second, how }): Step[] => [
    ...[enqueue(PLAIN), poll('ann', 3), told(item('step', { kib: first }))],
    told(item(how as Item['how'], { mark: 1, kib: second, logs: true }), item('requeue', { pick: -2, logs: true })),
  ]);

/** Some steps are said together, perhaps again, with little room for what is on record of them. */
const saidTogether = fc
  .record({
    times: fc.constantFrom(2, 3, 4),
    marks: fc.constantFrom(1, 4),
    room: fc.constantFrom(0, 20, 30, undefined),
  })
  .map(({ times, marks, room }): Step[] => {
    const items = Array.from({ length: times }, (_, index) => item('step', { mark: index % marks }));
    return [
      ...[enqueue(PLAIN), poll('ann', 3), told(item('step'))],
      { op: 'report-each', items, worker: 'none', room },
    ];
  });

/** Reports come together over a socket, and cannot be written together. */
const oneByOne = fc
  .record({
    ...{ pick: fc.constantFrom(...PICKS), statement: fc.nat(30), of: newest },
    how: fc.constantFrom<Item['how']>('plain', 'requeue', 'retry-in', 'ack'),
  })
  .map(({ pick, statement, of, how }): Step[] => {
    const items = [item('step'), item(how, { pick: of, logs: true })];
    const what = { is: 'report' as const, items, ready: 0 };
    return [
      ...[connect, enqueue(PLAIN, PLAIN), poll('ann', 3)],
      { op: 'fault', statement, step: { op: 'tell', pick, what } },
    ];
  });

/** A job ends again and again, and each of its lives is given something. */
const manyLives = fc
  .array(fc.record({ name: fc.constantFrom('a', 'b', 'c'), bytes: fc.constantFrom(30_000, 30_000, 60_000) }), {
    minLength: 2,
    maxLength: 4,
  })
  .map((all): Step[] => [
    enqueue(PLAIN),
    ...all.flatMap((adds): Step[] => [
      { op: 'cancel', pick: -1 },
      { op: 'redrive', pick: -1, adds },
    ]),
  ]);

/** Attempts are over, and cannot be ended as they should; then their jobs live again. */
const stranded = fc
  .record({ ms: fc.constantFrom(500, 2_000), statement: fc.nat(14), times: fc.constantFrom(1, 1, 2) })
  .map(({ ms, statement, times }): Step[] => [
    enqueue(...Array.from({ length: times }, () => PLAIN)),
    { op: 'poll', worker: 'ann', count: 4, visibility: 500, wait: 0 },
    { op: 'strand', ms, statement },
    ...PICKS.map((pick): Step => ({ op: 'redrive', pick: -1 - pick })),
    poll('ann', 4),
  ]);

/** Jobs fail together, each of them waits for a moment of its own, and some fail together again. */
const failedTogether = fc
  .record({
    waits: fc.array(fc.constantFrom(300, 400, 2_000), { minLength: 2, maxLength: 6 }),
    how: fc.constantFrom<Item['how']>('plain', 'plain', 'requeue', 'snooze'),
    between: fc.constantFrom<Step[]>(
      [],
      [{ op: 'evict' }],
      [{ op: 'cancel', pick: -1 }],
      [{ op: 'patch', pick: -2, change: { priority: 5 } }, { op: 'evict' }],
    ),
    ms: fc.constantFrom(350, 500, 3_000),
    count: fc.integer({ min: 1, max: 6 }),
  })
  .map(({ waits, how, between, ms, count }): Step[] => [
    enqueue(...waits.map((backoff) => ({ ...PLAIN, maxAttempts: 5, backoff }))),
    poll('ann', 9),
    told(...waits.map((_, index) => item(how, { pick: -1 - index }))),
    ...between,
    { op: 'pass', ms },
    poll('ann', count),
    told(...waits.map((_, index) => item(index === 0 ? 'ack' : 'plain', { pick: -1 - index }))),
    { op: 'evict' },
    { op: 'jump', ms: 2_000 },
    poll('ann', 9),
  ]);

/** Themes of workers that wait. */
export const pullThemes: Weighted<Step[]>[] = [
  { weight: 3, arbitrary: takenAlong },
  { weight: 1, arbitrary: standsBehind },
  { weight: 1, arbitrary: longSteps },
  { weight: 1, arbitrary: saidTogether },
  { weight: 2, arbitrary: oneByOne },
  { weight: 1, arbitrary: manyLives },
  { weight: 2, arbitrary: failedTogether },
];

/** Themes that need no more than workers and time. */
export const workThemes: Weighted<Step[]>[] = [
  { weight: 4, arbitrary: stranded },
  { weight: 4, arbitrary: failedTogether },
];

/**
 * The key is free, and a part of it is used in a transaction in which something else fails.
 * @param keyed a job of the key
 */
export function startsTogether(keyed: fc.Arbitrary<JobOrder>): fc.Arbitrary<Step[]> {
  const second = fc.oneof(
    keyed.map((job) => enqueue(job)),
    fc.constant<Step>({ op: 'ack', pick: -1, attempt: 'right', worker: 'right' }),
    fc.constant<Step>({ op: 'patch', pick: -1, change: { priority: 5 } }),
  );
  return fc
    .record({ job: keyed, count: fc.constantFrom(1, 2), second, statement: fc.nat(50) })
    .map(({ job, count, second, statement }): Step[] => [
      ...[
        { op: 'pass' as const, ms: 25_000 },
        { op: 'nack-all' as const, error: {} },
      ],
      enqueue(...Array.from({ length: 4 }, () => job)),
      { op: 'fault', statement, step: { op: 'together', steps: [poll('ann', count), second] } },
      poll('ann', 3),
    ]);
}

/** The bound of a queue is reached, and a batch replaces the job that has waited longest, and brings more. */
export const replacedInFull: fc.Arbitrary<Step[]> = fc
  .record({ maxDepth: fc.constantFrom(2, 4), first: fc.boolean(), times: fc.constantFrom(1, 2) })
  .map(({ maxDepth, first, times }): Step[] => {
    const unique = { key: 'a', by: 'key', everywhere: false, conflict: 'replace', counting: 'open' } as const;
    const only: JobOrder = {
      ...PLAIN,
      unique: { ...unique, ...{ period: 0, maxWait: 0, maxCount: 0 }, foreign: false },
    };
    const others = Array.from({ length: times }, () => PLAIN);
    return [
      { op: 'configure', layer: 'own', change: { maxDepth, overflow: 'drop_oldest' } },
      ...[enqueue(only), { op: 'jump' as const, ms: 1 }],
      ...[enqueue(...Array.from({ length: maxDepth - 1 }, () => PLAIN)), { op: 'jump' as const, ms: 1 }],
      enqueue(...(first ? [only, ...others] : [...others, only])),
    ];
  });

/** An attempt times out; the next one sleeps by another's word, and its handler answers all the same. */
const asleep = fc
  .constantFrom(...PICKS)
  .map((pick): Step[] => [
    ...[enqueue(PLAIN), { op: 'jump' as const, ms: 41_000 }, { op: 'jump' as const, ms: 1 }],
    { op: 'snooze', pick: -1, attempt: 'right', in: 2_000, signal: false, mark: 0 },
    answered({ how: 'completed' }, pick),
  ]);

/** Jobs are enqueued with an answer; one of them is refused, the others are taken, and not all of that is heard. */
const someRefused = fc
  .record({
    fates: fc.array(fc.constantFrom<Fate>('take', 'lost', 'busy', 'refuse', 'full'), { minLength: 1, maxLength: 3 }),
    pick: fc.nat(2),
    dies: fc.boolean(),
  })
  .map(({ fates, pick, dies }): Step[] => {
    const children = PICKS.slice(1).map(() => ({ here: false, job: PLAIN }));
    return [
      ...[enqueue(PLAIN), answered({ how: 'completed', children })],
      ...[{ op: 'children' as const, pick, fate: 'refuse' as const }],
      ...fates.map((fate): Step => ({ op: 'children', pick: 0, fate })),
      ...(dies ? [{ op: 'evict' as const }] : []),
      ...[
        { op: 'alarm' as const, when: 'due' as const },
        { op: 'children' as const, pick: 0, fate: 'take' as const },
      ],
    ];
  });

/** Themes of jobs that are pushed. */
export const pushThemes: fc.Arbitrary<Step[]> = fc.oneof(asleep, someRefused);

/** Many jobs, each with steps of many KiB, of which something is said at the same time. */
export const heavySteps: fc.Arbitrary<Step[]> = fc.constantFrom(14, 18).map((times): Step[] => {
  const all = Array.from({ length: times }, (_, index) => -1 - index);
  return [
    enqueue(...all.map(() => PLAIN)),
    poll('ann', times),
    told(...all.map((pick) => item('step', { pick, kib: 700 }))),
    { op: 'together', steps: all.map((pick) => told(item('step', { pick, mark: 1 }))) },
    told(...all.map((pick) => item('step', { pick, mark: 1 }))),
  ];
});

/** As many jobs as one request may have. */
export const fullBatch: Step[] = [{ op: 'enqueue', jobs: [PLAIN], times: 1_000 }];
