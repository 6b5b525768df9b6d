/** Which queues there are. */
import type { Env } from '../config';
import { directoryObject } from '../rpc/stubs';

/** Names of all queues that exist. */
export async function knownQueues(env: Env): Promise<string[]> {
  return (await directoryObject(env).list()).map(({ name }) => name);
}
