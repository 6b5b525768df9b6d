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
  /** Jobs in any queue that end between the decision and the commits: not for a batch that is refused. */
  replaced?: readonly IdPlace[] | undefined;
  /** The answer is remembered under this key in the transaction that decides. */
  once?: IdempotencyKey | undefined;
}

/**
 * Prepares, decides and commits; gives up when a step fails before. @returns the answer, or the key's earlier one
 * @throws {ApiError} what a step throws; 503 when it took too long; 409 for a key of another request; nothing was
 * changed. 503 also when it is decided, and a job that it replaces has not ended yet
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
  if (decision.ok && decision.value === null) return answer;
  // The decision was refused, or the same request was faster.
  await giveUp(env, participants);
  return unwrap(decision) as T;
}

/** Abandons a batch that may have been prepared, unless it is decided. Creates no queue. */
async function giveUp(env: Env, { batch, coordinator, others }: Participants): Promise<void> {
  // The coordinator first: once it has abandoned the batch, no queue can commit. An unreachable queue asks later.
  const given = await queueObject(env, coordinator).giveUpBatch(batch);
  if (!given.ok || given.value === 'committed') return;
  await Promise.allSettled(others.map((queue) => queueObject(env, queue).abortBatch(batch)));
}
