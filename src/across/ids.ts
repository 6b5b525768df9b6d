/** Ids that do not name their job's queue: shards of the directory note them before the job enters a queue. */
import type { Env } from '../config';
import { onEmptied } from '../durable/memory';
import { inParallel } from '../durable/parallel';
import { type ApiError, unavailable } from '../job/errors';
import type { DirectoryApi } from '../rpc/directory';
import { type IdPlace, idShardOf } from '../rpc/ids';
import { directoryObject, idShard } from '../rpc/stubs';

/** All queues of earlier releases have had their ids noted: once true, always true. */
let allListed = false;
onEmptied(() => {
  allListed = false;
});

/** Notes that queues will take jobs under these ids. @param lookedInto no other queue has one @returns the others */
export const noteIds = (env: Env, places: readonly IdPlace[], lookedInto = false): Promise<IdPlace[]> =>
  atShards(env, places, (shard, own) => shard.noteIds(own, lookedInto));

export const placesOf = (env: Env, ids: readonly string[]): Promise<IdPlace[]> =>
  atShards(env, [...new Set(ids)], (shard, own) => shard.placesOf(own));

/** As {@link placesOf}, also for jobs from before ids were noted. @returns `left`: queues not listed yet */
export async function allPlacesOf(env: Env, ids: readonly string[]): Promise<{ places: IdPlace[]; left: number }> {
  if (ids.length === 0) return { places: [], left: 0 };
  const places = await placesOf(env, ids);
  const missing = ids.filter((id) => !places.some((place) => place.id === id));
  if (allListed || missing.length === 0) return { places, left: 0 };
  const left = await directoryObject(env).listIds();
  allListed = left === 0;
  const found = await placesOf(env, missing);
  const isUnknown = missing.some((id) => !found.some((place) => place.id === id));
  return { places: [...places, ...found], left: isUnknown ? left : 0 };
}

/** As {@link allPlacesOf}. @throws {ApiError} 503 when an id is unknown while queues are still being listed */
export async function certainPlacesOf(env: Env, ids: readonly string[]): Promise<IdPlace[]> {
  const { places, left } = await allPlacesOf(env, ids);
  if (left === 0) return places;
  throw beingListed(left);
}

/** 503: it is not known yet where the job is. */
export const beingListed = (left: number): ApiError =>
  unavailable(`The ids of ${left} queues are still being listed after an upgrade.`, 2);

async function atShards<T extends string | IdPlace>(
  env: Env,
  items: readonly T[],
  ask: (shard: DirectoryApi, items: T[]) => Promise<IdPlace[]>,
): Promise<IdPlace[]> {
  const shards = Map.groupBy(items, (item) => idShardOf(typeof item === 'string' ? item : item.id));
  return (await inParallel([...shards], ([name, own]) => ask(idShard(env, name), own))).flat();
}
