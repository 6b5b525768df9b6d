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
