/** Unique jobs, as the documents have it: who is the same as whom, and who stands in the way of a newcomer. */
import type { JobOrder, Model, ModelJob } from './model';

/** When the states of existing jobs count. */
const COUNTING = {
  open: ['scheduled', 'available', 'pending', 'active', 'retryable'],
  queued: ['scheduled', 'available', 'pending', 'retryable'],
  exists: ['scheduled', 'available', 'pending', 'active', 'retryable', 'completed', 'cancelled', 'discarded'],
  running: ['active'],
  ended: ['completed', 'discarded'],
} as const satisfies Record<string, readonly string[]>;

export type Counting = keyof typeof COUNTING;

export interface UniqueOrder {
  /** What it says in the place named by `by`. */
  key: string;
  by: 'key' | 'args' | 'meta';
  /** In all queues, or in its own. */
  everywhere: boolean;
  conflict: 'reject' | 'ignore' | 'replace' | 'replace_except_schedule';
  counting: Counting;
  /** How long an existing job counts, ms; 0: as long as there is one. */
  period: number;
  /** Written in the words of another system. */
  foreign: boolean;
}

/** Jobs of which this says the same are the same. */
export function identity({ unique, kind }: JobOrder): string | undefined {
  return unique ? `${unique.by} ${unique.key} ${unique.everywhere} ${kind ?? ''}` : undefined;
}

/** Jobs that are compared with new ones of the same identity, newest first. */
function known(model: Model, order: JobOrder): ModelJob[] {
  const wanted = identity(order);
  return model.jobs
    .filter((job) => job.state !== 'gone' && !job.forgotten && wanted !== undefined && identity(job.order) === wanted)
    .reverse();
}

/** A job that stands in the way of a new one or not: that is being decided. */
export function inDoubt(model: Model, order: JobOrder): ModelJob | undefined {
  const { unique } = order;
  if (!unique || unique.counting === 'ended') return undefined;
  const wanted = identity(order);
  return model.jobs.find((job) => job.undecided !== undefined && !job.forgotten && identity(job.order) === wanted);
}

/** Jobs that stand in the way of a new one, newest first. */
export function inTheWay(model: Model, order: JobOrder, now: number): ModelJob[] {
  const { unique } = order;
  if (!unique) return [];
  const states: readonly string[] = COUNTING[unique.counting];
  return known(model, order).filter(
    (job) =>
      job.undecided === undefined &&
      states.includes(model.stateOf(job, now)) &&
      (unique.period === 0 || now < job.createdAt + unique.period),
  );
}

/** Of the jobs that ended the same way the newest is enough: the others are forgotten when a new one comes. */
export function outdatedBy(model: Model, orders: readonly JobOrder[], now: number): ModelJob[] {
  return orders.flatMap((order) => {
    const ends = new Set<string>();
    return known(model, order).filter((job) => {
      if (job.undecided !== undefined) return false;
      const state = model.stateOf(job, now);
      if (!['completed', 'cancelled', 'discarded'].includes(state)) return false;
      const isOld = ends.has(state);
      ends.add(state);
      return isOld;
    });
  });
}

/** How many jobs of each identity are compared with new ones, in rising order. */
export function knownCounts(model: Model): number[] {
  const counts = new Map<string, number>();
  for (const job of model.jobs) {
    const same = identity(job.order);
    if (same !== undefined && job.state !== 'gone' && !job.forgotten) counts.set(same, (counts.get(same) ?? 0) + 1);
  }
  return [...counts.values()].sort((a, b) => a - b);
}
