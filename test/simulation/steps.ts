/** The steps a history is made of, as plain data, so that a failing history can be shrunk and printed. */
import fc from 'fast-check';
import type { JobOrder, LimitKey } from './model';

export type Step =
  | { op: 'enqueue'; jobs: JobOrder[] }
  | { op: 'claim'; count: number; worker: string; visibility: number }
  | { op: 'ack'; pick: number; attempt: 'right' | 'stale' | 'none'; worker: 'right' | 'other' }
  | {
      op: 'nack';
      pick: number;
      attempt: 'right' | 'stale' | 'none';
      how: 'plain' | 'requeue' | 'final' | 'retry-in';
    }
  | { op: 'heartbeat'; worker: string }
  | { op: 'cancel'; pick: number }
  | { op: 'activate'; pick: number }
  | { op: 'redrive'; pick: number }
  | { op: 'delete-dead'; pick: number }
  | { op: 'patch'; pick: number; change: JobChange }
  | { op: 'bulk'; action: 'cancel' | 'retry' | 'delete' | 'purge'; priority: number }
  | { op: 'pause'; paused: boolean }
  | { op: 'override'; key: LimitKey; concurrency: number | null }
  | { op: 'jump'; ms: number }
  | { op: 'alarm'; when: 'due' | 'late' | 'early' | 'twice' }
  | { op: 'lose-alarm' }
  | { op: 'evict' }
  | { op: 'fault'; statement: number; step: Step };

/** A change of a waiting job; null goes back to the default. Times in ms from now. */
export interface JobChange {
  priority?: number | null;
  delay?: number | null;
  ttl?: number | null;
  maxAttempts?: number;
}

const order: fc.Arbitrary<JobOrder> = fc.record({
  priority: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.constantFrom(-1, 5)),
  delay: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.constantFrom(1, 400, 20_000)),
  ttl: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.constantFrom(300, 10_000)),
  pending: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, fc.constant(true)),
  maxAttempts: fc.constantFrom(0, 1, 2, 3),
  backoff: fc.constantFrom(0, 50, 3_000),
  timeout: fc.constantFrom(0, 0, 700),
  deadLetter: fc.boolean(),
  limit: fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    fc.constantFrom<LimitKey>('narrow', 'narrow', 'rated', 'spaced'),
  ),
});

const pick = fc.nat(1_000);
const worker = fc.constantFrom('ann', 'bob');
const attempt = fc.constantFrom('right', 'right', 'none', 'stale') as fc.Arbitrary<'right' | 'stale' | 'none'>;

const plainStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('enqueue' as const),
      jobs: fc.array(order, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('claim' as const),
      count: fc.integer({ min: 1, max: 5 }),
      worker,
      visibility: fc.constantFrom(0, 0, 500, 2_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('ack' as const),
      pick,
      attempt,
      worker: fc.constantFrom('right' as const, 'right' as const, 'other' as const),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('nack' as const),
      pick,
      attempt,
      how: fc.constantFrom(
        'plain' as const,
        'plain' as const,
        'requeue' as const,
        'final' as const,
        'retry-in' as const,
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('heartbeat' as const), worker }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('cancel' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('activate' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('redrive' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('delete-dead' as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('patch' as const),
      pick,
      change: fc.record(
        {
          priority: fc.constantFrom(-1, 0, 0, 5, null),
          delay: fc.constantFrom(null, 0, 1, 400, 20_000),
          ttl: fc.constantFrom(null, 300, 10_000),
          maxAttempts: fc.constantFrom(1, 3),
        },
        { requiredKeys: [] },
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('bulk' as const),
      action: fc.constantFrom('cancel' as const, 'retry' as const, 'delete' as const, 'purge' as const),
      priority: fc.constantFrom(-1, 0, 5),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('pause' as const), paused: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('override' as const),
      key: fc.constantFrom<LimitKey>('narrow', 'rated', 'spaced'),
      concurrency: fc.constantFrom(null, null, 0, 2),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      op: fc.constant('jump' as const),
      ms: fc.constantFrom(0, 1, 1, 50, 350, 500, 3_000, 25_000, 2_000_000, 8 * 86_400_000, 40 * 86_400_000),
    }),
  },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 40, arbitrary: plainStep },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('alarm' as const),
      when: fc.constantFrom('due' as const, 'late' as const, 'early' as const, 'twice' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('lose-alarm' as const) }) },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('evict' as const) }) },
  {
    weight: 4,
    arbitrary: fc.record({ op: fc.constant('fault' as const), statement: fc.nat(12), step: plainStep }),
  },
);

/** Histories of this many steps. A step shrinks to null, which does nothing, so that what is left shows what matters. */
export function histories(length: number): fc.Arbitrary<(Step | null)[]> {
  return fc.array(fc.option(step, { freq: 200 }), { minLength: length, maxLength: length });
}
