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
  conflict: 'reject' | 'ignore' | 'replace' | 'replace_except_schedule' | 'accumulate' | 'leading' | 'trailing';
  counting: Counting;
  /** How long an existing job counts, ms; 0: as long as there is one. */
  period: number;
  /** Written in the words of another system. */
  foreign: boolean;
  /** How long after the first enqueue the job starts at last, ms; 0: nobody says. */
  maxWait: number;
  /** Enqueues that accumulate in a job; 0: as many as there may be. */
  maxCount: number;
}

/** Jobs that have not started: newcomers may change them. */
const UNSTARTED: readonly string[] = ['scheduled', 'available', 'pending'];

/** The states in which existing jobs count for a newcomer. */
function countingFor({ conflict, counting, maxWait, foreign }: UniqueOrder): readonly string[] {
  if (conflict === 'accumulate') return UNSTARTED;
  if (conflict === 'leading') return COUNTING.exists;
  if (conflict === 'trailing') return ['scheduled', 'pending'];
  // A stream of newcomers cancels no job that runs, unless they say so.
  return maxWait > 0 && counting === 'open' && !foreign ? COUNTING.queued : COUNTING[counting];
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
  if (!unique || !countingFor(unique).some((state) => COUNTING.open.includes(state as never))) return undefined;
  const wanted = identity(order);
  return model.jobs.find((job) => job.undecided !== undefined && !job.forgotten && identity(job.order) === wanted);
}

/** Jobs that stand in the way of a new one, newest first. */
export function inTheWay(model: Model, order: JobOrder, now: number): ModelJob[] {
  const { unique } = order;
  if (!unique) return [];
  const states = countingFor(unique);
  return known(model, order).filter(
    (job) =>
      job.undecided === undefined &&
      states.includes(model.stateOf(job, now)) &&
      (unique.period === 0 || unique.conflict === 'trailing' || now < job.createdAt + unique.period),
  );
}

/** Of these jobs, the newest that nobody has had. */
const untouched = (rivals: readonly ModelJob[]) => rivals.find(({ wasHandedOut }) => !wasHandedOut);

/** What a job stands for: the enqueues, and when the first of them came. */
function callsOf({ calls = 1, since, createdAt }: ModelJob) {
  return { calls, since: since ?? createdAt };
}

/**
 * A newcomer becomes a part of a job that waits.
 * @param asked when it would start
 * @returns that job, and whether it has room; one without starts now
 */
export function accumulate(
  model: Model,
  order: JobOrder,
  rivals: readonly ModelJob[],
  asked: number | undefined,
  now: number,
): { into: ModelJob; hasRoom: boolean; isChanged: boolean } | undefined {
  const into = untouched(rivals);
  if (!into) return undefined;
  const { maxWait = 0, maxCount = 0 } = order.unique ?? {};
  const { calls, since } = callsOf(into);
  const isScheduled = model.stateOf(into, now) === 'scheduled';
  const startAt = (at: number) => {
    into.availableAt = at;
    into.scheduledAt = at > now ? at : undefined;
  };
  const hasRoom = calls < (maxCount || 1_000);
  if (!hasRoom) {
    if (isScheduled) startAt(now);
    return { into, hasRoom, isChanged: isScheduled };
  }
  Object.assign(into, { calls: calls + 1, since, parts: [...(into.parts ?? []), order] });
  const at = Math.max(now, Math.min(asked ?? now, since + maxWait));
  if (maxWait > 0 && isScheduled && at !== into.availableAt) startAt(at);
  return { into, hasRoom, isChanged: true };
}

/**
 * What a job is that takes the place of others.
 * @param asked when it would start
 */
export function successor(
  model: Model,
  { unique }: JobOrder,
  newest: ModelJob | undefined,
  asked: number | undefined,
  now: number,
): Pick<ModelJob, 'scheduledAt' | 'calls' | 'since'> {
  const { conflict, maxWait = 0, period = 0 } = unique ?? {};
  if (newest && (conflict === 'replace_except_schedule' || conflict === 'trailing')) {
    return { scheduledAt: newest.scheduledAt };
  }
  if (conflict === 'trailing') return { scheduledAt: now + period };
  if (!newest || maxWait === 0 || newest.wasHandedOut || !UNSTARTED.includes(model.stateOf(newest, now))) {
    return { scheduledAt: asked };
  }
  const { calls, since } = callsOf(newest);
  const last = since + maxWait;
  const scheduledAt = asked === undefined || asked <= last ? asked : last > now ? last : undefined;
  return { scheduledAt, calls: calls + 1, since };
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
