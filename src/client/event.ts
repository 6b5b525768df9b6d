import type { FeedEvent } from '../contract/event-messages';
import type { Named } from '../producer/names';

/** Something that happened. `data` is in the wire's names. */
export type QueueEvent = Named<FeedEvent>;
