/** Enqueues a validated batch into the queues it names. */

import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { duplicate, type ErrorData, type Outcome, unwrap } from '../job/errors';
import type { NewJob } from '../job/record';
import type { IdempotencyKey } from '../rpc/operations';
import type { EnqueuedJob, EnqueueReceipt } from '../rpc/queue';
import { queueObject } from '../rpc/stubs';
import { findElsewhere } from './locate';

/** A job on its way, and the queue it goes to. */
export interface Entry {
  queue: string;
  job: NewJob;
}

/** The jobs of a batch that go to one queue, with their places in the batch. */
export interface BatchGroup {
  queue: string;
  jobs: NewJob[];
  indexes: number[];
}

/**
 * Sorts the entries of a batch by queue; the order within a queue stays.
 * @param entries what is not given is left out; the others keep their places
 */
export function groupByQueue(entries: readonly (Entry | undefined)[]): BatchGroup[] {
  const groups = new Map<string, BatchGroup>();
  for (const [index, entry] of entries.entries()) {
    if (!entry) continue;
    const { queue, job } = entry;
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
export async function refuseTakenIds(env: Env, entries: readonly Entry[], numbered: boolean): Promise<void> {
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

/** An enqueue that fingerprints are reserved for. */
export interface Reserved {
  /** Id of the batch, and what a direct enqueue stands under. */
  ticket: string;
  /** Runs when every queue has agreed and before the decision; then the enqueue always goes by prepare and decide. */
  beforeDeciding?: () => Promise<void>;
}

/** An enqueue whose answer is remembered, by the queue of its first job. */
export interface Remembered {
  idempotency: IdempotencyKey;
  /** Adds what the entries stand for that no queue was given. */
  complete?: (jobs: readonly EnqueuedJob[]) => EnqueuedJob[];
}

/**
 * Enqueues every group, or none, and gives the jobs back in the order of the batch. One queue takes its jobs in one
 * transaction; several go through prepare, decide, commit (`src/queue/jobs/batch.ts`). An error names the entry's place in
 * the batch.
 */
export async function enqueueAcross(
  env: Env,
  groups: readonly BatchGroup[],
  reserved?: Reserved,
  remembered?: Remembered,
): Promise<Outcome<EnqueuedJob[]>> {
  const [only, ...rest] = groups;
  if (!only) return { ok: true, value: [] };
  // What an entry stands for is known to the queue only where the queue alone decided about it.
  const alone = rest.length === 0 && !reserved?.beforeDeciding && !remembered?.complete;
  if (!alone) return enqueueAtomically(env, groups, reserved, remembered);
  const queue = queueObject(env, only.queue);
  const receipt = await queue.enqueue(only.jobs, reserved?.ticket, remembered?.idempotency);
  return joined(groups, [receipt]);
}

/** The jobs of all queues in the order of the batch, or the first error. */
function joined(groups: readonly BatchGroup[], receipts: readonly Outcome<EnqueueReceipt>[]): Outcome<EnqueuedJob[]> {
  const views: EnqueuedJob[] = [];
  for (const [at, receipt] of receipts.entries()) {
    const { indexes } = groups[at] as BatchGroup;
    if (!receipt.ok) return { ok: false, error: inBatch(receipt.error, indexes) };
    for (const [place, view] of receipt.value.jobs.entries()) views[indexes[place] ?? 0] = view;
  }
  return { ok: true, value: views };
}

/** All or nothing over several queues. If the answer is an error, nothing was enqueued. */
async function enqueueAtomically(
  env: Env,
  groups: readonly BatchGroup[],
  reserved: Reserved | undefined,
  remembered: Remembered | undefined,
): Promise<Outcome<EnqueuedJob[]>> {
  const batch = reserved?.ticket ?? uuidv7();
  const coordinator = (groups[0] as BatchGroup).queue;
  const others = groups.slice(1).map(({ queue }) => queue);
  const giveUp = () => giveUpBatch(env, batch, coordinator, others);
  let receipts: Outcome<EnqueueReceipt>[];
  try {
    receipts = await prepareGroups(env, groups, batch, coordinator);
  } catch (error) {
    await giveUp();
    throw error;
  }
  const views = joined(groups, receipts);
  if (!views.ok) {
    await giveUp();
    return views;
  }
  try {
    await reserved?.beforeDeciding?.();
  } catch (error) {
    await giveUp();
    throw error;
  }
  const answer = remembered && {
    idempotency: remembered.idempotency,
    receipt: { jobs: remembered.complete?.(views.value) ?? views.value },
  };
  const earlier = unwrap(await queueObject(env, coordinator).decideBatch(batch, others, answer));
  if (earlier) {
    // The same request was faster.
    await giveUp();
    return { ok: true, value: earlier.jobs };
  }
  await tellCommitted(env, batch, coordinator, others);
  return views;
}

/**
 * Has every queue hold its share. A queue that does not exist only looks at it, and is created when no other has refused
 * its own; if one refuses then, which takes somebody who was faster, an empty queue may be left.
 * @returns the receipt of each group; when one has refused, those of queues that do not exist are empty
 */
async function prepareGroups(
  env: Env,
  groups: readonly BatchGroup[],
  batch: string,
  coordinator: string,
): Promise<Outcome<EnqueueReceipt>[]> {
  const held = await inParallel(groups, ({ queue, jobs }) =>
    queueObject(env, queue).prepareBatchIfExists(batch, coordinator, jobs),
  );
  const refused = held.some(({ ok }) => !ok);
  return inParallel([...held.entries()], async ([at, receipt]) => {
    if (!receipt.ok) return receipt;
    if (receipt.value !== null) return { ok: true as const, value: receipt.value };
    if (refused) return { ok: true as const, value: { jobs: [] } };
    const { queue, jobs } = groups[at] as BatchGroup;
    return queueObject(env, queue).prepareBatch(batch, coordinator, jobs);
  });
}

/** Gives a batch up that may have been prepared. Creates no queue. */
export async function giveUpBatch(
  env: Env,
  batch: string,
  coordinator: string,
  others: readonly string[],
): Promise<void> {
  // The coordinator first: once it has given up, no queue can be told to commit. What cannot be told asks later.
  await queueObject(env, coordinator).giveUpBatch(batch);
  await Promise.allSettled(others.map((queue) => queueObject(env, queue).abortBatch(batch)));
}

/** The coordinator has decided for the batch. Whoever is not reached now is told by it. */
export async function tellCommitted(
  env: Env,
  batch: string,
  coordinator: string,
  others: readonly string[],
): Promise<void> {
  const told = await Promise.allSettled(
    others.map(async (queue) => unwrap(await queueObject(env, queue).commitBatch(batch))),
  );
  const confirmed = others.filter((_, at) => told[at]?.status === 'fulfilled');
  if (confirmed.length === 0) return;
  await queueObject(env, coordinator)
    .confirmBatch(batch, confirmed)
    .catch(() => undefined);
}

/** An error of one queue, its index turned from the place in the group into the place in the batch. */
function inBatch(error: ErrorData, indexes: readonly number[]): ErrorData {
  const at = error.details?.index ?? (indexes.length === 1 ? 0 : undefined);
  if (typeof at !== 'number') return error;
  return { ...error, details: { ...error.details, index: indexes[at] } };
}
