/** The name of a pool, where a worker says which jobs it takes. */
import { readQueueName } from '../envelope/fields';
import { invalidRequest } from '../errors';

/** Before the name of a pool, where a fetch names queues. */
const PREFIX = 'pool:';

export const readPoolName = readQueueName;

/** The pool that a fetch names in place of queues; undefined: none. @throws {ApiError} 400 beside queues */
export function poolNamedBy(queues: readonly unknown[]): string | undefined {
  const pool = queues.find((name) => typeof name === 'string' && name.startsWith(PREFIX)) as string | undefined;
  if (pool === undefined) return undefined;
  if (queues.length > 1) throw invalidRequest('queues', 'queues: a pool must be the only entry.');
  return readPoolName(pool.slice(PREFIX.length), 'queues[0]');
}
