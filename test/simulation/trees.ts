/**
 * Jobs that wait for jobs: what befalls trees of them over two queues. `trees-play.ts` plays these steps in histories of
 * their own, against properties instead of the model.
 */
import fc from 'fast-check';
import type { Area } from './area';
import { narrow } from './histories';
import type { History } from './steps';

/** Runs that a handler asks for under a name. */
export interface TreeRun {
  name: 'a' | 'b' | 'c';
  where: 'here' | 'elsewhere' | 'both';
  how: 'one' | 'all' | 'stop';
  detached: boolean;
  /** How long it waits, and how long its jobs may wait to start, ms; 0: as long as they like. */
  timeout: number;
  ttl: number;
  /** `held`: that of a job above them, in strict order a deadlock; `leaf`: one of jobs that wait for none. */
  group: 'none' | 'held' | 'leaf';
}

const ACTS = [
  ...(['begin', 'claim', 'claim', 'claim', 'run', 'run', 'run', 'complete', 'complete', 'fail', 'kill'] as const),
  ...(['mark', 'cancel', 'purge', 'redrive', 'elapse', 'alarm', 'evict', 'drop-alarm'] as const),
  ...(['answer', 'answer', 'answer', 'deliver', 'deliver', 'calm'] as const),
  ...(['far-run', 'far-run', 'far-complete', 'far-fail', 'far-cancel', 'far-redrive', 'far-move'] as const),
];

export interface TreeStep {
  op: 'tree';
  act: (typeof ACTS)[number];
  pick: number;
  /** Of a job that runs: what it asks for. */
  runs: TreeRun[];
  /** How a message or a question fares. */
  fate: 'take' | 'lost' | 'busy' | 'refuse';
  ms: number;
  /** A statement fails; or the object dies before anything is durable, or after. */
  trouble: 'none' | 'fault' | 'lose' | 'die';
  statement: number;
}

export interface TreeTerms {
  /** Its groups are served in strict order. */
  strict: boolean;
  /** In the end it is deleted, and its jobs go to the other queue. */
  leaves: boolean;
}

const bool = (often: number) => fc.oneof({ weight: often, arbitrary: fc.constant(false) }, fc.constant(true));

const run: fc.Arbitrary<TreeRun> = fc.record({
  name: fc.constantFrom('a', 'b', 'c'),
  where: fc.constantFrom('here', 'elsewhere', 'both'),
  how: fc.constantFrom('one', 'one', 'all', 'stop'),
  detached: bool(5),
  timeout: fc.constantFrom(0, 0, 0, 5_000, 3_600_000),
  ttl: fc.constantFrom(0, 0, 0, 2_000),
  group: fc.constantFrom('none', 'none', 'held', 'leaf'),
});

const step: fc.Arbitrary<TreeStep> = fc.record({
  op: fc.constant('tree' as const),
  act: fc.constantFrom(...ACTS),
  pick: fc.nat(20),
  runs: fc.array(run, { minLength: 1, maxLength: 2 }),
  fate: fc.constantFrom('take', 'take', 'take', 'take', 'lost', 'busy', 'refuse'),
  ms: fc.constantFrom(1, 500, 1_000, 3_000, 60_000, 3_600_000),
  trouble: fc.constantFrom('none', 'none', 'none', 'none', 'none', 'none', 'none', 'fault', 'lose', 'die'),
  statement: fc.nat(12),
});

/** Each part of the step as plain as it may be. */
function plainer(of: TreeStep): TreeStep[] {
  const runs = of.act.endsWith('run') ? of.runs : [];
  return [
    { ...of, runs: runs.slice(0, 1) },
    { ...of, runs: runs.map((one) => ({ ...one, how: 'one', ttl: 0, timeout: 0 })) },
    { ...of, trouble: 'none', statement: 0 },
    ...[0, 1, 2, 3].map((pick) => ({ ...of, pick })),
  ];
}

export const area: Area<TreeStep> = {
  kinds: {
    tree: {
      prepare: () => {
        throw new Error('trees are played in histories of their own');
      },
      plainer,
    },
  },
};

/** Histories of trees alone, of this many steps: those of the other areas stay what they are for a seed. */
export function treeHistories(length: number): fc.Arbitrary<History> {
  return fc.record({
    start: fc.constant(Date.parse('2025-06-15T15:06:40Z')),
    steps: fc.array(step, { minLength: length, maxLength: length }),
    trees: fc.record({ strict: fc.boolean(), leaves: fc.boolean() }),
    sizes: fc.option(narrow, { nil: undefined }),
  }) as fc.Arbitrary<History>;
}
