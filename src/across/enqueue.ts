/** Enqueues validated jobs, into any number of queues: all of them or none. */
import type { Env } from '../config';
import { eventualOutcomeOf, type Outcome, unwrap } from '../job/errors';
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
import { untilDecided } from './retry';
import { underSchemas } from './schemas';
import { enqueueReserved, globalPolicy } from './unique';

/**
 * Enqueues all entries, or none. Waits for a batch under way that decides about them.
 * @param entries at least one
 * @param numbered name the entry's place in errors
 * @returns one job for each entry, in order
 */
export async function enqueueEntries(
  env: Env,
  entries: readonly BatchEntry[],
  numbered: boolean,
  idempotency?: IdempotencyKey,
  here?: Here,
): Promise<Outcome<EnqueuedJob[]>> {
  const isGlobal = entries.some((entry) => globalPolicy(entry) !== undefined);
  const outcome = await eventualOutcomeOf(async () => {
    const jobs = await underSchemas(env, entries, (checked) =>
      untilDecided(async () =>
        isGlobal
          ? enqueueReserved(env, checked, idempotency)
          : unwrap(await enqueueAcross(env, groupByQueue(checked), { idempotency, here })),
      ),
    );
    return withBodies(entries.map(jobOf), jobs);
  });
  if (outcome.ok || numbered) return outcome;
  const { index: _, ...details } = outcome.error.details ?? {};
  return { ok: false, error: { ...outcome.error, details } };
}

/**
 * Enqueues all entries, or none; a request that is repeated under its key gets the first answer.
 * @param numbered name the entry's place in errors
 * @param here absent: this runs in no queue's object
 * @returns one job for each entry, in order; `replayed`: the answer is that of an earlier request
 * @throws {ApiError} then nothing was enqueued
 */
export async function enqueueOnce(
  env: Env,
  entries: readonly BatchEntry[],
  numbered: boolean,
  idempotency?: IdempotencyKey,
  here?: Here,
): Promise<{ jobs: EnqueuedJob[]; replayed: boolean }> {
  const { outcome, replayed } = await enqueueAll(env, entries, numbered, idempotency, here);
  return { jobs: unwrap(outcome), replayed };
}

/**
 * The same for callers that need an outcome for each entry.
 * @throws {ApiError} an error of the whole request: too many queues, or a key that was used for another one
 */
export async function enqueueAll(
  env: Env,
  entries: readonly BatchEntry[],
  numbered: boolean,
  idempotency?: IdempotencyKey,
  here?: Here,
): Promise<{ outcome: Outcome<EnqueuedJob[]>; replayed: boolean }> {
  refuseTooManyQueues(entries);
  const earlier = await recallJobs(env, entries, idempotency, here);
  if (earlier) return { outcome: { ok: true, value: earlier }, replayed: true };
  const outcome = await eventualOutcomeOf(async () => {
    await refuseTakenIds(env, entries, numbered);
    return unwrap(await enqueueEntries(env, entries, numbered, idempotency, here));
  });
  return { outcome, replayed: false };
}

/**
 * The earlier answer under this key, from the queue of the first entry.
 * @throws {ApiError} 409 when that was another request
 */
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
