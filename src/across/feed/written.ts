import type { QueueEvent } from '../../durable/event-log';
import { STATE_CHANGED } from '../../job/event-types';
import { formatInstant, withWrittenTimes } from '../../job/time';
import { also } from '../../ojs/names';

type Data = Record<string, unknown>;

export function renderEvent(event: QueueEvent) {
  return also('FeedEvent', {
    specversion: '1.0',
    id: event.id,
    type: event.type,
    source: `ojs://tocsin/${sourceOf(event)}`,
    subject: event.subject,
    time: formatInstant(event.time),
    data: {
      ...(event.type.startsWith('job.') && { job_id: event.subject }),
      ...aboutOf(event),
      ...(event.type === STATE_CHANGED && event.change),
      ...withWrittenTimes(event.data),
    },
  });
}

export function aboutOf({ type, subject, queue }: Pick<QueueEvent, 'type' | 'subject' | 'queue'>): Data {
  if (queue !== '') return { queue };
  return type.startsWith('worker.') ? { worker_id: subject } : { subscription_id: subject };
}

function sourceOf({ type, subject, queue }: QueueEvent): string {
  if (queue !== '') return `queues/${queue}`;
  return `${type.startsWith('worker.') ? 'workers' : 'webhooks'}/${subject}`;
}
