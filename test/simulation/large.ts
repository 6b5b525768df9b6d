/** Steps with texts as long as they may be, or a little longer. */
import fc from 'fast-check';
import type { JobOrder } from './model';
import { attempt, order, pick } from './orders';
import type { Step } from './steps';
import { ALPHABETS, type ErrorTexts, type Text } from './texts';

/** Lengths up to a limit, at it and just beyond, in characters and in bytes of several for each. */
function textOf(...lengths: number[]): fc.Arbitrary<Text> {
  return fc.record({ of: fc.constantFrom(...ALPHABETS), length: fc.constantFrom(...lengths) });
}

const LONG_NAME = 'ж'.repeat(255);

/** What lets a job fail often, and keeps it in nobody's way. */
const CROWDED = {
  priority: 0,
  delay: 0,
  ttl: 0,
  pending: false,
  maxAttempts: 20,
  backoff: 50,
  limit: null,
  unique: null,
};

/** Present now and then. */
const some = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 2, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });

const largeOrder: fc.Arbitrary<JobOrder> = fc
  .tuple(
    order,
    fc.record({
      args: some(textOf(20_000, 87_000, 170_000, 260_000, 345_000, 520_000, 1_040_000, 1_048_577)),
      meta: some(textOf(10_000, 21_000, 32_000, 61_000, 65_537)),
      directive: some(textOf(255, 10_000, 300_000, 900_000)),
      tags: some(textOf(128, 127, 129)),
      type: some(fc.constantFrom(255, 255, 256)),
    }),
  )
  // How much of these fits into one job is for other tests.
  .map(([{ unique, ...plain }, texts]) => ({
    ...{ ...plain, texts },
    unique: unique?.conflict === 'accumulate' ? { ...unique, conflict: 'replace', maxCount: 0 } : unique,
  }));

const errorTexts: fc.Arbitrary<ErrorTexts> = fc.record({
  code: some(textOf(255, 256, 10_000, 300_000, 900_000)),
  type: some(textOf(255, 256, 10_000, 300_000)),
  message: some(textOf(8_191, 8_192, 8_193, 100_000, 1_000_000)),
  details: some(textOf(2_000, 16_000, 16_384, 400_000)),
  class: some(textOf(255, 300_000)),
});

export const largeStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('enqueue' as const),
      jobs: fc.array(largeOrder, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('claim' as const),
      count: fc.integer({ min: 1, max: 5 }),
      worker: fc.constantFrom('ann', LONG_NAME),
      visibility: fc.constantFrom(0, 0, 2_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('ack' as const),
      ...{ pick, attempt, worker: fc.constantFrom('right' as const, 'right' as const, 'other' as const) },
      result: textOf(100, 130_000, 174_000, 262_130, 349_000, 524_000, 1_048_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('nack' as const),
      ...{
        pick,
        attempt,
        how: fc.constantFrom('plain' as const, 'plain' as const, 'requeue' as const, 'final' as const),
      },
      error: errorTexts,
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('nack-all' as const), error: errorTexts }) },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('progress' as const),
      ...{ pick, attempt, message: textOf(100, 8_191, 8_192), data: textOf(100, 65_000, 300_000, 1_000_000) },
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('checkpoint' as const),
      ...{ pick, attempt, state: textOf(100, 65_000, 349_000, 1_000_000) },
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('bulk' as const),
      action: fc.constant('purge' as const),
      priority: fc.constantFrom(-1, 0, 5),
    }),
  },
);

/** A failure of which all is kept: a dozen of them fill a history. */
const longFailure: fc.Arbitrary<ErrorTexts> = fc.record({ message: textOf(8_192), details: textOf(16_000) });

/** A batch of jobs that fail again and again, until their histories are as long as they may be. */
export const crowd: fc.Arbitrary<Step[]> = fc
  .record({
    times: fc.constantFrom(30, 60, 100),
    job: largeOrder.map((job): JobOrder => ({ ...job, ...CROWDED })),
    rounds: fc.constantFrom(1, 4, 12),
    error: fc.oneof(errorTexts, longFailure),
    died: fc.boolean(),
  })
  .map(({ times, job, rounds, error, died }) => [
    { op: 'enqueue', jobs: [job], times },
    ...Array.from({ length: rounds }, (): Step[] => [
      ...Array.from({ length: 4 }, (): Step => ({ op: 'claim', count: 100, worker: 'ann', visibility: 0 })),
      ...(died ? [{ op: 'evict' } as const] : []),
      { op: 'nack-all', error },
      { op: 'jump', ms: 50 },
    ]).flat(),
    { op: 'claim', count: 100, worker: 'ann', visibility: 0 },
    { op: 'jump', ms: 2_000_000 },
  ]);
