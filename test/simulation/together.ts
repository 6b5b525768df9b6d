/** Operations that arrive together, and share one transaction: each is refused, or fails, alone. */
import fc from 'fast-check';
import type { Area, Extras, Kind } from './area';
import { fewer } from './batches';
import { observerOf } from './pulls';
import type { Scene } from './scene';
import type { Step, StepOf } from './steps';

export type TogetherStep = { op: 'together'; steps: Step[] };

/**
 * Steps that are one operation each. An operation on many jobs is none of them: it goes in turns, and which of the reports
 * that share a transaction with one of these come before it is nobody's promise.
 */
const OPERATIONS: readonly Step['op'][] = [
  ...(['enqueue', 'enqueue-each', 'report-each', 'claim', 'ack', 'nack', 'snooze', 'signal', 'heartbeat'] as const),
  ...(['cancel', 'activate', 'redrive', 'delete-dead', 'patch', 'pause', 'override'] as const),
  ...(['configure', 'maintain', 'drain'] as const),
];

/** Steps that begin something in the object, which writes by itself. */
const BEGINNINGS: readonly Step['op'][] = ['poll', 'tell', 'withdraw'];

async function prepare(kindOf: (step: Step) => Kind<Step>, scene: Scene, { steps }: StepOf<'together'>) {
  const turns: { isOperation: boolean; isBeginning: boolean; play(): void | Promise<void> }[] = [];
  for (const step of steps) {
    const turn = await kindOf(step).prepare(scene, step);
    const isOperation = OPERATIONS.includes(step.op);
    turns.push({ isOperation, isBeginning: BEGINNINGS.includes(step.op), play: () => turn.play() });
  }
  return {
    async play() {
      const observer = observerOf(scene);
      const done: Promise<void>[] = [];
      for (const { isOperation, isBeginning, play } of turns) {
        if (isOperation) done.push(observer.together(() => void play()));
        else if (isBeginning) void play();
      }
      await Promise.all(done);
    },
  };
}

/** @param kindOf how the steps of all areas are played */
export function together(kindOf: (step: Step) => Kind<Step>): Area<TogetherStep> & Extras<TogetherStep> {
  return {
    kinds: {
      together: {
        prepare: (scene, step) => prepare(kindOf, scene, step),
        isLonger: true,
        plainer: ({ op, steps }) => [
          ...fewer(steps).map((left) => ({ op, steps: left })),
          ...steps.flatMap((step, index) =>
            (kindOf(step).plainer?.(step) ?? []).map((plain) => ({ op, steps: steps.with(index, plain) })),
          ),
        ],
      },
    },
  };
}

/** @param of what arrives together */
export function manyOf(of: fc.Arbitrary<Step>): fc.Arbitrary<TogetherStep> {
  return fc.record({
    op: fc.constant('together' as const),
    steps: fc.array(of, { minLength: 2, maxLength: 5 }),
  });
}
