/**
 * Each event as it travels: in streams and over the socket of live events, in lists and to webhooks.
 * `job/event-data.ts` has its data.
 */
import type { EventChange, EventData, EventType, JobEvents, WebhookEvents, WorkerEvents } from '../job/event-data';
import type { Also } from '../ojs/names';
import type { Time } from './common';

interface EventMembers {
  specversion: string;
  /** Names its place in the feed. */
  id: string;
  /** `job.completed`, `queue.paused`, `cron.triggered`, … */
  type: string;
  source: string;
  /** The job, queue, worker, workflow or schedule it is about. */
  subject: string;
  time: Time;
  /** What is known of it. */
  data: Record<string, unknown>;
}

/** Something that happened. */
export interface FeedEvent extends Also<'FeedEvent', EventMembers> {}

/** An event in a stream, or in a message of the socket. */
export interface StreamItem {
  id: string;
  /** Its type. */
  event: string;
  data: Record<string, unknown>;
  timestamp: Time;
}

/** What an event is about, beside its subject. */
type About<Type extends EventType> = Type extends keyof JobEvents
  ? { job_id: string; queue: string }
  : Type extends keyof WorkerEvents
    ? { worker_id: string }
    : Type extends keyof WebhookEvents
      ? { subscription_id: string }
      : { queue: string };

interface Cut {
  /** A long member was cut, or left out. */
  truncated?: true;
  /** In the stream of one job: the same on record and live. */
  key?: string;
}

/** An event of a type: in lists, to webhooks, and in streams of the format `cloudevents`. */
export interface EventOf<Type extends EventType> extends Omit<FeedEvent, 'type' | 'data'> {
  type: Type;
  data: DataOf<Type>;
}

type DataOf<Type extends EventType> = Type extends 'job.state_changed'
  ? StateChanged
  : About<Type> & EventData[Type] & Cut;

/** The members of the event that says why are here, too. */
interface StateChanged extends EventChange {
  job_id: string;
  queue: string;
  job_type: string;
  attempt: number;
  [member: string]: unknown;
}

/** An event of a type as streams have it, and the socket of live events. */
export type FlatEventOf<Type extends EventType> = Type extends 'job.state_changed'
  ? FlatStateChanged
  : FlatMembers<Type> & About<Type> & Subject<Type> & Omit<EventData[Type], 'job_type'> & Cut;

interface FlatMembers<Type> {
  event: Type;
  /** The type of the job, where the event is about one; else the event's. */
  type: string;
  timestamp: Time;
}

type Subject<Type extends EventType> = Type extends keyof JobEvents ? object : { subject: string };

interface FlatStateChanged extends FlatMembers<'job.state_changed'>, EventChange, Pick<Cut, 'key'> {
  job_id: string;
  queue: string;
}

/** Which events may be missing: those after `after`, of `queues`. */
interface Gap {
  after?: string;
  queues?: string[];
}

interface EventsDropped {
  /** How many were left out. */
  dropped: number;
  /** The last one before them. */
  after?: string;
  queue?: string;
}

/** Events may be missing. */
export interface FlatGap extends FlatMembers<'system.gap'>, Gap {}

/** Too many events came at once. */
export interface FlatEventsDropped extends FlatMembers<'system.events_dropped'>, EventsDropped {}

/** Any event of a stream. */
export type FlatEvent = { [Type in EventType]: FlatEventOf<Type> }[EventType] | FlatGap | FlatEventsDropped;

/** Events may be missing. */
export interface GapEvent extends Omit<FeedEvent, 'type' | 'data'> {
  type: 'system.gap';
  data: Gap;
}

/** Too many events came at once. */
export interface EventsDroppedEvent extends Omit<FeedEvent, 'type' | 'data'> {
  type: 'system.events_dropped';
  data: EventsDropped;
}

/** Any event. */
export type AnyEvent = { [Type in EventType]: EventOf<Type> }[EventType];

/** What is sent to a receiver as a test. */
export interface WebhookTestEvent extends Omit<FeedEvent, 'type' | 'data'> {
  type: 'webhook.test';
  data: { subscription_id: string; message: string };
}
