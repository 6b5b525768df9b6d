/** What happened lately, from the memory of the queues and of the directory. */
import type { Env } from '../config';
import type { QueueEvent } from '../durable/event-log';
import { inParallel } from '../durable/parallel';
import type { EventsRequest } from '../rpc/queue';
import { directoryObject, queueObject } from '../rpc/stubs';
import { knownQueues } from './queues';

/** Events of these queues in the order of their ids; absent: of all queues, and of the workers, which belong to none. */
export async function recentEvents(
  env: Env,
  request: EventsRequest,
  queues?: readonly string[],
): Promise<QueueEvent[]> {
  const names = queues ?? (await knownQueues(env));
  const answers = await inParallel(names, (queue) => queueObject(env, queue).events(request));
  if (queues === undefined) answers.push(await directoryObject(env).workerEvents(request));
  return answers.flat().sort((a, b) => (a.id < b.id ? -1 : 1));
}
