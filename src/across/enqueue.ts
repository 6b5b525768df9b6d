/** Enqueues validated jobs, into any number of queues: all of them or none. */
import type { Env } from '../config';
import { unwrap, withoutIndex } from '../job/errors';
import type { EnqueuedJob, IdempotencyKey } from '../rpc/receipts';
import {
  type BatchEntry,
  enqueueAcross,
  groupByQueue,
  type Here,
  refuseTakenIds,
  refuseTooManyQueues,
  takerOf,
} from './batch';
import { withBodies } from './bodies';
import { refuseUnknownOptions } from './known-options';
import { untilDecided } from './retry';
import { underSchemas } from './schemas';
import { enqueueReserved, globalPolicy } from './unique';

export interface Enqueuing {
  /** A repetition under this key gets the first answer. */
  idempotency?: IdempotencyKey | undefined;
  /** Absent: this runs in no queue's object. */
  here?: Here | undefined;
}

/**
 * Enqueues all entries (at least one), or none. @returns one job for each entry, in order; `replayed`: those of the
 * first answer @throws {ApiError} with `details.index`; then nothing was enqueued
 */
export async function enqueueAll(
  env: Env,
  entries: readonly BatchEntry[],
  request: Enqueuing = {},
): Promise<{ jobs: EnqueuedJob[]; replayed: boolean }> {
  refuseTooManyQueues(entries);
  const earlier = await recallJobs(env, entries, request);
  return { jobs: earlier ?? (await enqueueNew(env, entries, request)), replayed: earlier !== undefined };
}

/** {@link enqueueAll} for one entry, whose errors name no place. */
export async function enqueueOne(
  env: Env,
  entry: BatchEntry,
  idempotency?: IdempotencyKey,
): Promise<{ job: EnqueuedJob; replayed: boolean }> {
  try {
    const { jobs, replayed } = await enqueueAll(env, [entry], { idempotency });
    return { job: jobs[0] as EnqueuedJob, replayed };
  } catch (error) {
    throw withoutIndex(error);
  }
}

/** {@link enqueueAll} for a request that has no earlier answer; waits for a batch that decides about its jobs. */
export async function enqueueNew(
  env: Env,
  entries: readonly BatchEntry[],
  { idempotency, here }: Enqueuing = {},
): Promise<EnqueuedJob[]> {
  await refuseTakenIds(env, entries);
  await refuseUnknownOptions(env, entries);
  const isGlobal = entries.some((entry) => globalPolicy(entry) !== undefined);
  const jobs = await underSchemas(env, entries, (checked) =>
    untilDecided(() =>
      isGlobal
        ? enqueueReserved(env, checked, idempotency)
        : enqueueAcross(env, groupByQueue(checked), { idempotency, here }),
    ),
  );
  return withBodies(entries.map(jobOf), jobs);
}

/** The earlier answer under this key, from the first entry's queue. @throws {ApiError} 409 for another request */
export async function recallJobs(
  env: Env,
  entries: readonly BatchEntry[],
  { idempotency, here }: Enqueuing,
): Promise<EnqueuedJob[] | undefined> {
  const [first] = entries;
  if (!idempotency || !first) return undefined;
  const earlier = unwrap(await takerOf(env, first.queue, here).recall(idempotency));
  return earlier ? withBodies(entries.map(jobOf), earlier.jobs) : undefined;
}

const jobOf = ({ job }: BatchEntry) => job;
