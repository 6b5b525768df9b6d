/**
 * Stride scheduling of a pool's queues: a job advances its queue's *pass* by 1 / weight, the lowest pass is next.
 * Ratios follow the weights to within one job, whatever the size of fetches; an empty queue saves nothing up.
 */
import { own } from '../job/own';
import { type Pool, weightOf } from './pool';

/** How far each queue is. It can be stored. */
export type Passes = Record<string, number>;

export interface Portion {
  queue: string;
  count: number;
}

type Turning = Pick<Pool, 'strategy' | 'queues' | 'weights'>;

const passOf = (passes: Passes, queue: string) => own(passes, queue) ?? 0;

export function inTurn({ strategy, queues }: Turning, passes: Passes): string[] {
  if (strategy === 'strict') return [...queues];
  return [...queues].sort((a, b) => passOf(passes, a) - passOf(passes, b) || queues.indexOf(a) - queues.indexOf(b));
}

/** What the next `count` jobs are taken from, if all queues have enough. In the order of their turns. */
export function portions(pool: Turning, passes: Passes, count: number): Portion[] {
  const [first] = pool.queues;
  if (pool.strategy === 'strict' || first === undefined) return first === undefined ? [] : [{ queue: first, count }];
  const ahead: Passes = { ...passes };
  const counts = new Map<string, number>();
  for (let left = count; left > 0; left--) {
    const next = inTurn(pool, ahead)[0] as string;
    counts.set(next, (counts.get(next) ?? 0) + 1);
    ahead[next] = passOf(ahead, next) + 1 / weightOf(pool, next);
  }
  return [...counts].map(([queue, portion]) => ({ queue, count: portion }));
}

/** The passes after a fetch. @param taken jobs that each gave @param short queues that had fewer than asked */
export function moveOn(
  pool: Turning,
  passes: Passes,
  taken: Readonly<Record<string, number>>,
  short: readonly string[],
): Passes {
  const next: Passes = {};
  for (const queue of pool.queues) {
    next[queue] = passOf(passes, queue) + (own(taken, queue) ?? 0) / weightOf(pool, queue);
  }
  const giving = pool.queues.filter((queue) => (own(taken, queue) ?? 0) > 0 && !short.includes(queue));
  if (giving.length > 0) {
    const now = Math.min(...giving.map((queue) => passOf(next, queue)));
    for (const queue of short) if (Object.hasOwn(next, queue)) next[queue] = Math.max(passOf(next, queue), now);
  }
  const least = Math.min(...Object.values(next));
  // Kept small, so that adding to them stays exact enough for ever.
  return Object.fromEntries(Object.entries(next).map(([queue, pass]) => [queue, pass - least]));
}
