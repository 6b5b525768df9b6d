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
export function idShardOf(id: string): string {
  return `ids-${Number.parseInt(id.slice(-2), 16) % SHARDS}`;
}

export interface IdsApi {
  /**
   * A shard notes ids under which queues are about to take jobs. One row written for each. Ids noted for other queues
   * are skipped, unless that was looked into.
   * @param lookedInto none of the other queues has such a job
   * @returns the other queues
   */
  noteIds(places: IdPlace[], lookedInto?: boolean): Promise<IdPlace[]>;
  /** What a shard knows of these ids. */
  placesOf(ids: string[]): Promise<IdPlace[]>;
  /** The directory itself: records a shard in use. */
  registerShard(name: string): Promise<void>;
  /** The directory itself: its shards in use. */
  shards(): Promise<string[]>;
  /**
   * The directory itself: continues to note the ids of queues of an earlier release, and waits a moment for that.
   * @returns how many queues are left
   */
  listIds(): Promise<number>;
  reset(): Promise<void>;
}
