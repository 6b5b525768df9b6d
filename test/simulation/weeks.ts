/** A queue that has been busy for weeks, with jobs of many types: what it counts of them grows, and must stay within bounds. */
import fc from 'fast-check';
import type { Area } from './area';
import type { Scene } from './scene';
import type { Step, StepOf } from './steps';

/** A day in which jobs of so many types, with names so long, ran at so many moments. */
export type WeeksStep = { op: 'busy-day'; types: number; characters: number; moments: number };

const DAY = 86_400_000;

/** How long jobs waited and ran: a time for each bucket of a histogram fills them all. Ms. */
const TIMES = [1, 8, 70, 700, 4_000, 40_000, 400_000, 5_000_000];

/** Types by moments of a day, at most: in a few such days what is counted reaches its bounds. */
const MOST_COUNTED = 2_000;

/** The jobs themselves would take hours: they are counted as the store would count them. */
function busyDay(scene: Scene, { types, characters, ...day }: StepOf<'busy-day'>): void {
  const { world, q } = scene;
  const moments = Math.min(day.moments, Math.ceil(MOST_COUNTED / types));
  const from = world.now;
  world.now += DAY;
  world.engine.writeNow(() => {
    for (let moment = 0; moment < moments; moment++) {
      const at = from + Math.floor(((moment + 1) * DAY) / moments);
      for (let type = 0; type < types; type++) {
        const name = `job.${type}.`.padEnd(characters, 'x');
        q.observed.meters.enqueued(name, TIMES.length, at);
        for (const ms of TIMES) {
          q.observed.meters.started(name, at - ms, at);
          q.observed.meters.completed(name, at - ms, at);
        }
      }
    }
  });
  scene.tidy();
}

const anyDay = fc.record({
  op: fc.constant('busy-day' as const),
  types: fc.constantFrom(5, 30, 30, 220),
  characters: fc.constantFrom(12, 60, 60, 255),
  moments: fc.constantFrom(4, 60, 240),
});

export const area: Area<WeeksStep> = { kinds: { 'busy-day': busyDay } };

/** Days, and what else happens in between. */
export const weeks = (other: fc.Arbitrary<Step>): fc.Arbitrary<Step> =>
  fc.oneof({ weight: 2, arbitrary: anyDay }, { weight: 3, arbitrary: other });
