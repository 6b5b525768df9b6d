/** Events as clients see them: in lists, and in streams. */
import type { QueueEvent } from '../../durable/event-log';
import { mintId, routeOf } from '../../job/ids';
import { formatInstant } from '../../job/time';
import type { FollowedJob } from '../../rpc/follow';
import { STATE_CHANGED } from './types';

type Data = Record<string, unknown>;

/** An event in a stream. */
export interface StreamItem {
  id: string;
  event: string;
  data: Data;
  /** RFC 3339. */
  timestamp: string;
}

/** How events of a stream are written: flat, as the clients of the protocol expect them, or as lists have them. */
export const FORMATS = ['flat', 'cloudevents'] as const;
export type Format = (typeof FORMATS)[number];

/** What a stream shows. */
export interface Shown {
  format: Format;
  /** Absent: everything. */
  types: ReadonlySet<string> | undefined;
}

/** An event as lists have it. */
export function renderEvent(event: QueueEvent): Data {
  const time = formatInstant(event.time);
  return {
    specversion: '1.0',
    id: event.id,
    type: event.type,
    source: event.queue === '' ? `ojs://tocsin/workers/${event.subject}` : `ojs://tocsin/queues/${event.queue}`,
    subject: event.subject,
    time,
    timestamp: time,
    data: {
      ...(event.type.startsWith('job.') && { job_id: event.subject }),
      ...(event.queue === '' ? { worker_id: event.subject } : { queue: event.queue }),
      ...(event.type === STATE_CHANGED && event.change),
      ...withWrittenTimes(event.data),
    },
  };
}

/** An event as a stream has it: one item, or before it another one about the change of state that it tells of. */
export function itemsOf(event: QueueEvent, { format, types }: Shown): StreamItem[] {
  const { id, type } = event;
  const timestamp = formatInstant(event.time);
  const isWanted = (name: string) => types?.has(name) ?? true;
  const items: StreamItem[] = [];
  const change = stateChangeOf(event, timestamp);
  // Whoever reads events as lists have them gets each once, unless it asks for nothing but changes.
  const twin = change && type !== STATE_CHANGED && (format === 'flat' || types?.has(STATE_CHANGED));
  if (twin && isWanted(STATE_CHANGED)) {
    items.push({
      id: isWanted(type) ? `${id}.0` : id,
      event: STATE_CHANGED,
      data: format === 'flat' ? change : renderEvent({ ...event, type: STATE_CHANGED }),
      timestamp,
    });
  }
  if (isWanted(type)) {
    const data =
      format === 'cloudevents'
        ? renderEvent(event)
        : type === STATE_CHANGED && change
          ? change
          : flat(event, timestamp);
    items.push({ id, event: type, data, timestamp });
  }
  return items;
}

function stateChangeOf({ type, subject, queue, data, change }: QueueEvent, timestamp: string): Data | undefined {
  if (!change || !type.startsWith('job.')) return undefined;
  return { event: STATE_CHANGED, job_id: subject, queue, type: data.job_type, ...change, timestamp };
}

/** `type` is that of the job, where there is one. */
function flat({ type, subject, queue, data }: QueueEvent, timestamp: string): Data {
  const { job_type = type, ...rest } = data;
  return {
    event: type,
    type: job_type,
    ...(type.startsWith('job.') ? { job_id: subject } : { subject }),
    ...(queue === '' ? { worker_id: subject } : { queue }),
    ...withWrittenTimes(rest),
    timestamp,
  };
}

/** Of a job that had ended before anybody followed it: that it is in its last state. */
export function endOf(job: FollowedJob, queue: string): QueueEvent {
  const time = job.ended_at ?? 0;
  const from = job.attempt > 0 ? 'active' : 'available';
  return {
    id: `evt_${mintId(time, routeOf(job.id), 0)}`,
    type: STATE_CHANGED,
    queue,
    subject: job.id,
    time,
    data: { job_type: job.type, attempt: job.attempt },
    change: { from, to: job.state },
  };
}

/** An event about the stream itself. @param now epoch ms */
export function systemItem(
  event: 'system.gap' | 'system.events_dropped',
  id: string,
  members: Data,
  { format, now }: { format: Format; now: number },
): StreamItem {
  const timestamp = formatInstant(now);
  if (format === 'flat') return { id, event, data: { event, type: event, ...members, timestamp }, timestamp };
  const source = 'ojs://tocsin/events';
  const data = {
    specversion: '1.0',
    id,
    type: event,
    source,
    subject: 'stream',
    time: timestamp,
    timestamp,
    data: members,
  };
  return { id, event, data, timestamp };
}

/** Members named `…_at` are epoch milliseconds inside and RFC 3339 on the wire. */
function withWrittenTimes(data: Data): Data {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) =>
      name.endsWith('_at') && typeof value === 'number' ? [name, formatInstant(value)] : [name, value],
    ),
  );
}
