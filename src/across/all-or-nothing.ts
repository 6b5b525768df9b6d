/**
 * All or nothing over several queues:
 *
 *     prepare in every queue ──▶ decide in one of them (the coordinator) ──▶ commit in the others
 *
 * Queues define both steps (`src/queue/features/shares/batch.ts`). If this driver dies, prepared queues ask the
 * coordinator, which repeats its decision until all have it.
 */
import type { Env } from '../config';
import { unwrap } from '../job/errors';
import type { IdPlace } from '../rpc/ids';
import type { IdempotencyKey } from '../rpc/receipts';
import { queueObject } from '../rpc/stubs';

export interface Participants {
  /** UUIDv7. */
  batch: string;
  coordinator: string;
  others: readonly string[];
}

export interface Prepared<T> {
  agreed: boolean;
  /** The answer once it is decided; else the obstacles. */
  answer: T;
}

export interface BatchSteps<T> {
  prepare: () => Promise<Prepared<T>>;
  /** Jobs that the decision cancels, in any queue: nothing is cancelled for a batch that is refused. */
  replaced?: readonly IdPlace[] | undefined;
  /** The answer is remembered under this key in the transaction that decides. */
  once?: IdempotencyKey | undefined;
}

/**
 * Prepares, decides and commits; gives up when a step fails before. @returns the answer, or the key's earlier one
 * @throws {ApiError} what a step throws; 503 when it took too long; 409 for a key of another request; nothing was
 * changed
 */
export async function allOrNothing<T>(env: Env, participants: Participants, steps: BatchSteps<T>): Promise<T> {
  const { batch, coordinator, others } = participants;
  const { prepare, replaced = [], once } = steps;
  let prepared: Prepared<T>;
  try {
    prepared = await prepare();
  } catch (error) {
    await giveUp(env, participants);
    throw error;
  }
  const { agreed, answer } = prepared;
  if (!agreed) {
    await giveUp(env, participants);
    return answer;
  }
  const remembered = once && { idempotency: once, receipt: answer };
  const decision = await queueObject(env, coordinator).decideBatch<T>(batch, [...others], remembered, [...replaced]);
  if (decision.ok && decision.value === null) {
    await cancelNow(env, replaced);
    return answer;
  }
  // The decision was refused, or the same request was faster.
  await giveUp(env, participants);
  return unwrap(decision) as T;
}

/** The answer need not wait for the messages of the decision. What fails here is left to them. */
async function cancelNow(env: Env, jobs: readonly IdPlace[]): Promise<void> {
  const queues = Map.groupBy(jobs, ({ queue }) => queue);
  await Promise.allSettled(
    [...queues].map(([queue, at]) => queueObject(env, queue).cancelSteps(at.map(({ id }) => id))),
  );
}

/** Abandons a batch that may have been prepared. Creates no queue. */
async function giveUp(env: Env, { batch, coordinator, others }: Participants): Promise<void> {
  // The coordinator first: once it has abandoned the batch, no queue can commit. An unreachable queue asks later.
  await queueObject(env, coordinator).giveUpBatch(batch);
  await Promise.allSettled(others.map((queue) => queueObject(env, queue).abortBatch(batch)));
}
