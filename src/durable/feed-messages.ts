/** What followers and the object that they follow say to each other; `followers.ts` shows in which order. */
import type { QueueEvent } from './event-log';

/** What a follower wants of an object. */
export interface FollowRequest {
  /** Only events of this job. */
  job?: string | undefined;
  /** Only events of these types. */
  types?: readonly string[] | undefined;
  /** It has had all events up to the one with this id, and must be told when some since then are lost. */
  after?: string | undefined;
  /** The first message has the events that are still kept since this id. Default: `after`. */
  from?: string | undefined;
}

/** The first message to a follower. `About` is what else the object tells of what is followed. */
export interface Hello<About = unknown> {
  /** The place in the feed where following begins, as the id of an event. */
  position: string;
  /** Events since `after` may be missing. */
  gap: boolean;
  /** Those since `from`. */
  events: QueueEvent[];
  about?: About;
}

/** A message to a follower. */
export type FeedMessage<About = unknown> =
  | { hello: Hello<About> }
  | { events: QueueEvent[] }
  /** So many events did not fit into this second; `after`: the last one that did. */
  | { dropped: number; after?: string }
  /** Something happened that is no event of the feed. */
  | { notice: string; name: string };

/** A follower sends {@link READ} when it has read so many characters since the last time. */
export const READ_EVERY = 64 * 1024;
export const READ = 'read';

export const PING = 'ping';
export const PONG = 'pong';

/** Why an object closes the socket of a follower. */
export const CLOSED = {
  /** It does not read. */
  slow: 4008,
  /** What is followed is no more. */
  gone: 4004,
} as const;
