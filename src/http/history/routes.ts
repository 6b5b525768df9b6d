/** Routes about what happened to a job: its failed attempts, and its whole story. */
import { Hono } from 'hono';
import { withJob } from '../../across/locate';
import { readConfig } from '../../config';
import { renderJob } from '../../job/envelope/render';
import { unsupported, unwrap } from '../../job/errors';
import { failedAttempts, historyOfJob } from '../../job/history';
import type { JobView } from '../../job/record';
import { formatInstant } from '../../job/time';
import type { AppContext, AppEnv } from '../context';
import { badCursor, decodeCursor, encodeCursor, pagination, readPaging } from '../request/pagination';
import { json } from '../respond';

/** Routes below `/ojs/v1`. */
export function historyRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/jobs/:id/retries', async (c) => retries(c, await read(c, c.req.param('id'))));
  for (const path of ['/jobs/:id/history', '/events/:id/history'] as const) {
    routes.get(path, async (c) => history(c, await read(c, c.req.param('id'))));
    routes.delete(path, () => {
      throw unsupported("A job's history is its own record and goes with it: delete the job.", { field: 'history' });
    });
  }
  return routes;
}

async function read(c: AppContext, id: string): Promise<JobView> {
  return unwrap(await withJob(c.env, id, (queue) => queue.get(id)));
}

/** The attempts that failed, and the policy that decides what follows. */
function retries(c: AppContext, view: JobView): Response {
  const envelope = renderJob(view, readConfig(c.env).retryVariables);
  return json(c, {
    job_id: view.record.id,
    retries: failedAttempts(view.record).map(({ attempt, state, error, started_at, failed_at, next_retry_at }) => ({
      attempt,
      state,
      error,
      started_at: started_at === undefined ? null : formatInstant(started_at),
      failed_at: formatInstant(failed_at),
      next_retry_at: next_retry_at === undefined ? null : formatInstant(next_retry_at),
    })),
    policy: envelope.retry_effective,
  });
}

/** A page of what happened, oldest first. */
function history(c: AppContext, { record }: JobView): Response {
  const paging = readPaging(c);
  const events = historyOfJob(record).map(({ event_type, at, actor, data }, index) => ({
    id: `evt_${record.id}-${index}`,
    job_id: record.id,
    event_type,
    timestamp: formatInstant(at),
    actor,
    data,
  }));
  const start = paging.offset + (paging.cursor === undefined ? 0 : readPosition(paging.cursor));
  const page = events.slice(start, start + paging.limit);
  const hasMore = events.length > start + page.length;
  const next = encodeCursor({ position: start + page.length });
  return json(c, {
    events: page,
    total: events.length,
    next_cursor: hasMore ? next : null,
    pagination: pagination(paging, events.length, hasMore, next),
  });
}

function readPosition(cursor: string): number {
  const { position } = decodeCursor(cursor);
  if (!Number.isInteger(position) || (position as number) < 0) throw badCursor();
  return position as number;
}
