/** Enqueues a validated batch into the queues it names. */
import type { Env } from '../config';
import { duplicate, type ErrorData, type Outcome } from '../job/errors';
import type { JobView, NewJob } from '../job/record';
import { findElsewhere } from './locate';
import { inParallel, queueObject } from './objects';

/** The jobs of a batch that go to one queue, with their places in the batch. */
export interface BatchGroup {
  queue: string;
  jobs: NewJob[];
  indexes: number[];
}

/** Sorts the entries of a batch by queue; the order within a queue stays. */
export function groupByQueue(entries: readonly { queue: string; job: NewJob }[]): BatchGroup[] {
  const groups = new Map<string, BatchGroup>();
  for (const [index, { queue, job }] of entries.entries()) {
    let group = groups.get(queue);
    if (group === undefined) {
      group = { queue, jobs: [], indexes: [] };
      groups.set(queue, group);
    }
    group.jobs.push(job);
    group.indexes.push(index);
  }
  return [...groups.values()];
}

/**
 * Refuses client-chosen ids that another queue has, or that the batch itself uses twice. The queue an entry goes to
 * checks its own jobs, in the transaction that writes.
 * @param numbered name the entry's place in the error
 * @throws {ApiError} 409 `duplicate`
 */
export async function refuseTakenIds(
  env: Env,
  entries: readonly { queue: string; job: NewJob }[],
  numbered: boolean,
): Promise<void> {
  const named = entries.flatMap(({ queue, job }, index) =>
    job.id === undefined ? [] : [{ queue, id: job.id, index }],
  );
  const seen = new Set<string>();
  for (const { id, index } of named) {
    if (seen.has(id)) throw duplicate(id, 'available', { index });
    seen.add(id);
  }
  const found = await inParallel(named, ({ id, queue }) => findElsewhere(env, id, queue));
  for (const [at, { id, index }] of named.entries()) {
    const other = found[at];
    if (other) throw duplicate(id, other.record.state, numbered ? { index } : {});
  }
}

/**
 * Enqueues every group, one transaction per queue, and gives the jobs back in the order of the batch. A group that is
 * refused stops the rest; its error names the entry's place in the batch.
 */
export async function enqueueAcross(env: Env, groups: readonly BatchGroup[]): Promise<Outcome<JobView[]>> {
  const views: JobView[] = [];
  for (const { queue, jobs, indexes } of groups) {
    const outcome = await queueObject(env, queue).enqueue(queue, jobs);
    if (!outcome.ok) return { ok: false, error: inBatch(outcome.error, indexes) };
    for (const [at, view] of outcome.value.jobs.entries()) views[indexes[at] ?? 0] = view;
  }
  return { ok: true, value: views };
}

/** An error of one queue, its index turned from the place in the group into the place in the batch. */
function inBatch(error: ErrorData, indexes: readonly number[]): ErrorData {
  const at = error.details?.index ?? (indexes.length === 1 ? 0 : undefined);
  if (typeof at !== 'number') return error;
  return { ...error, details: { ...error.details, index: indexes[at] } };
}
