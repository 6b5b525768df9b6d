/** The steps a history is made of, as plain data, so that a failing history can be shrunk and printed. */
import fc from 'fast-check';
import { EXPRESSIONS, ZONES } from './calendar';
import type { JobOrder, LimitKey } from './model';
import type { CronTerms } from './model-crons';
import { attempt, order, orders, pick } from './orders';
import type { ErrorTexts, Text } from './texts';

export type Step =
  /** Each of the jobs so many times; absent: once. A claim may wait for them. */
  | { op: 'enqueue'; jobs: JobOrder[]; times?: number; claim?: Claim }
  | ({ op: 'claim' } & Claim)
  | {
      op: 'ack';
      pick: number;
      attempt: 'right' | 'stale' | 'none';
      worker: 'right' | 'other';
      result?: Text | undefined;
    }
  | {
      op: 'nack';
      pick: number;
      attempt: 'right' | 'stale' | 'none';
      how: 'plain' | 'requeue' | 'final' | 'retry-in';
      error?: ErrorTexts | undefined;
    }
  /** The handler goes on later, having done the step `mark`; perhaps it waits for the signal. */
  | { op: 'snooze'; pick: number; attempt: 'right' | 'stale' | 'none'; in: number; signal: boolean; mark: number }
  | { op: 'signal'; pick: number }
  /** Whatever runs fails. */
  | { op: 'nack-all'; error: ErrorTexts }
  | { op: 'progress'; pick: number; attempt: 'right' | 'stale' | 'none'; message: Text; data: Text }
  | { op: 'checkpoint'; pick: number; attempt: 'right' | 'stale' | 'none'; state: Text }
  | { op: 'heartbeat'; worker: string }
  | { op: 'cancel'; pick: number }
  | { op: 'activate'; pick: number }
  | { op: 'redrive'; pick: number }
  | { op: 'delete-dead'; pick: number }
  | { op: 'patch'; pick: number; change: JobChange }
  | { op: 'bulk'; action: 'cancel' | 'retry' | 'delete' | 'purge'; priority: number }
  | { op: 'pause'; paused: boolean }
  | { op: 'override'; key: LimitKey; concurrency: number | null; expiresIn: number | null }
  | { op: 'cron-put'; name: string; cron: CronAsk; order: ChangeOrder }
  | { op: 'cron-patch'; name: string; change: Partial<CronAsk>; order: ChangeOrder }
  | { op: 'cron-enable'; name: string; enabled: boolean }
  | { op: 'cron-trigger'; name: string }
  | { op: 'cron-delete'; name: string; late: boolean }
  | { op: 'answer'; how: 'all' | 'one' | 'busy' | 'die' }
  | { op: 'jump'; ms: number }
  /** To so long past the next fire of an entry. */
  | { op: 'jump-to-fire'; past: number }
  | { op: 'alarm'; when: 'due' | 'late' | 'early' | 'twice' }
  | { op: 'lose-alarm' }
  | { op: 'evict' }
  | { op: 'fault'; statement: number; step: Step };

/** What a worker asks for; a visibility of 0 leaves it to the queue, ms. */
export interface Claim {
  count: number;
  worker: string;
  visibility: number;
}

/** What a step says of an entry: times from now, ms. */
export type CronAsk = Omit<CronTerms, 'enabled'> & { enabled: boolean | undefined };

/** Does a change come in time, after a later one, or for an entry that is no longer what it was? */
export type ChangeOrder = 'in-time' | 'late' | 'overtaken';

/** A history, and when it begins. */
export interface History {
  /** Epoch ms. */
  start: number;
  /** One that is null does nothing. */
  steps: (Step | null)[];
  /** Answers are so large that they are weighed. */
  large?: boolean;
  /** No dead letter is kept. */
  keepsNoDead?: boolean;
  /** In the end everything is done that there is to do. */
  drains?: boolean;
}

