/** How many queues a key may create in a day: names are unbounded, and each costs an object and a row. */
import { type Env, readConfig } from '../config';
import { onEmptied } from '../durable/memory';
import { eventualOutcomeOf, unwrap } from '../job/errors';
import { directoryObject } from '../rpc/stubs';

/** Names that are remembered; beyond that all are forgotten, and asked about again. */
const MAX_NAMES = 10_000;

/** Queues that exist, or that the directory has counted. */
const seen = new Set<string>();
onEmptied(() => seen.clear());

/** Call before a request that may create these queues. @param by the key, if bounded @throws {ApiError} 429 */
export async function admitQueues(
  env: Env,
  by: string | undefined,
  places: readonly { queue: string }[],
): Promise<void> {
  if (by === undefined) return;
  const unseen = [...new Set(places.map(({ queue }) => queue))].filter((queue) => !seen.has(queue));
  if (unseen.length === 0) return;
  const most = readConfig(env).maxNewQueues;
  const outcome = await eventualOutcomeOf(async () => unwrap(await directoryObject(env).admitQueues(by, unseen, most)));
  // While the directory cannot be asked, accepting jobs matters more than this bound.
  if (!outcome.ok && outcome.error.status === 429) unwrap(outcome);
  if (!outcome.ok) return;
  if (seen.size + unseen.length > MAX_NAMES) seen.clear();
  for (const queue of unseen) seen.add(queue);
}
