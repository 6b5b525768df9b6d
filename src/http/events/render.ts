/** Events as streams have them. */
import { aboutOf, renderEvent } from '../../across/feed/written';
import type { StreamItem } from '../../contract/event-messages';
import type { QueueEvent } from '../../durable/event-log';
import { STATE_CHANGED } from '../../job/event-types';
import { mintId, routeOf } from '../../job/ids';
import { formatInstant, withWrittenTimes } from '../../job/time';
import type { FollowedJob } from '../../rpc/follow';
import { keyOf } from './on-record';

type Data = Record<string, unknown>;

/** How events of a stream are written: flat, as the clients of the protocol expect them, or as lists have them. */
export const FORMATS = ['flat', 'cloudevents'] as const;
export type Format = (typeof FORMATS)[number];

/** What a stream shows. */
export interface Shown {
  format: Format;
  /** Absent: everything. */
  types: ReadonlySet<string> | undefined;
  /** Each event of a job has a key, by which it is known from what is on record. */
  keyed?: boolean;
}

/** An event in a stream: one item, or before it another one about the change of state. */
export function itemsOf(given: QueueEvent, { format, types, keyed }: Shown): StreamItem[] {
  const event = keyed ? { ...given, data: { ...given.data, key: keyOf(given) } } : given;
  const { id, type } = event;
  const timestamp = formatInstant(event.time);
  const isWanted = (name: string) => types?.has(name) ?? true;
  const items: StreamItem[] = [];
  const change = stateChangeOf(event, timestamp);
  // In the lists' form each event comes once, unless only state changes are wanted.
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
  const { key } = data;
  return {
    ...{ event: STATE_CHANGED, job_id: subject, queue, type: data.job_type, ...change, timestamp },
    ...(key !== undefined && { key }),
  };
}

/** `type` is that of the job, where there is one. */
function flat({ type, subject, queue, data }: QueueEvent, timestamp: string): Data {
  const { job_type = type, ...rest } = data;
  return {
    event: type,
    type: job_type,
    ...(type.startsWith('job.') ? { job_id: subject } : { subject }),
    ...aboutOf({ type, subject, queue }),
    ...withWrittenTimes(rest),
    timestamp,
  };
}

/** For a job that had ended before it was followed: its last state. */
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
