/** Acts on jobs of several queues: on all or on none, whatever dies in the middle (`src/queue/operations/across.ts`). */
import { v7 as uuidv7 } from 'uuid';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { unwrap } from '../job/errors';
import type { BulkAction, BulkAnswer, IdempotencyKey } from '../rpc/operations';
import { queueObject } from '../rpc/stubs';
import { giveUpBatch, tellCommitted } from './batch';

/** The jobs of one queue. */
export interface BulkShare {
  queue: string;
  ids: string[];
}

/**
 * Acts on all jobs or on none.
 * @param shares the first one's queue decides
 * @param once the answer is remembered under this key in the transaction that decides, and given again
 * @returns not applied: nothing was changed, and the items say what is in the way
 * @throws {ApiError} 503 while another operation has one of the jobs, or when it took too long
 */
export async function actAcross(
  env: Env,
  action: BulkAction,
  shares: readonly [BulkShare, ...BulkShare[]],
  once?: IdempotencyKey,
): Promise<BulkAnswer> {
  const batch = uuidv7();
  const coordinator = shares[0].queue;
  const others = shares.slice(1).map(({ queue }) => queue);
  let answers: BulkAnswer[];
  try {
    const outcomes = await inParallel(shares, ({ queue, ids }) =>
      queueObject(env, queue).prepareBulk(batch, coordinator, { action, ids }),
    );
    answers = outcomes.map(unwrap);
  } catch (error) {
    await giveUpBatch(env, batch, coordinator, others);
    throw error;
  }
  const items = answers.flatMap((answer) => answer.items);
  if (!answers.every(({ applied }) => applied)) {
    await giveUpBatch(env, batch, coordinator, others);
    return { items, applied: false };
  }
  const answer: BulkAnswer = { items, applied: true };
  const remembered = once && { idempotency: once, receipt: answer };
  const earlier = unwrap(await queueObject(env, coordinator).decideBulk(batch, others, remembered));
  if (earlier) {
    // The same request was faster.
    await giveUpBatch(env, batch, coordinator, others);
    return earlier;
  }
  await tellCommitted(env, batch, coordinator, others);
  return answer;
}
