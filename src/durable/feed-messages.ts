/** The messages between followers and the object that they follow; `followers.ts` shows their order. */
import type { QueueEvent } from './event-log';

export interface FollowRequest {
  job?: string | undefined;
  types?: readonly string[] | undefined;
  /** It has received all events up to the one with this id, and must be notified if some since then are lost. */
  after?: string | undefined;
  /** The first message has the events that are still kept since this id. Default: `after`. */
  from?: string | undefined;
  /** Also the chunks of this output stream of the job. */
  stream?: string | undefined;
}

/** The first message to a follower. `About` is what else the object reports about itself. */
export interface Hello<About = unknown> {
  /** The place in the feed where following begins, as the id of an event. */
  position: string;
  /** Events since `after` may be missing. */
  gap: boolean;
  events: QueueEvent[];
  about?: About;
}

export type FeedMessage<About = unknown> =
  | { hello: Hello<About> }
  | { events: QueueEvent[] }
  /** This many events did not fit into this second; `after`: the last one that did. */
  | { dropped: number; after?: string }
  /** Something that is not an event of the feed. */
  | { notice: string; name: string }
  /** Chunks of the output stream that is followed; without them: there are more, to be read elsewhere. */
  | { stream: StreamNews };

export interface StreamNews {
  run: number;
  /** The number of the first. */
  first: number;
  chunks?: unknown[];
}

/** A follower sends {@link READ} when it has read this many characters since the last time. */
export const READ_EVERY = 64 * 1024;
export const READ = 'read';

export const PING = 'ping';
export const PONG = 'pong';

/** Why an object closes the socket of a follower. */
export const CLOSED = {
  /** It does not read. */
  slow: 4008,
  /** What is followed is deleted. */
  gone: 4004,
} as const;
