/** Routes that manage whole queues: create, drain, purge, delete, and how their jobs spread over priorities. */
import { Hono } from 'hono';
import { type OperationSummary, operate, patience } from '../../across/operations';
import { optional, readName, readObject, readQueueName } from '../../job/envelope/fields';
import { ApiError, invalidRequest, unwrap } from '../../job/errors';
import type { JobFilter } from '../../job/filter';
import { JOB_STATES, type JobState } from '../../job/states';
import { formatInstant } from '../../job/time';
import type { RemovalStrategy } from '../../rpc/operations';
import { queueObject } from '../../rpc/stubs';
import { continuation, locationOf, statusOf, unconfirmed } from '../bulk/answers';
import type { AppContext, AppEnv } from '../context';
import { type JsonObject, readBody, readOptionalBody } from '../request/body';
import { readAge } from '../request/filter';
import { queueNameIn } from '../request/path';
import { oneOf } from '../request/query';
import { json } from '../respond';
import { parseQueueConfig, renderQueueConfig } from './config';

const STRATEGIES: readonly RemovalStrategy[] = ['reject', 'discard', 'move'];

/** Routes below `/ojs/v1`. */
export function queueOperationRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();

  routes.post('/queues', async (c) => {
    const { name, config, ...flat } = await readBody(c);
    if (name === undefined) throw invalidRequest('name', 'name is required.');
    const queue = readQueueName(name, 'name');
    const change = parseQueueConfig({ ...flat, ...optional({ config }, 'config', readObject) });
    const object = queueObject(c.env, queue);
    if (unwrap(await object.stats()).exists) throw existsAlready(queue);
    const settings = unwrap(await object.configure(change));
    const { created_at } = unwrap(await object.stats());
    return json(
      c,
      {
        name: queue,
        state: 'active',
        config: renderQueueConfig(settings),
        ...(created_at !== undefined && { created_at: formatInstant(created_at) }),
      },
      201,
      { Location: `/ojs/v1/queues/${queue}` },
    );
  });

  routes.post('/queues/:name/drain', async (c) => {
    const name = queueNameIn(c.req.param('name'));
    await readOptionalBody(c);
    const status = unwrap(await queueObject(c.env, name).drain());
    const rendered = { name, paused: false, status: 'draining' };
    return json(c, { queue: rendered, ...rendered, drained_at: formatInstant(status.changed_at) });
  });

  routes.post('/queues/:name/purge', async (c) => {
    const body = await readBody(c);
    const { confirm = true } = body;
    if (confirm !== true) throw unconfirmed();
    const { summary } = await purge(c, queueNameIn(c.req.param('name')), body);
    return json(c, { deleted: summary.succeeded, ...continuation(summary) }, statusOf(summary), locationOf(summary));
  });

  routes.delete('/queues/:name', async (c) => {
    const queue = queueNameIn(c.req.param('name'));
    const body = (await readOptionalBody(c)) ?? {};
    const given = optional(body, 'strategy', readName(20)) ?? c.req.query('strategy') ?? 'reject';
    const strategy = oneOf([given], STRATEGIES, 'strategy')?.[0] ?? 'reject';
    const target = optional(body, 'target_queue', readQueueName) ?? c.req.query('target_queue');
    if (strategy === 'move' && target === undefined) {
      throw invalidRequest('target_queue', 'target_queue is required to move jobs.');
    }
    const request = { strategy, ...(target !== undefined && { target_queue: readQueueName(target, 'target_queue') }) };
    const removal = unwrap(await queueObject(c.env, queue).remove(request, patience(c)));
    return json(c, { queue, ...removal }, 202);
  });

  routes.get('/queues/:name/priority-stats', async (c) => {
    const queue = queueNameIn(c.req.param('name'));
    return json(c, { queue, distribution: await queueObject(c.env, queue).priorities() });
  });

  return routes;
}

/** The states and age of the jobs to purge. @throws {ApiError} 400 */
function readPurge(body: JsonObject, now: number): { filter: JobFilter; states: JobState[] } {
  const { states: given, older_than } = body;
  if (!Array.isArray(given) || given.length === 0 || !given.every((state) => typeof state === 'string')) {
    throw invalidRequest('states', `states is required: a list of ${JOB_STATES.join(', ')}.`);
  }
  const states = [...new Set(oneOf(given as string[], JOB_STATES, 'states'))];
  if (states.includes('active')) {
    throw invalidRequest('states', 'states: jobs that run cannot be purged; cancel them first.');
  }
  const old = older_than === undefined || older_than === null ? undefined : readAge(older_than, 'older_than', now);
  return { states, filter: { states, ...(old !== undefined && { aged: { max: old } }) } };
}

/** Removes jobs of one queue for good. */
export async function purge(
  c: AppContext,
  queue: string,
  body: JsonObject,
): Promise<{ summary: OperationSummary; states: JobState[] }> {
  const { filter, states } = readPurge(body, Date.now());
  return { summary: await operate(c.env, 'purge', filter, [queue], patience(c)), states };
}

function existsAlready(queue: string): ApiError {
  return new ApiError({
    status: 409,
    code: 'conflict',
    message: `Queue ${queue} exists already.`,
    retryable: false,
    details: { queue },
    hint: 'Change its settings with PUT /ojs/v1/queues/:name/config.',
  });
}
