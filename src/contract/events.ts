/** The live feed: what happened lately in the queues, and what happens now. */
import type { PageQuery, Pagination, Time } from './common';
import { get, type Media } from './route';

/** Something that happened. */
export interface FeedEvent {
  specversion: string;
  /** Names its place in the feed. */
  id: string;
  /** `job.completed`, `queue.paused`, `cron.triggered`, … */
  type: string;
  source: string;
  /** The job, queue, worker, workflow or schedule it is about. */
  subject: string;
  time: Time;
  /** The same as `time`. */
  timestamp: Time;
  /** What is known of it. */
  data: Record<string, unknown>;
}

/** Recent events, the oldest first; read by the page the latest first. */
export interface EventList {
  events: FeedEvent[];
  /** The same as `events`. */
  items: FeedEvent[];
  /** The id of the last event, to continue after it; null: there is none. */
  cursor: string | null;
  has_more: boolean;
  pagination: Pagination;
}

/** An event in a stream, or in a message of the socket. */
export interface StreamItem {
  id: string;
  /** Its type. */
  event: string;
  data: Record<string, unknown>;
  timestamp: Time;
}

interface TypesQuery {
  /** Names of events, or of kinds: `job.*`; separated by commas. */
  types?: string;
  /** The same as `types`. */
  type?: string;
}

interface EventQuery extends PageQuery, TypesQuery {
  /** The id of an event: only those after it. */
  after?: string;
  /** The same as `after`. */
  cursor?: string;
  /** A time, or how long ago that was. */
  since?: string;
  /** Only of these queues, separated by commas; also `queue`. Default: of all, and those of workers. */
  queues?: string;
  queue?: string;
}

interface StreamQuery extends TypesQuery {
  /** Flat (default), or as lists have events. */
  format?: 'flat' | 'cloudevents';
  /** The id of an event: continue after it. The header `Last-Event-ID` means the same. */
  after?: string;
  /** The same as `after`. */
  last_event_id?: string;
  /** The same as `types`. */
  event_types?: string;
}

interface ChannelQuery extends StreamQuery {
  /** `all` (default), `queue:` and a name, or `job:` and an id. */
  channel?: string;
  /** Only of these queues, separated by commas; also `queues`. */
  queue?: string;
  queues?: string;
}

/** Below `/ojs/v1`. */
export const events = {
  /** Lists recent events. */
  list: get<{ query: EventQuery; 200: EventList }>('/events'),
  /** Follows the events of all queues, or of a channel. */
  stream: get<{ query: ChannelQuery; 200: Media<'text/event-stream'>; 204: null; errors: 404 }>('/events/stream'),
  /** Follows the events of a job until it ends. */
  ofJob: get<{ query: StreamQuery; 200: Media<'text/event-stream'>; 204: null; errors: 404 }>('/jobs/:id/events'),
  /** Follows the progress of a job until it ends. */
  progress: get<{ 200: Media<'text/event-stream'>; errors: 404 }>('/jobs/:id/progress/stream'),
  /** Follows the events of a queue. */
  ofQueue: get<{ query: StreamQuery; 200: Media<'text/event-stream'>; 204: null; errors: 404 }>('/queues/:name/events'),
  /** Opens a WebSocket, which follows the channels that its messages name. */
  socket: get<{ 101: null; errors: 426 }>('/ws'),
};