/** A change of a waiting job; null goes back to the default. Times in ms from now. */
export interface JobChange {
  priority?: number | null;
  delay?: number | null;
  ttl?: number | null;
  maxAttempts?: number;
}

const worker = fc.constantFrom('ann', 'bob');

const claim = {
  count: fc.integer({ min: 1, max: 5 }),
  worker,
  visibility: fc.constantFrom(0, 0, 500, 2_000),
};

export const plainStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('enqueue' as const),
      jobs: orders,
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('enqueue' as const),
      jobs: fc.oneof(
        {
          weight: 3,
          arbitrary: order.map((job) => [{ ...job, priority: 0, delay: 0, ttl: 0, pending: false, limit: null }]),
        },
        orders,
      ),
      claim: fc.record(claim),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ op: fc.constant('claim' as const), ...claim }),
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
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('snooze' as const),
      ...{ pick, attempt, signal: fc.boolean() },
      in: fc.constantFrom(0, 300, 2_000, 60_000),
      mark: fc.constantFrom(0, 0, 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('signal' as const), pick }) },
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
      expiresIn: fc.constantFrom(null, 300, 20_000),
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

const name = fc.constantFrom('a', 'a', 'b', 'c');
const changeOrder: fc.Arbitrary<ChangeOrder> = fc.oneof(
  { weight: 8, arbitrary: fc.constant('in-time' as const) },
  fc.constantFrom('late' as const, 'overtaken' as const),
);

const cronAsk = {
  expression: fc.oneof(fc.constantFrom('* * * * *', '*/5 * * * *', '@every 90s'), fc.constantFrom(...EXPRESSIONS)),
  zone: fc.constantFrom(...ZONES),
  start: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constantFrom(-3_600_000, 0, 90_500, 7_200_000)),
  end: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, fc.constantFrom(0, 130_000, 3_600_000)),
  overlap: fc.constantFrom('skip', 'allow', 'cancel_previous', 'enqueue'),
  missed: fc.constantFrom('skip', 'fire_once', 'fire_all'),
  catchup: fc.constantFrom(1, 3, 5),
  limit: fc.oneof({ weight: 3, arbitrary: fc.constant(null) }, fc.constantFrom(1, 2, 5)),
  enabled: fc.constantFrom(undefined, undefined, undefined, true, false),
  job: order,
} satisfies { [Part in keyof CronAsk]: fc.Arbitrary<CronAsk[Part]> };

/** Jobs of different entries are different jobs: which of two that are due together comes first is nobody's promise. */
function own<T extends { job?: JobOrder }>(name: string, { job, ...rest }: T): Omit<T, 'job'> & Pick<T, 'job'> {
  const { unique } = job ?? {};
  return { ...rest, ...(job && { job: unique ? { ...job, unique: { ...unique, key: name } } : job }) };
}

export const cronStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .record({ name, cron: fc.record(cronAsk), order: changeOrder })
      .map((parts) => ({ op: 'cron-put' as const, ...parts, cron: own(parts.name, parts.cron) })),
  },
  {
    weight: 4,
    arbitrary: fc
      .record({ name, change: fc.record(cronAsk, { requiredKeys: [] }), order: changeOrder })
      .map((parts) => ({ op: 'cron-patch' as const, ...parts, change: own(parts.name, parts.change) })),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('cron-enable' as const), name, enabled: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ op: fc.constant('cron-trigger' as const), name }) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('cron-delete' as const), name, late: fc.boolean() }) },
  {
    weight: 16,
    arbitrary: fc.record({
      op: fc.constant('jump-to-fire' as const),
      past: fc.constantFrom(-1, 0, 0, 1, 20_000, 60_000, 60_001, 300_000, 1_000_000),
    }),
  },
);

export const answer = fc.record({
  op: fc.constant('answer' as const),
  how: fc.constantFrom('all' as const, 'all' as const, 'one' as const, 'busy' as const, 'die' as const),
});
