/** Which queues there are. */
import type { Env } from '../config';
import { directoryObject } from '../rpc/stubs';

/** Names of all queues that exist. */
export async function knownQueues(env: Env): Promise<string[]> {
  return (await directoryObject(env).list()).map(({ name }) => name);
}

/** The queues that a selection names, each once; all queues when it names none. */
export async function queuesOf(env: Env, { queues }: { queues?: readonly string[] }): Promise<string[]> {
  return [...new Set(queues ?? (await knownQueues(env)))];
}

/** The items by the queue that each belongs to; those that belong to none are left out. */
export function byQueue<T>(items: Iterable<T>, queueOf: (item: T) => string | undefined): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const queue = queueOf(item);
    if (queue === undefined) continue;
    const group = groups.get(queue);
    if (group) group.push(item);
    else groups.set(queue, [item]);
  }
  return groups;
}
