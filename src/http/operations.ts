/** Operations on all jobs that match a filter: those of all queues that it names, as one. */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import type { KeyedOperation } from '../directory/api';
import { unwrap } from '../job/errors';
import { isUuidV7 } from '../job/ids';
import type { BulkAction, OperationView } from '../queue/operations/api';
import type { JobFilter } from '../queue/operations/filter';
import { inParallel, knownQueues, queueObject } from '../routing/objects';
import type { AppContext } from './context';
import { integerParam } from './query';

/** An operation that takes longer goes on after the answer; seconds. */
const MAX_WAIT_S = 20;

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
 * @param keyed the operation was begun under an idempotency key, perhaps by an earlier request: then it goes on
 */
export async function operate(
  env: Env,
  action: BulkAction,
  filter: JobFilter,
  queues: readonly string[] | undefined,
  waitMs: number,
  keyed?: KeyedOperation,
): Promise<OperationSummary> {
  const id = keyed?.id ?? uuidv7();
  const deadline = Date.now() + waitMs;
  const names = [...new Set(queues ?? keyed?.queues ?? (await knownQueues(env)))];
  // A queue that the earlier request did not reach begins now, with the jobs of then.
  const createdUntil = keyed?.replayed ? { createdUntil: keyed.started_at } : {};
  const begun = await inParallel(names, async (queue) => ({
    queue,
    view: unwrap(await queueObject(env, queue).operate(queue, { id, action, filter, ...createdUntil }, 0)),
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
