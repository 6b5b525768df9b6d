/** The messages of the socket of live events, subprotocol `ojs.v1`: JSON objects as text. */
import type { Also } from '../ojs/names';
import type { FlatEvent, StreamItem } from './event-messages';

interface Subscription {
  action: 'subscribe';
  /** `all`, `queue:` and a name, or `job:` and an id. */
  channel: string;
  /** Names of events, or of kinds: `job.*`. Default: all. */
  event_types?: string[] | null;
  /** The id of an event: continue after it. */
  after?: string | null;
}

/** Follows a channel, from now on or after an event. */
export interface Subscribe extends Also<'Subscribe', Subscription> {}

/** Another word for `subscribe`. */
export interface Resume extends Omit<Subscribe, 'action'> {
  action: 'resume';
}

/** Follows a channel no longer. */
export interface Unsubscribe {
  action: 'unsubscribe';
  channel: string;
}

/** Asks whether the connection works. */
export interface PingRequest {
  action: 'ping';
}

/** Says that everything before that ping was read. */
export interface PongRequest {
  action: 'pong';
  /** That of the ping. */
  n: number;
}

/** What a client says. */
export type LiveRequest = Subscribe | Resume | Unsubscribe | PingRequest | PongRequest;

/** A channel is followed. */
export interface Subscribed {
  type: 'subscribed';
  channel: string;
  /** Absent: all. */
  event_types?: string[];
  /** The place in the feed where following begins. */
  position: string;
}

/** A channel is not followed any more. */
export interface Unsubscribed {
  type: 'unsubscribed';
  channel: string;
}

/** Something happened in a channel. */
export interface LiveEventMessage extends Omit<StreamItem, 'data'> {
  type: 'event';
  channel: string;
  data: FlatEvent;
}

/** A message was refused. */
export interface LiveError {
  type: 'error';
  code: string;
  message: string;
  /** That of the message. */
  channel?: string;
  details?: Record<string, unknown>;
}

/** Answers a ping. */
export interface PongAnswer {
  type: 'pong';
}

/** Asks what the client has read. */
export interface PingMessage {
  type: 'ping';
  /** The answer has the same. */
  n: number;
}

/** What the server says. */
export type LiveMessage = Subscribed | Unsubscribed | LiveEventMessage | LiveError | PongAnswer | PingMessage;
