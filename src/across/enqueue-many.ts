/** Enqueues many jobs: all or none, or each that can be accepted. Every entry has its own outcome. */
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { ApiError, duplicate, type ErrorData, eventualOutcomeOf, type Outcome, unwrap, valuesOf } from '../job/errors';
import { pack } from '../job/message';
import { type EnqueuedJob, type IdempotencyKey, unpackOutcomes } from '../rpc/receipts';
import { queueObject } from '../rpc/stubs';
import { haveSchemasChanged } from '../schemas/misfit';
import { type BatchEntry, refuseTooManyQueues, reserveIds } from './batch';
import { withBodies } from './bodies';
import { enqueueNew, enqueueOne, recallJobs } from './enqueue';
import { refuseUnknownOptions } from './known-options';
import { underSchemas } from './schemas';
import { globalPolicy } from './unique';

export interface Enqueued {
  /** One for each entry, in order. */
  outcomes: Outcome<EnqueuedJob>[];
  /** The answer is that of an earlier request. */
  replayed: boolean;
}

export const ROLLED_BACK: ErrorData = {
  status: 422,
  code: 'conflict',
  type: 'rolled_back',
  message: 'Another entry was rejected, so none was enqueued.',
  retryable: true,
};

/** Enqueues all entries or none. @param entries an error: already refused @throws {ApiError} of the whole request */
export async function enqueueAllOrNone(
  env: Env,
  entries: readonly Outcome<BatchEntry>[],
  idempotency: IdempotencyKey | undefined,
): Promise<Enqueued> {
  const accepted = valuesOf(entries);
  refuseTooManyQueues(accepted);
  if (accepted.length < entries.length) return { outcomes: rolledBack(entries), replayed: false };
  const earlier = await recallJobs(env, accepted, { idempotency });
  const outcome = await eventualOutcomeOf(async () => earlier ?? enqueueNew(env, accepted, { idempotency }));
  if (outcome.ok) return { outcomes: outcome.value.map((value) => ({ ok: true, value })), replayed: !!earlier };
  const index = outcome.error.details?.index ?? (accepted.length === 1 ? 0 : undefined);
  // An error that no entry has caused belongs to the whole request.
  if (typeof index !== 'number') throw new ApiError(outcome.error);
  return { outcomes: rolledBack(accepted.map((_, at) => (at === index ? outcome : undefined))), replayed: false };
}

/** Nothing was enqueued: each entry fails for its own reason, or because of the others. */
const rolledBack = (entries: readonly (Outcome<unknown> | undefined)[]): Outcome<EnqueuedJob>[] =>
  entries.map((entry) => ({ ok: false, error: entry && !entry.ok ? entry.error : ROLLED_BACK }));

/**
 * Enqueues each entry that can be accepted. @param entries an error: already refused
 * @param divided they are parts of a message, none of which may take the place of another
 * @throws {ApiError} 409 when the key was used for another request, 413 for too many queues; then nothing was enqueued
 */
export async function enqueueEach(
  env: Env,
  entries: readonly Outcome<BatchEntry>[],
  idempotency: IdempotencyKey | undefined,
  divided = false,
): Promise<Enqueued> {
  refuseTooManyQueues(valuesOf(entries));
  const outcomes: Outcome<EnqueuedJob>[] = [];
  const accepted = (await refuseTaken(env, entries)).flatMap((outcome, index) => {
    if (outcome.ok) return [{ ...outcome.value, index }];
    outcomes[index] = outcome;
    return [];
  });
  // Uniqueness across queues is decided one by one; a single queue's transaction cannot include it.
  const together = accepted.filter((entry) => !globalPolicy(entry));
  await refuseUnknownOptions(env, together);
  const groups = [...Map.groupBy(together, ({ queue }) => queue)];
  if (idempotency) {
    const earlier = await inParallel(groups, ([queue]) => queueObject(env, queue).recall(idempotency));
    for (const answer of earlier) unwrap(answer);
  }
  let replayed = false;
  await inParallel(groups, async ([queue, group]) => {
    const receipt = await underSchemas(env, group, async (checked) => {
      const jobs = pack(checked.map(({ job }) => job));
      const answer = await queueObject(env, queue).enqueueEach(jobs, idempotency, divided);
      if (!answer.ok && haveSchemasChanged(answer.error)) throw new ApiError(answer.error);
      return answer;
    });
    if (!receipt.ok && receipt.error.details?.idempotency_key !== undefined) throw new ApiError(receipt.error);
    const each = receipt.ok ? unpackOutcomes(receipt.value) : undefined;
    if (each?.replayed) replayed = true;
    const own = group.flatMap(({ job }, at) => (each?.outcomes[at]?.ok ? [job] : []));
    withBodies(own, valuesOf(each?.outcomes ?? []));
    for (const [at, { index }] of group.entries()) outcomes[index] = each?.outcomes[at] ?? (receipt as Outcome<never>);
  });
  for (const entry of accepted.filter(globalPolicy)) {
    const { index } = entry;
    outcomes[index] = await enqueueAlone(env, entry, idempotency && keyOfEntry(idempotency, index));
  }
  return { outcomes, replayed };
}

/** Refuses entries whose id another queue has, or an earlier entry that goes to another queue. */
async function refuseTaken(env: Env, entries: readonly Outcome<BatchEntry>[]): Promise<Outcome<BatchEntry>[]> {
  const taken = await reserveIds(env, valuesOf(entries));
  const queueOf = new Map<string, string>();
  return entries.map((entry, index) => {
    const id = entry.ok ? entry.value.job.id : undefined;
    if (!entry.ok || id === undefined) return entry;
    const { queue } = entry.value;
    const first = queueOf.get(id) ?? queue;
    queueOf.set(id, first);
    const state = taken.get(id) ?? (first === queue ? undefined : 'available');
    return state === undefined ? entry : { ok: false, error: duplicate(id, state, { index }).data };
  });
}

async function enqueueAlone(
  env: Env,
  entry: BatchEntry,
  idempotency: IdempotencyKey | undefined,
): Promise<Outcome<EnqueuedJob>> {
  const [earlier] = (await recallJobs(env, [entry], { idempotency })) ?? [];
  if (earlier) return { ok: true, value: earlier };
  return eventualOutcomeOf(async () => (await enqueueOne(env, entry, idempotency)).job);
}

/** No key of a client has a line break, so none equals one of these. */
function keyOfEntry({ key, hash }: IdempotencyKey, index: number): IdempotencyKey {
  return { key: `${key}\n${index}`, hash };
}
