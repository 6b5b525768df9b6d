/** The live feed: recent events of the queues, and new ones as they happen. */
import type { Also } from '../ojs/names';
import type { PageQuery, Pagination } from './common';
import type { AnyEvent, EventsDroppedEvent, FeedEvent, FlatEvent, GapEvent } from './event-messages';
import type { LiveMessage, LiveRequest } from './live-socket';
import type { ProgressMessage } from './progress';
import { get, type Media } from './route';

interface Events {
  events: FeedEvent[];
  /** The id of the last event, to continue after it; null: there is none. */
  cursor: string | null;
  has_more: boolean;
  pagination: Pagination;
}

/** Recent events, the oldest first; read by the page the latest first. */
export interface EventList extends Also<'EventList', Events> {}

interface Types {
  /** Names of events, or of kinds: `job.*`; separated by commas. */
  types?: string;
}

interface EventConditions extends PageQuery, Types {
  /** The id of an event: only those after it. */
  after?: string;
  /** A time, or how long ago that was. */
  since?: string;
  /** Only of these queues, separated by commas; also `queue`. Default: of all, and those of workers. */
  queues?: string;
  queue?: string;
}

interface EventQuery extends Also<'EventQuery', EventConditions> {}

interface StreamConditions extends Types {
  /** Flat (default), or as lists have events. */
  format?: 'flat' | 'cloudevents';
  /** The id of an event: continue after it. The header `Last-Event-ID` means the same. */
  after?: string;
}

interface StreamQuery extends Also<'StreamQuery', StreamConditions> {}

interface ChannelQuery extends StreamQuery {
  /** `all` (default), `queue:` and a name, or `job:` and an id. */
  channel?: string;
  /** Only of these queues, separated by commas; also `queues`. */
  queue?: string;
  queues?: string;
}

/** What a stream of events has, in one format or the other. */
export type StreamMessage = FlatEvent | AnyEvent | GapEvent | EventsDroppedEvent;

/** Below `/ojs/v1`. */
export const events = {
  /** Lists recent events. */
  list: get<{ query: EventQuery; 200: EventList }>('/events'),
  /** Follows the events of all queues, or of a channel. */
  stream: get<{
    query: ChannelQuery;
    fromServer: StreamMessage;
    200: Media<'text/event-stream'>;
    204: null;
    errors: 404;
  }>('/events/stream'),
  /** Follows the events of a job until it ends; its history comes first, unless `live`. */
  ofJob: get<{
    query: StreamQuery & { live?: boolean };
    fromServer: StreamMessage;
    200: Media<'text/event-stream'>;
    204: null;
    errors: 404;
  }>('/jobs/:id/events', { token: 'read', bound: 'job' }),
  /** Follows the progress of a job until it ends. */
  progress: get<{ fromServer: ProgressMessage; 200: Media<'text/event-stream'>; errors: 404 }>(
    '/jobs/:id/progress/stream',
    { token: 'read', bound: 'job' },
  ),
  /** Follows the events of a queue. */
  ofQueue: get<{
    query: StreamQuery;
    fromServer: StreamMessage;
    200: Media<'text/event-stream'>;
    204: null;
    errors: 404;
  }>('/queues/:name/events', { bound: 'queue' }),
  /** Opens a WebSocket to follow channels. */
  socket: get<{ fromClient: LiveRequest; fromServer: LiveMessage; 101: null; errors: 426 }>('/ws'),
};
