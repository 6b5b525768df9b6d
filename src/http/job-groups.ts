/** From many job ids to the queues to ask about each. */
import { queueOfRoute } from '../across/locate';
import { knownQueues } from '../across/queues';
import type { Env } from '../config';
import { inParallel } from '../durable/parallel';
import { isUuidV7 } from '../job/ids';

/**
 * Which queues to ask for which of these ids. An id that carries a route is asked for in the queue it names; one chosen by
 * a client may be anywhere, so every queue is asked.
 * @param queues where to look for ids without a route; absent: all queues
 */
export async function groupByHome(env: Env, ids: readonly string[], queues?: string[]): Promise<Map<string, string[]>> {
  const byQueue = new Map<string, string[]>();
  const add = (queue: string, id: string) => {
    const group = byQueue.get(queue);
    if (group) group.push(id);
    else byQueue.set(queue, [id]);
  };
  const valid = [...new Set(ids)].filter(isUuidV7);
  const homes = await inParallel(valid, (id) => queueOfRoute(env, id));
  const homeless: string[] = [];
  for (const [index, id] of valid.entries()) {
    const home = homes[index];
    if (home === undefined) homeless.push(id);
    else add(home, id);
  }
  if (homeless.length > 0) {
    for (const queue of queues ?? (await knownQueues(env))) for (const id of homeless) add(queue, id);
  }
  return byQueue;
}
