/** Fetching by a pool: its object plans queues and counts; the Worker takes the jobs and reports back. */
import type { Env } from '../config';
import { callsFor } from '../job/chunk';
import { notFound, unwrap } from '../job/errors';
import { own } from '../job/own';
import type { JobView } from '../job/record';
import { bytesOfView, MAX_CLAIM_BYTES } from '../job/size';
import type { Pool } from '../pools/pool';
import type { PoolTaken } from '../rpc/pools';
import { directoryObject, poolObject, queueObject } from '../rpc/stubs';

/** Claims from one queue, perhaps after waiting for work. */
export type ClaimFrom = (queue: string, count: number, waitMs: number) => Promise<JobView[]>;

export interface PoolFetch {
  count: number;
  worker?: string | undefined;
  waitMs: number;
  isAbandoned: () => boolean;
  waitsAt: (queue: string) => void;
  claim: ClaimFrom;
}

/**
 * Claims jobs of a pool: the portions, then the rest from queues that have more; else waits at the next one.
 * @throws {ApiError} 404; a queue's error, when none had a job
 */
export async function claimFromPool(env: Env, name: string, fetch: PoolFetch): Promise<JobView[]> {
  const object = poolObject(env, name);
  const { ticket, portions, order, count } = unwrap(await object.planFetch(fetch.count, fetch.worker));
  const claimed: JobView[] = [];
  const outcome: PoolTaken = { taken: {}, short: [] };
  const failures: unknown[] = [];
  let bytes = 0;
  let calls = 0;
  const take = async (queue: string, wanted: number, waitMs: number) => {
    if (wanted <= 0 || bytes > MAX_CLAIM_BYTES || outcome.short.includes(queue) || fetch.isAbandoned()) return;
    try {
      const jobs = await fetch.claim(queue, wanted, waitMs);
      claimed.push(...jobs);
      bytes += jobs.reduce((sum, view) => sum + bytesOfView(view), 0);
      const taken = callsFor(jobs);
      calls += taken;
      outcome.taken[queue] = (own(outcome.taken, queue) ?? 0) + taken;
      if (taken < wanted) outcome.short.push(queue);
    } catch (error) {
      outcome.short.push(queue);
      failures.push(error);
    }
  };
  try {
    for (const { queue, count: portion } of portions) await take(queue, portion, 0);
    for (const queue of order) await take(queue, count - calls, 0);
    const [next] = order;
    if (claimed.length === 0 && failures.length === 0 && fetch.waitMs > 0 && count > 0 && next !== undefined) {
      outcome.short = [];
      fetch.waitsAt(next);
      await take(next, count, fetch.waitMs);
    }
  } finally {
    // A lost report costs some fairness, and keeps its room for a minute.
    await object.endFetch(ticket, outcome).catch((error) => console.error(`tocsin: pool ${name}:`, error));
  }
  if (claimed.length === 0 && failures.length > 0) throw failures[0];
  return claimed;
}

/** Creates or replaces a pool. @returns whether it is new */
export async function putPool(env: Env, pool: Pool): Promise<boolean> {
  const isNew = unwrap(await directoryObject(env).putPool(pool));
  await poolObject(env, pool.name).definePool(pool);
  return isNew;
}

/** @throws {ApiError} 404 */
export async function removePool(env: Env, name: string): Promise<void> {
  // Its object first: if it is cut off in between, the list still leads to it.
  await poolObject(env, name).definePool(null);
  if (!(await directoryObject(env).removePool(name))) throw noPool(name);
}

export const noPool = (name: string) => notFound('pool', name, 'GET /ojs/v1/admin/pools lists all pools.');

export async function activeIn(env: Env, queues: readonly string[]): Promise<number> {
  const counts = await Promise.all(queues.map((queue) => queueObject(env, queue).activeCount()));
  return counts.reduce((sum, count) => sum + count, 0);
}
