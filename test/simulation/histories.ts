/** Random histories: jobs alone, with some entries, with many; large ones; those of other areas. */
import fc from 'fast-check';
import type { Sizes } from '../../src/queue/store/sizes';
import { aftermaths } from './aftermath';
import { EXTRAS } from './areas';
import { EVES } from './calendar';
import { answers, cronStep } from './crons';
import { crowd, largeStep } from './large';
import type { History, Step } from './steps';
import { troubles } from './trouble';
import { weeks } from './weeks';

const plainStep = (): fc.Arbitrary<Step> => fc.oneof(...EXTRAS.flatMap(({ steps = [] }) => steps));

/** Steps of which so many in a hundred, roughly, are about entries. */
export function stepOf(crons: number): fc.Arbitrary<Step> {
  const calm = fc.oneof({ weight: 100 - crons, arbitrary: plainStep() }, { weight: crons, arbitrary: cronStep });
  return fc.oneof(
    { weight: 40, arbitrary: calm },
    { weight: crons > 0 ? 3 : 0, arbitrary: answers },
    ...troubles(calm),
  );
}

/**
 * Histories of an area that is in play from their beginning.
 * @param others steps without it, for each one of its own
 * @param terms the members of the history that say so
 * @param themes steps of its own that belong together
 */
export function historiesOf(
  own: fc.Arbitrary<Step>,
  { length, others, weight }: { length: number; others: number; weight: number },
  terms: Readonly<Record<string, fc.Arbitrary<unknown>>>,
  themes: fc.Arbitrary<Step[]> = fc.constant([]),
): fc.WeightedArbitrary<History> {
  const step = fc.oneof({ weight: others, arbitrary: stepOf(0) }, { weight: 1, arbitrary: own });
  const some = fc.oneof({ weight: 30, arbitrary: step.map((one) => [one]) }, { weight: 1, arbitrary: themes });
  const steps = fc.array(some, { minLength: length, maxLength: length }).map((all) => all.flat().slice(0, length));
  const start = fc.constant(Date.parse('2025-06-15T15:06:40Z'));
  const arbitrary = fc.record({ start, steps, drains: fc.boolean(), ...terms });
  return { weight, arbitrary: arbitrary as unknown as fc.Arbitrary<History> };
}

/** Bounds of memory and of reads that a history fills, each far below a tenth of the product's. */
export const narrow: fc.Arbitrary<Partial<Sizes>> = fc.record({
  ...{ memory: fc.constantFrom(0, 100, 200), memoryEach: fc.constantFrom(100, 150) },
  ...{ entries: fc.constantFrom(4, 20), quiet: fc.constantFrom(2, 10) },
  ...{ ahead: fc.constantFrom(4, 10), aheadBlocks: fc.constantFrom(1, 3), aheadRows: fc.constantFrom(1, 3) },
  ...{ holders: fc.constantFrom(0, 1, 3) },
  ...{ chunkJobs: fc.constantFrom(4, 10), chunkLanes: fc.constantFrom(1, 3) },
  ...{ startRows: fc.constantFrom(2, 5), startChars: fc.constantFrom(100, 2_000) },
});

/** Histories of this many steps. A step shrinks to null, which does nothing, so that what is left shows what matters. */
export function histories(length: number): fc.Arbitrary<History> {
  const start = fc.constantFrom(...EVES);
  const drains = fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, fc.constant(true));
  const stepsOf = (step: fc.Arbitrary<Step>, count = length) =>
    fc.array(fc.option(step, { freq: 200 }), { minLength: count, maxLength: count });
  const ofKind = (crons: number) =>
    fc.record({
      ...{ start, steps: stepsOf(stepOf(crons)), drains, keepsNoDead: drains },
      after: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, aftermaths),
    });
  const isLarge = { large: fc.constant(true), drains: fc.constant(true), keepsNoDead: drains };
  const mixed = fc.oneof({ weight: 2, arbitrary: largeStep }, stepOf(5));
  const wide: fc.Arbitrary<History> = fc.oneof(
    { weight: 100, arbitrary: ofKind(0) },
    { weight: 100, arbitrary: ofKind(10) },
    { weight: 100, arbitrary: ofKind(45) },
    { weight: 33, arbitrary: fc.record({ start, steps: stepsOf(mixed, Math.ceil(length / 2)), ...isLarge }) },
    { weight: 1, arbitrary: fc.record({ start, steps: crowd, ...isLarge }) },
    { weight: 8, arbitrary: fc.record({ start, steps: stepsOf(weeks(stepOf(0)), Math.ceil(length / 3)), drains }) },
    ...EXTRAS.flatMap((area) => area.histories?.(length) ?? []),
  );
  const sizes = fc.option(narrow, { nil: undefined });
  return fc.tuple(wide, sizes).map(([history, bounds]) => ({ ...history, sizes: { ...bounds, ...history.sizes } }));
}
