/** The names in a path, and the objects behind them. */
import { withJob } from '../../across/locate';
import { isQueueName, QUEUE_RULE } from '../../job/envelope/names';
import { invalidRequest, type Outcome, unwrap } from '../../job/errors';
import type { QueueApi } from '../../rpc/queue';
import type { AppContext } from '../context';

export const pathParam = (c: AppContext, name: string): string => c.req.param(name) ?? '';

/** The queue that `:name` names. @throws {ApiError} 400 when it cannot be the name of one */
export function queueNameIn(c: AppContext): string {
  const name = pathParam(c, 'name');
  if (isQueueName(name)) return name;
  throw invalidRequest('name', `The queue name ${QUEUE_RULE}.`);
}

/** Calls the queue that has a job. @param id default: that of `:id` @throws {ApiError} as the queue answers; 404 */
export const callJob = async <T>(
  c: AppContext,
  call: (queue: QueueApi, id: string, name: string) => Promise<Outcome<T>>,
  id: string = pathParam(c, 'id'),
): Promise<T> => unwrap(await withJob(c.env, id, (queue, name) => call(queue, id, name)));

/** The address of a queue that is one part of an application, or behind a proxy that declares it. */
const PREFIX = /^(\/[\w.~%-]+)+$/;

/** The prefix of every path of this server, seen from outside; empty: none. */
export function mountPrefix(c: AppContext): string {
  const prefix = c.req.header('X-Forwarded-Prefix') ?? '';
  return PREFIX.test(prefix) ? prefix : '';
}
