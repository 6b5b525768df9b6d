/** All or none under an idempotency key: which queue decides, and its earlier answer to the same request. */
import type { Env } from '../config';
import { unavailable, unwrap } from '../job/errors';
import type { KeyedOperation } from '../rpc/directory';
import type { BulkAnswer } from '../rpc/operations';
import type { IdempotencyKey } from '../rpc/receipts';
import { directoryObject, queueObject } from '../rpc/stubs';

export interface Keyed {
  idempotency: IdempotencyKey;
  operation: KeyedOperation;
}

/** No key of a client has a line break, so none equals one of these. */
export function onceFor({ id }: KeyedOperation, step: string): IdempotencyKey {
  return { key: `bulk\n${id}\n${step}`, hash: '' };
}

/** All senders of the same request must name the same queue to decide, or two of them could. */
export async function coordinatorOf(env: Env, { idempotency, operation }: Keyed, first: string): Promise<string> {
  const queue = await directoryObject(env).coordinateOperation(idempotency.key, operation.id, first);
  if (queue === null) throw unavailable('The same request was just rejected; try again.');
  operation.coordinator = queue;
  return queue;
}

export async function recall(env: Env, keyed: Keyed | undefined): Promise<BulkAnswer | null> {
  const coordinator = keyed?.operation.coordinator;
  if (keyed === undefined || coordinator === undefined) return null;
  return unwrap(await queueObject(env, coordinator).recall<BulkAnswer>(onceFor(keyed.operation, 'all')));
}

/** The answer to a request: the earlier one if a refused request is its duplicate; otherwise the key is freed. */
export async function earlierIfRefused(env: Env, answer: BulkAnswer, keyed: Keyed | undefined): Promise<BulkAnswer> {
  if (answer.applied || !keyed) return answer;
  const { idempotency, operation } = keyed;
  const current = unwrap(await directoryObject(env).beginOperation(idempotency, operation.id));
  const earlier = await recall(env, { idempotency, operation: current });
  if (earlier) return earlier;
  await directoryObject(env).forgetOperation(idempotency.key, operation.id);
  return answer;
}
