/** The rules of a queue as a whole: its settings in two layers, its bound, its own limits, maintenance and draining. */
import type { Model, ModelJob } from './model';

/** What a layer says; absent: nothing. */
export interface Settings {
  /** Jobs that have not ended, at most. */
  maxDepth?: number | undefined;
  overflow?: 'reject' | 'drop_oldest' | undefined;
  /** Attempts at once, and starts in {@link RATE_PERIOD}. */
  limit?: { concurrency?: number; rate?: number } | undefined;
}

/** Of the queue's own rate, ms. */
export const RATE_PERIOD = 5_000;

/** From this part of a bound on producers are warned. */
const WARNING = 0.8;

interface QueueBook {
  own: Settings;
  deployment: Settings;
  /** Until when no job is given out, epoch ms. */
  shutUntil: number;
  draining: boolean;
  /** Starts that count under the queue's own rate. */
  starts: number[];
  /** Its bound was set below what waits: what is too much goes with the next alarm. */
  isShedding: boolean;
  /** Attempts that its object can run at all. */
  most: number;
}

export function queueOf(model: Model): QueueBook {
  return model.part('queue', () => ({
    ...{ own: {}, deployment: {}, draining: false, starts: [], isShedding: false },
    ...{ shutUntil: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY },
  }));
}

/** What holds. */
export function settingsOf(model: Model): Settings {
  const { own, deployment } = queueOf(model);
  return { ...deployment, ...own };
}

/** A layer changes; undefined members go back to the layer below. */
export function configured(model: Model, layer: 'own' | 'deployment', change: Settings): void {
  const book = queueOf(model);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) delete book[layer][name as keyof Settings];
    else Object.assign(book[layer], { [name]: value });
  }
  if (settingsOf(model).limit === undefined) book.starts = [];
}

/** Is no job given out at all? */
export function isShut(model: Model, now: number): boolean {
  return model.paused || now < queueOf(model).shutUntil;
}

/** How many jobs may start now, of whatever key. */
export function startsLeft(model: Model, now: number): number {
  if (isShut(model, now)) return 0;
  const { limit } = settingsOf(model);
  const { starts, most } = queueOf(model);
  const running = model.jobs.filter(({ state }) => state === 'active').length;
  const rate = limit?.rate ?? Number.POSITIVE_INFINITY;
  const within = starts.filter((start) => start > now - RATE_PERIOD).length;
  return Math.max(
    0,
    Math.min((limit?.concurrency ?? Number.POSITIVE_INFINITY) - running, rate - within, most - running),
  );
}

/** Moments after now at which more jobs may start than before. */
export function openings(model: Model, now: number): number[] {
  const { starts, shutUntil } = queueOf(model);
  return [shutUntil, ...starts.map((start) => start + RATE_PERIOD)].filter((at) => at > now && at < Infinity);
}

/** A job starts. */
export function noteStart(model: Model, now: number): void {
  if (settingsOf(model).limit?.rate !== undefined) queueOf(model).starts.push(now);
}

/** Jobs that have not ended. */
export function depthOf({ jobs }: Pick<Model, 'jobs'>): number {
  return jobs.filter(({ state }) => state === 'waiting' || state === 'pending' || state === 'active').length;
}

/** How full the queue is, if that is worth a warning. */
export function pressureOf(model: Model): { depth: number; bound: number } | undefined {
  const { maxDepth: bound } = settingsOf(model);
  const depth = depthOf(model);
  return bound !== undefined && depth >= WARNING * bound ? { depth, bound } : undefined;
}

/**
 * Jobs that make room for others: the first that became available; those that nobody has started last. Which of those of one
 * moment goes is nobody's promise, so it is seen.
 * @param among jobs that may go
 */
export function victims(model: Model, among: readonly ModelJob[], count: number): ModelJob[] {
  const rank = (job: ModelJob) => (job.state === 'pending' ? Number.MAX_SAFE_INTEGER : job.availableAt);
  const ranks = new Map(among.map((job) => [job, rank(job)]));
  const sorted = among.toSorted((a, b) => (ranks.get(a) as number) - (ranks.get(b) as number));
  const last = sorted[count - 1];
  if (!last || count === sorted.length) return sorted.slice(0, count);
  const bound = ranks.get(last) as number;
  const certain = sorted.filter((job) => (ranks.get(job) as number) < bound);
  const alike = sorted.filter((job) => ranks.get(job) === bound);
  const gone = alike.filter((job) => model.isDropped(job));
  return [...certain, ...[...gone, ...alike.filter((job) => !gone.includes(job))].slice(0, count - certain.length)];
}

/** Jobs that have not ended and do not run. */
export function idle({ jobs }: Model): ModelJob[] {
  return jobs.filter(({ state }) => state === 'waiting' || state === 'pending');
}
