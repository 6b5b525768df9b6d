/** Routes about discarded jobs that wait for a human. */
import { Hono } from 'hono';
import { deadLetterStats, listDeadLetters } from '../../across/dead-letters';
import { withJob } from '../../across/locate';
import { knownQueues } from '../../across/queues';
import { readConfig } from '../../config';
import { optional, readObject, readQueueName } from '../../job/envelope/fields';
import { readMeta } from '../../job/envelope/parse';
import { renderJob } from '../../job/envelope/render';
import { unsupported, unwrap } from '../../job/errors';
import type { RetryInput } from '../../job/record';
import { checkRetryLayer } from '../../job/retry/validate';
import type { AppContext, AppEnv } from '../context';
import { type JsonObject, readOptionalBody } from '../request/body';
import { type PagingStyle, pagination, readPaging } from '../request/pagination';
import { queueParam, textParam, timeParam } from '../request/query';
import { json } from '../respond';
import { deadLetters, purgeDeadLetters } from './bulk';

/** Routes below `/ojs/v1`. */
export function deadLetterRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/dead-letter', (c) => deadLetterPage(c));
  routes.get('/dead-letter/stats', async (c) => json(c, await deadLetterStats(c.env, await knownQueues(c.env))));

  routes.get('/dead-letter/:id', async (c) => {
    const id = c.req.param('id');
    const view = unwrap(await withJob(c.env, id, (queue) => queue.deadLetter(id)));
    return json(c, { job: renderJob(view, readConfig(c.env).retryVariables) });
  });

  routes.post('/dead-letter/retry', (c) => deadLetters(c, 'retry'));
  routes.delete('/dead-letter', (c) => deadLetters(c, 'delete'));
  routes.post('/dead-letter/purge', purgeDeadLetters);
  routes.post('/dead-letter/:id/retry', (c) => retryDeadLetter(c, c.req.param('id')));

  routes.delete('/dead-letter/:id', async (c) => {
    const id = c.req.param('id');
    const { job_id } = unwrap(await withJob(c.env, id, (queue) => queue.deleteDeadLetter(id)));
    return json(c, { deleted: true, job_id });
  });

  return routes;
}

/** Gives a dead letter another life, in its queue or in the one that the override names. */
export async function retryDeadLetter(c: AppContext, id: string): Promise<Response> {
  const override = readOverride((await readOptionalBody(c)) ?? {});
  const view = unwrap(
    await withJob(c.env, id, (queue, name) => {
      const { queue: target, ...change } = override ?? {};
      if (target !== undefined && target !== name) return queue.moveDeadLetter(id, { target, override: change });
      return queue.redrive(id, { deadLetterOnly: true, ...(override && { override: change }) });
    }),
  );
  return json(c, { job: renderJob(view, readConfig(c.env).retryVariables) });
}

/** A page of dead letters, newest first; operators' pages call them items. */
export async function deadLetterPage(c: AppContext, style?: PagingStyle): Promise<Response> {
  const paging = readPaging(c, style);
  const now = Date.now();
  const conditions = {
    type: textParam(c, 'type'),
    error_type: textParam(c, 'error_type'),
    since: timeParam(c, 'since', now),
    until: timeParam(c, 'until', now),
  };
  const given = Object.fromEntries(Object.entries(conditions).filter(([, value]) => value !== undefined));
  const queues = queueParam(c, 'queue') ?? (await knownQueues(c.env));
  const page = await listDeadLetters(c.env, { queues, ...given }, paging);
  const { retryVariables } = readConfig(c.env);
  return json(c, {
    [style === 'page' ? 'items' : 'jobs']: page.jobs.map((view) => renderJob(view, retryVariables)),
    total: page.total,
    pagination: pagination(paging, page.total, page.hasMore, page.nextCursor),
  });
}

interface Override {
  queue?: string;
  meta?: Record<string, unknown>;
  retry?: RetryInput;
}

const OVERRIDABLE = ['queue', 'meta', 'retry'];

/** What to change about the job before it runs again. @throws {ApiError} 400, 413, 422 */
function readOverride(body: JsonObject): Override | undefined {
  const given = optional(body, 'override', readObject);
  if (given === undefined) return undefined;
  const unknown = Object.keys(given).find((name) => !OVERRIDABLE.includes(name));
  if (unknown !== undefined) {
    throw unsupported(`override.${unknown} cannot be changed.`, { field: `override.${unknown}` });
  }
  const queue = optional(given, 'queue', readQueueName, 'override.');
  const meta = optional(given, 'meta', readMeta, 'override.');
  const retry = optional(given, 'retry', (value, field) => checkRetryLayer(value, field), 'override.');
  return { ...(queue !== undefined && { queue }), ...(meta && { meta }), ...(retry && { retry }) };
}
