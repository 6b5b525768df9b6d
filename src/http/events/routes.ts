/** The live feed: what happened lately in the queues, from the memory of their objects. */
import { Hono } from 'hono';
import { knownQueues } from '../../across/queues';
import type { QueueEvent } from '../../durable/event-log';
import { inParallel } from '../../durable/parallel';
import { invalidRequest } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import { formatInstant } from '../../job/time';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { pagination, readPaging } from '../request/pagination';
import { listParam, oneOf, queueParam, textParam, timeParam } from '../request/query';
import { json } from '../respond';

/** Events a queue keeps; asking for as many gives them all. */
const KEPT = 1000;

const EVENT_TYPES = [
  ...['enqueued', 'scheduled', 'started', 'completed', 'failed', 'retrying', 'discarded', 'cancelled', 'expired'],
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
export function eventRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/events', listEvents);
  return routes;
}

/** Oldest first from a cursor on; with `page` or `per_page` newest first, as the dashboard shows them. */
async function listEvents(c: AppContext): Promise<Response> {
  const paging = readPaging(c);
  const types = oneOf(listParam(c, 'types', 'type'), EVENT_TYPES, 'types');
  const after = readAfter(textParam(c, 'after') ?? paging.cursor);
  const since = timeParam(c, 'since', Date.now());
  const only = queueParam(c, 'queues', 'queue');
  const queues = only ?? (await knownQueues(c.env));
  const byPage = paging.page !== undefined;
  // Only paging by number and filtering by time need the whole memory; a follower needs one page more than it shows.
  const limit = byPage || since !== undefined ? KEPT : Math.min(paging.offset + paging.limit + 1, KEPT);
  const request = { limit, ...(types && { types }), ...(after && { after }) };
  const answers = await inParallel(queues, (queue) => queueObject(c.env, queue).events(request));
  // Workers belong to no queue.
  if (only === undefined) answers.push(await directoryObject(c.env).workerEvents(request));
  const events = answers.flat().filter(({ time }) => since === undefined || time >= since);
  events.sort((a, b) => (a.id < b.id ? -1 : 1) * (byPage ? -1 : 1));
  const page = events.slice(paging.offset, paging.offset + paging.limit);
  const shown = page.map(renderEvent);
  const cursor = page.at(-1)?.id ?? after ?? null;
  const hasMore = events.length > paging.offset + page.length;
  return json(c, {
    events: shown,
    items: shown,
    cursor,
    has_more: hasMore,
    pagination: pagination(paging, events.length, hasMore, cursor),
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
