/** Jobs, and which of them a step means, as random histories have them. */
import fc from 'fast-check';
import type { JobOrder, LimitKey } from './model';
import type { UniqueOrder } from './model-unique';

const unique: fc.Arbitrary<UniqueOrder> = fc
  .record({
    key: fc.constantFrom('a', 'a', 'b', 'c'),
    by: fc.constantFrom('key', 'key', 'args', 'meta'),
    everywhere: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
    conflict: fc.constantFrom<UniqueOrder['conflict'][]>(
      ...([
        'reject',
        'ignore',
        'replace',
        'replace',
        'replace_except_schedule',
        'accumulate',
        'accumulate',
        'accumulate',
      ] as const),
      ...(['leading', 'trailing'] as const),
    ),
    counting: fc.constantFrom('open', 'open', 'queued', 'exists', 'running', 'ended'),
    period: fc.constantFrom(0, 0, 350, 500, 25_000, 600_000),
    foreign: fc.boolean(),
    maxWait: fc.constantFrom(0, 0, 20_000, 25_000),
    maxCount: fc.constantFrom(0, 2, 3),
  })
  .map(allowed);

/** The same, without what contradicts the rest. */
function allowed(unique: UniqueOrder): UniqueOrder {
  const { conflict, period } = unique;
  const accumulates = conflict === 'accumulate';
  return {
    ...unique,
    everywhere: unique.everywhere && !accumulates,
    period: period || (conflict === 'leading' || conflict === 'trailing' ? 500 : 0),
    maxWait: accumulates || conflict === 'replace' ? unique.maxWait : 0,
    maxCount: accumulates ? unique.maxCount : 0,
  };
}

export const order: fc.Arbitrary<JobOrder> = fc
  .record({
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
    unique: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, { weight: 2, arbitrary: unique }),
  })
  // A job that expires before it may start is refused.
  .map((job) => (job.ttl > 0 && job.ttl <= job.delay ? { ...job, ttl: job.delay + job.ttl } : job))
  // The window says when such a job starts.
  .map((job) => (job.unique?.conflict === 'trailing' ? { ...job, delay: 0 } : job));

/** Jobs of one request; now and then each comes several times, so that many wait for the same moment. */
export const orders: fc.Arbitrary<JobOrder[]> = fc
  .tuple(fc.array(order, { minLength: 1, maxLength: 4 }), fc.constantFrom(1, 1, 1, 2, 4))
  .map(([jobs, times]) => jobs.flatMap((job) => Array.from({ length: times }, () => ({ ...job }))));

export const pick = fc.nat(1_000);
export const attempt = fc.constantFrom('right', 'right', 'none', 'stale') as fc.Arbitrary<'right' | 'stale' | 'none'>;
