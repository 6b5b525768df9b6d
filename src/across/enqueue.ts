/** Enqueues validated jobs, into any number of queues: all of them or none. */
import type { Env } from '../config';
import { eventualOutcomeOf, type Outcome, unwrap, withoutIndex } from '../job/errors';
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

/**
 * Enqueues all entries, or none; waits for a batch that decides about them. @param entries at least one
 * @param numbered name the entry's place in errors @returns one job for each entry, in order
 * @throws {ApiError} then nothing was enqueued
 */
export async function enqueueEntries(
  env: Env,
  entries: readonly BatchEntry[],
  numbered: boolean,
  idempotency?: IdempotencyKey,
  here?: Here,
): Promise<EnqueuedJob[]> {
  await refuseUnknownOptions(env, entries);
  const isGlobal = entries.some((entry) => globalPolicy(entry) !== undefined);
  try {
    const jobs = await underSchemas(env, entries, (checked) =>
      untilDecided(() =>
        isGlobal
          ? enqueueReserved(env, checked, idempotency)
          : enqueueAcross(env, groupByQueue(checked), { idempotency, here }),
      ),
    );
    return withBodies(entries.map(jobOf), jobs);
  } catch (error) {
    throw numbered ? error : withoutIndex(error);
  }
}

/** {@link enqueueEntries} for one entry. @returns its job, or why there is none */
export function enqueueEntry(env: Env, entry: BatchEntry, idempotency?: IdempotencyKey): Promise<Outcome<EnqueuedJob>> {
  return eventualOutcomeOf(async () => {
    const [job] = await enqueueEntries(env, [entry], false, idempotency);
    return job as EnqueuedJob;
  });
}

/** As {@link enqueueEntries}, for client-chosen ids. @throws {ApiError} 409 `duplicate`; then nothing was enqueued */
export async function enqueueNew(
  env: Env,
  entries: readonly BatchEntry[],
  numbered: boolean,
  idempotency?: IdempotencyKey,
  here?: Here,
): Promise<EnqueuedJob[]> {
  await refuseTakenIds(env, entries, numbered);
  return enqueueEntries(env, entries, numbered, idempotency, here);
}

/**
 * Enqueues all entries, or none; a repetition under its key gets the first answer (`replayed`).
 * @param numbered name the entry's place in errors @param here absent: this runs in no queue's object
 * @throws {ApiError} then nothing was enqueued
 */
export async function enqueueOnce(
  env: Env,
  entries: readonly BatchEntry[],
  numbered: boolean,
  idempotency?: IdempotencyKey,
  here?: Here,
): Promise<{ jobs: EnqueuedJob[]; replayed: boolean }> {
  refuseTooManyQueues(entries);
  const earlier = await recallJobs(env, entries, idempotency, here);
  if (earlier) return { jobs: earlier, replayed: true };
  return { jobs: await enqueueNew(env, entries, numbered, idempotency, here), replayed: false };
}

/** The earlier answer under this key, from the first entry's queue. @throws {ApiError} 409 for another request */
export async function recallJobs(
  env: Env,
  entries: readonly BatchEntry[],
  idempotency: IdempotencyKey | undefined,
  here?: Here,
): Promise<EnqueuedJob[] | undefined> {
  const [first] = entries;
  if (!idempotency || !first) return undefined;
  const earlier = unwrap(await takerOf(env, first.queue, here).recall(idempotency));
  return earlier ? withBodies(entries.map(jobOf), earlier.jobs) : undefined;
}

const jobOf = ({ job }: BatchEntry) => job;
