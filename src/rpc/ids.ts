/**
 * Which queues may have a job under an id that does not name its queue: a client chose it, or the job brought it from
 * another queue. Shards of the directory know, each for its part of the ids; the job is taken after they do.
 */

/** A queue that may have a job under an id. */
export interface IdPlace {
  id: string;
  queue: string;
}

/** A request about many ids asks each shard once. Must not change: ids are found where they were noted. */
const SHARDS = 32;

/** Name of the shard that knows about an id; a UUIDv7 ends at random, also where it carries a route. */
export const idShardOf = (id: string): string => `ids-${Number.parseInt(id.slice(-2), 16) % SHARDS}`;
