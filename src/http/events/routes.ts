/** The live feed: recent events of the queues, from the memory of their objects, and those that happen now. */

import { renderEvent } from '../../across/feed/written';
import { recentEvents } from '../../across/statistics';
import { events } from '../../contract/events';
import { defined, given } from '../../job/envelope/fields';
import { also, nameGiven, namesOf } from '../../ojs/names';
import { type AppContext, json } from '../context';
import { pagination, readPaging } from '../request/pagination';
import { pastParam, queueParam, textParam } from '../request/query';
import { serve } from '../route';
import { readPlace } from './place';
import { openSocket } from './socket';
import { progressStream, streamOfChannel, streamOfJob, streamOfQueue } from './streams';
import { typesParam } from './types';

/** A follower reads no further ahead, and pages by number reach no further back. A queue keeps 1,000. */
const MAX_AHEAD = 1000;
const MAX_BACK = 5000;

export const eventRoutes = serve(events, {
  list,
  stream: streamOfChannel,
  ofJob: streamOfJob,
  progress: progressStream,
  ofQueue: streamOfQueue,
  socket: openSocket,
});

/** Oldest first from a cursor on; with `page` or `per_page` newest first, as the dashboard shows them. */
async function list(c: AppContext) {
  const paging = readPaging(c);
  const types = typesParam(c, ...namesOf('EventQuery', 'types'));
  const after = given(textParam(c, nameGiven('EventQuery', 'after', c.req.query())), (id) => readPlace(id, 'after'));
  const since = pastParam(c, 'since', Date.now());
  const queues = queueParam(c, 'queues', 'queue');
  const byPage = paging.page !== undefined;
  // Pages by number say how many there are; a follower needs one event more than it shows.
  const limit = byPage ? MAX_BACK : Math.min(paging.offset + paging.limit + 1, MAX_AHEAD);
  const request = defined({ limit, types, after, since });
  const found = await recentEvents(c.env, request, { queues, newest: byPage });
  if (byPage) found.reverse();
  const page = found.slice(paging.offset, paging.offset + paging.limit);
  const shown = page.map(renderEvent);
  const cursor = page.at(-1)?.id ?? after ?? null;
  const hasMore = found.length > paging.offset + page.length;
  return json(c, {
    ...also('EventList', { events: shown }),
    cursor,
    has_more: hasMore,
    pagination: pagination(paging, { total: found.length, hasMore, nextCursor: cursor }),
  });
}
