/** The live feed: what happened lately in the queues, from the memory of their objects. */
import { recentEvents } from '../../across/statistics';
import type { QueueEvent } from '../../durable/event-log';
import { defined } from '../../job/envelope/fields';
import { invalidRequest } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import { formatInstant } from '../../job/time';
import { type AppContext, json } from '../context';
import { pagination, readPaging } from '../request/pagination';
import { listParam, oneOf, queueParam, textParam, timeParam } from '../request/query';
import { get, type Route } from '../route';

/** A follower reads no further ahead, and pages by number reach no further back. A queue keeps 1,000. */
const MAX_AHEAD = 1000;
const MAX_BACK = 5000;

const EVENT_TYPES = [
  ...[
    'enqueued',
    'scheduled',
    'started',
    'completed',
    'failed',
    'retrying',
    'discarded',
    'cancelled',
    'expired',
    'snoozed',
  ],
  ...['heartbeat', 'progress'],
]
  .map((name) => `job.${name}`)
  .concat(
    ['paused', 'resumed', 'push_suspended', 'push_resumed'].map((name) => `queue.${name}`),
    ['started', 'stopped', 'quiet', 'heartbeat'].map((name) => `worker.${name}`),
    ['started', 'step_completed', 'completed', 'failed'].map((name) => `workflow.${name}`),
    ['triggered', 'skipped'].map((name) => `cron.${name}`),
  );

/** Routes below `/ojs/v1`. */
export const eventRoutes: readonly Route[] = [get('/events', list)];

/** Oldest first from a cursor on; with `page` or `per_page` newest first, as the dashboard shows them. */
async function list(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const types = oneOf(listParam(c, 'types', 'type'), EVENT_TYPES, 'types');
  const after = readAfter(textParam(c, 'after') ?? paging.cursor);
  const since = timeParam(c, 'since', Date.now());
  const queues = queueParam(c, 'queues', 'queue');
  const byPage = paging.page !== undefined;
  // Pages by number say how many there are; a follower needs one event more than it shows.
  const limit = byPage ? MAX_BACK : Math.min(paging.offset + paging.limit + 1, MAX_AHEAD);
  const request = defined({ limit, types, after, since });
  const events = await recentEvents(c.env, request, { queues, newest: byPage });
  if (byPage) events.reverse();
  const page = events.slice(paging.offset, paging.offset + paging.limit);
  const shown = page.map(renderEvent);
  const cursor = page.at(-1)?.id ?? after ?? null;
  const hasMore = events.length > paging.offset + page.length;
  return json(c, {
    events: shown,
    items: shown,
    cursor,
    has_more: hasMore,
    pagination: pagination(paging, { total: events.length, hasMore, nextCursor: cursor }),
  });
}

function readAfter(id: string | undefined): string | undefined {
  if (id === undefined || (id.startsWith('evt_') && isUuidV7(id.slice('evt_'.length)))) return id;
  throw invalidRequest('after', 'after must be the id of an event.');
}

function renderEvent(event: QueueEvent): Record<string, unknown> {
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
      ...withWrittenTimes(event.data),
    },
  };
}

/** Members named `…_at` are epoch milliseconds inside and RFC 3339 on the wire. */
function withWrittenTimes(data: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) =>
      name.endsWith('_at') && typeof value === 'number' ? [name, formatInstant(value)] : [name, value],
    ),
  );
}
