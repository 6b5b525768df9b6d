/**
 * The Durable Objects seen through their interfaces. This folder finds the object that a request, or a job, is for; both the
 * routes and the queue objects use it.
 */
import type { Env } from '../config';
import type { DirectoryApi } from '../directory/api';
import { isQueueName, QUEUE_RULE } from '../job/envelope/names';
import { invalidRequest } from '../job/errors';
import type { QueueApi } from '../queue/api';

/** The object of one queue. Asking for it creates nothing. */
export function queueObject(env: Env, name: string): QueueApi {
  return env.QUEUES.getByName(name) as unknown as QueueApi;
}

/** The object that knows which queues exist. */
export function directoryObject(env: Env): DirectoryApi {
  return env.DIRECTORY.getByName('directory') as unknown as DirectoryApi;
}

/** Names of all queues that exist. */
export async function knownQueues(env: Env): Promise<string[]> {
  return (await directoryObject(env).list()).map(({ name }) => name);
}

/** A queue name from a path. @throws {ApiError} 400 when it cannot be one */
export function queueNameIn(path: string): string {
  if (isQueueName(path)) return path;
  throw invalidRequest('name', `The queue name ${QUEUE_RULE}.`);
}

/** Runs `task` over `items`, at most `width` at a time; results keep the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  task: (item: T) => Promise<R>,
  width: number = 20,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += width) {
    results.push(...(await Promise.all(items.slice(at, at + width).map(task))));
  }
  return results;
}
