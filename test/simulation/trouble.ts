/** What happens to an object by itself: time passes, alarms come or are lost, it dies, storage fails. */
import fc from 'fast-check';
import { find, viewOf } from '../../src/queue/read/find';
import type { Area, Kind } from './area';
import type { ModelJob } from './model';
import { isInjected } from './observer';
import type { Scene } from './scene';
import type { Step, StepOf } from './steps';

export type TroubleStep =
  | { op: 'jump'; ms: number }
  | { op: 'alarm'; when: 'due' | 'late' | 'early' | 'twice' }
  | { op: 'lose-alarm' }
  | { op: 'evict' }
  /** Time passes, and when what is due is treated as due, the statement with this number fails. */
  | { op: 'strand'; ms: number; statement: number }
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

/** An attempt that cannot be ended as it should ends all the same: which of them is nobody's promise, so it is seen. */
function strand(scene: Scene, { ms, statement }: StepOf<'strand'>): void {
  const { world, model } = scene;
  world.now += ms;
  const isOver = ({ lease }: ModelJob) =>
    lease !== undefined && Math.min(lease.expiresAt, lease.timeoutAt) <= scene.now;
  const over = model.jobs.filter(isOver);
  world.failAt(statement);
  try {
    world.engine.tidied();
  } catch (error) {
    if (!isInjected(error)) throw error;
  }
  world.heal();
  world.faulted = false;
  for (const job of over) {
    const found = find(scene.q, job.id);
    if (found && viewOf(scene.q, found, scene.now).record.history.reason === 'crash') model.quarantine(job, scene.now);
  }
  scene.tidy();
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
    strand,
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
