/** Queue names in paths. */
import { isQueueName, QUEUE_RULE } from '../../job/envelope/names';
import { invalidRequest } from '../../job/errors';

/** A queue name from a path. @throws {ApiError} 400 when it cannot be one */
export function queueNameIn(path: string): string {
  if (isQueueName(path)) return path;
  throw invalidRequest('name', `The queue name ${QUEUE_RULE}.`);
}
