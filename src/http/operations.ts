/** Operations on many jobs: of all queues that a filter names, as one, and on jobs named by their ids. */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { unsupported, unwrap } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import type { BulkAction, BulkItem, OperationView } from '../queue/operations/api';
import type { JobFilter } from '../queue/operations/filter';
import { inParallel, knownQueues, queueObject } from '../routing/objects';
import type { AppContext } from './context';
import { groupByHome } from './job-groups';
import { integerParam } from './query';

/** An operation that takes longer goes on after the answer; seconds. */
const MAX_WAIT_S = 20;

/** Ids handled in one transaction, where they need not be all or nothing. */
const STEP = 500;

const MAX_ERRORS = 100;

/** What came of an operation in all its queues. */
export interface OperationSummary {
  id: string;
  done: boolean;
  matched: number;
  succeeded: number;
  skipped: number;
  failed: number;
  errors: { job_id: string; error: string }[];
}

/** How long the answer may wait for the end of an operation, ms. */
export function patience(c: AppContext): number {
  return (integerParam(c, 'wait', 0, MAX_WAIT_S) ?? MAX_WAIT_S) * 1000;
}

/**
 * Begins an operation in every queue, and waits a while for its end. It goes on by itself.
 * @param queues absent: all queues
 */
export async function operate(
  env: Env,
  action: BulkAction,
  filter: JobFilter,
  queues: readonly string[] | undefined,
  waitMs: number,
): Promise<OperationSummary> {
  const id = uuidv7();
  const deadline = Date.now() + waitMs;
  const names = [...new Set(queues ?? (await knownQueues(env)))];
  const begun = await inParallel(names, async (queue) => ({
    queue,
    view: unwrap(await queueObject(env, queue).operate(queue, { id, action, filter }, 0)),
  }));
  const views = await Promise.all(
    begun.map(async ({ queue, view }) => {
      if (view.done) return view;
      return (await queueObject(env, queue).operation(queue, id, Math.max(0, deadline - Date.now()))) ?? view;
    }),
  );
  return summaryOf(id, views);
}

/** How far an operation is; undefined when no queue knows it. */
export async function findOperation(env: Env, id: string, waitMs: number): Promise<OperationSummary | undefined> {
  if (!isUuidV7(id)) return undefined;
  const answers = await inParallel(await knownQueues(env), (queue) =>
    queueObject(env, queue).operation(queue, id, waitMs),
  );
  const views = answers.filter((view) => view !== null);
  return views.length === 0 ? undefined : summaryOf(id, views);
}

function summaryOf(id: string, views: readonly OperationView[]): OperationSummary {
  const sum = (count: (view: OperationView) => number) => views.reduce((total, view) => total + count(view), 0);
  return {
    id,
    done: views.every(({ done }) => done),
    matched: sum(({ matched }) => matched),
    succeeded: sum(({ succeeded }) => succeeded),
    skipped: sum(({ skipped }) => skipped),
    failed: sum(({ failed }) => failed),
    errors: views.flatMap(({ errors }) => errors).slice(0, MAX_ERRORS),
  };
}

/**
 * Acts on jobs named by their ids.
 * @param atomic all or none; the jobs must then be in one queue
 * @returns one item for each id, in order, and whether anything was done
 * @throws {ApiError} 422 when `atomic` and the jobs are in several queues
 */
export async function actOnIds(
  env: Env,
  action: BulkAction,
  ids: readonly string[],
  atomic: boolean,
): Promise<{ items: BulkItem[]; applied: boolean }> {
  const homes = await groupByHome(env, ids);
  const valid = new Set([...homes.values()].flat());
  if (atomic && homes.size > 1) {
    throw unsupported('All or nothing is offered for jobs of one queue; these are in several.', { field: 'atomicity' });
  }
  const items = new Map<string, BulkItem>();
  let applied = !atomic || ids.every((id) => valid.has(id));
  const ask = async (queue: string, named: readonly string[]) => {
    const step = atomic ? Math.max(1, named.length) : STEP;
    for (let at = 0; at < named.length; at += step) {
      const request = { action, ids: named.slice(at, at + step), atomic };
      const outcome = unwrap(await queueObject(env, queue).bulk(queue, request));
      applied &&= outcome.applied;
      for (const item of outcome.items) {
        if (!items.has(item.job_id) || item.reason !== 'not_found') items.set(item.job_id, item);
      }
    }
  };
  if (applied) await inParallel([...homes], ([queue, named]) => ask(queue, named));
  // A job may have moved to another queue with its id.
  const lost = [...items.values()].filter(({ reason }) => reason === 'not_found').map(({ job_id }) => job_id);
  if (!atomic && lost.length > 0) {
    for (const queue of await knownQueues(env)) {
      await ask(
        queue,
        lost.filter((id) => items.get(id)?.reason === 'not_found' && !homes.get(queue)?.includes(id)),
      );
    }
  }
  const missing = (job_id: string): BulkItem => ({ job_id, status: 'failed', reason: 'not_found' });
  const firsts = new Set<string>();
  const all = ids.map((job_id): BulkItem => {
    if (firsts.has(job_id)) return { job_id, status: 'skipped', reason: 'repeated' };
    firsts.add(job_id);
    return items.get(job_id) ?? missing(job_id);
  });
  return { items: all, applied };
}
