/** What happens to an object by itself: time passes, alarms come or are lost, it dies, storage fails. */
import fc from 'fast-check';
import type { Area, Kind } from './area';
import type { Scene } from './scene';
import type { Step, StepOf } from './steps';

export type TroubleStep =
  | { op: 'jump'; ms: number }
  | { op: 'alarm'; when: 'due' | 'late' | 'early' | 'twice' }
  | { op: 'lose-alarm' }
  | { op: 'evict' }
  /** The statement with this number fails. */
  | { op: 'fault'; statement: number; step: Step }
  /** The object dies in the turn of this step: before anything is durable, or after, but before it goes on. */
  | { op: 'die'; durable: boolean; step: Step };

function alarm(scene: Scene, { when }: StepOf<'alarm'>): void {
  const { world, model } = scene;
  if (when !== 'early' && world.alarm !== null) world.now = Math.max(world.now, world.alarm);
  if (when === 'late') world.now += 60_000;
  for (let times = when === 'twice' ? 2 : 1; times > 0; times--) {
    world.fire();
    scene.tidy();
    model.prune(scene.now);
    scene.finish();
  }
  scene.lost = false;
}

/** A step in which the product does not run. */
function silently<S>(play: (scene: Scene, step: S) => void): Kind<S> {
  return { prepare: (scene, step) => ({ play: () => play(scene, step) }), silent: true };
}

export const area: Area<TroubleStep> = {
  kinds: {
    jump: silently(({ world }, { ms }) => {
      world.now += ms;
    }),
    alarm,
    'lose-alarm': silently((scene) => {
      scene.lost ||= scene.world.alarm !== null;
      scene.world.alarm = null;
    }),
    evict: silently((scene) => scene.evict()),
    // `play.ts` does these around their steps.
    fault: () => undefined,
    die: () => undefined,
  },
  steps: [
    {
      weight: 8,
      arbitrary: fc.record({
        op: fc.constant('jump' as const),
        ms: fc.constantFrom(0, 1, 1, 50, 350, 500, 3_000, 25_000, 2_000_000, 8 * 86_400_000, 40 * 86_400_000),
      }),
    },
  ],
};

const alarms = fc.record({
  op: fc.constant('alarm' as const),
  when: fc.constantFrom('due' as const, 'late' as const, 'early' as const, 'twice' as const),
});

/** Trouble that befalls a history beside its steps. @param calm steps in which a statement may fail */
export const troubles = (calm: fc.Arbitrary<Step>) => [
  { weight: 5, arbitrary: alarms },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('die' as const),
      durable: fc.boolean(),
      step: fc.oneof({ weight: 5, arbitrary: calm }, alarms),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('lose-alarm' as const) }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('evict' as const) }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('fault' as const), statement: fc.nat(12), step: calm }) },
];
