/** How many jobs match, by state and by queue, as far as one request looks. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { defined } from '../job/envelope/fields';
import { unwrap } from '../job/errors';
import type { Selection } from '../job/filter';
import { JOB_STATES, type JobState } from '../job/states';
import { ACTS_ON, type BulkAction } from '../rpc/operations';
import type { StateCounts } from '../rpc/stats';
import { queueObject } from '../rpc/stubs';
import { nextQueues, queuesOf } from './queues';

/** Jobs looked at in all queues, for a list and before an operation; and the minimum for each queue. */
const BESIDE_LIST = 40_000;
const BEFORE_OPERATION = 100_000;
const LEAST_OF_QUEUE = 500;

/** Jobs looked at by one call. */
const STEP = 20_000;

export interface Counted {
  counts: StateCounts;
  byQueue: Map<string, number>;
  /** False: there may be more. */
  exact: boolean;
  searched: number;
}

/** How many of the matching jobs are in each state, whatever states the selection names: for the tabs of a list. */
export async function countByState(env: Env, { filter, queues }: Selection): Promise<Counted> {
  const { names, more } = await nextQueues(env, undefined, queues);
  const { states: _, ...others } = filter;
  const counted = await count(env, names, others, BESIDE_LIST);
  return { ...counted, exact: counted.exact && !more };
}

/** What an operation would act on, if it began now. @throws {ApiError} 422 if it would ask too many queues */
export async function countMatches(env: Env, action: BulkAction, selection: Selection): Promise<Counted> {
  const { filter } = selection;
  const states = (filter.states ?? ACTS_ON[action]).filter((state) => ACTS_ON[action].includes(state));
  return count(env, await queuesOf(env, selection), { ...filter, states }, BEFORE_OPERATION);
}

async function count(env: Env, names: string[], filter: Selection['filter'], most: number): Promise<Counted> {
  const budget = Math.max(LEAST_OF_QUEUE, Math.floor(most / Math.max(1, names.length)));
  const counts = Object.fromEntries(JOB_STATES.map((state) => [state, 0])) as Record<JobState, number>;
  const byQueue = new Map<string, number>();
  let exact = true;
  let searched = 0;
  await inParallel(names, async (queue) => {
    let before: number | undefined;
    let own = 0;
    for (let left = budget; left > 0; ) {
      const request = defined({ filter, before, budget: Math.min(left, STEP) });
      const part = unwrap(await queueObject(env, queue).countStates(request));
      for (const state of JOB_STATES) {
        counts[state] += part.counts[state];
        own += part.counts[state];
      }
      searched += part.looked;
      before = part.next;
      if (before === undefined) break;
      left -= STEP;
    }
    exact &&= before === undefined;
    if (own > 0) byQueue.set(queue, own);
  });
  return { counts, byQueue, exact, searched };
}
