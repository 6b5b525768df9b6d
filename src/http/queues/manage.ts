/** What changes a whole queue: create, drain, purge, delete. */
import { type OperationSummary, operate } from '../../across/operations';
import { queueManagement } from '../../contract/queues';
import { defined, optional, readName, readObject, readQueueName } from '../../job/envelope/fields';
import { conflict, invalidRequest, unwrap } from '../../job/errors';
import type { JobFilter } from '../../job/filter';
import { MAX_GROUP_LENGTH } from '../../job/group';
import { JOB_STATES, type JobState } from '../../job/states';
import type { RemovalStrategy } from '../../rpc/operations';
import { queueObject } from '../../rpc/stubs';
import { previewOf, readWaitMs } from '../bulk/operate';
import { continuation, locationOf, statusOf } from '../bulk/render';
import { type AppContext, json, mayPurge } from '../context';
import { type JsonObject, readBody, readOptionalBody } from '../request/body';
import { readAge } from '../request/filter/conditions';
import { requireConfirmation } from '../request/many-jobs';
import { mayCreate, mustExist } from '../request/new-queues';
import { queueNameIn } from '../request/path';
import { oneOf } from '../request/query';
import { serve } from '../route';
import { parseQueueConfig, renderQueueConfig } from './config';
import { createdAt } from './render';
import { setMode } from './routes';

const HOW_TO_CHANGE = 'Change its settings with PUT /ojs/v1/queues/:name/config.';

const STRATEGIES: readonly RemovalStrategy[] = ['reject', 'discard', 'move'];

export const queueManagementRoutes = serve(queueManagement, { create, drain, purge, remove });

async function create(c: AppContext) {
  const { name, config, ...flat } = await readBody(c);
  if (name === undefined) throw invalidRequest('name', 'name is required.');
  const queue = readQueueName(name, 'name');
  const change = parseQueueConfig({ ...flat, ...optional({ config }, 'config', readObject) });
  const object = queueObject(c.env, queue);
  await mayCreate(c, [{ queue }]);
  if (unwrap(await object.stats()).exists) throw conflict(`Queue ${queue} exists already.`, { queue }, HOW_TO_CHANGE);
  const settings = renderQueueConfig(unwrap(await object.configure(change, mayPurge(c))));
  const created = createdAt(unwrap(await object.stats()));
  return json(c, { name: queue, state: 'active' as const, config: settings, ...created }, 201, {
    Location: `/ojs/v1/queues/${queue}`,
  });
}

async function drain(c: AppContext) {
  const { at, ...changed } = await setMode(c, 'drain');
  return json(c, { ...changed, drained_at: at });
}

async function purge(c: AppContext) {
  const body = await readBody(c);
  const preview = await previewPurge(c, body);
  if (preview) return preview;
  const { confirm = true } = body;
  requireConfirmation(confirm);
  const { summary } = await purgeJobs(c, body);
  return json(c, { deleted: summary.succeeded, ...continuation(summary) }, statusOf(summary), locationOf(summary));
}

async function remove(c: AppContext) {
  const queue = queueNameIn(c);
  const body = (await readOptionalBody(c)) ?? {};
  const given = optional(body, 'strategy', readName(20)) ?? c.req.query('strategy') ?? 'reject';
  const strategy = oneOf([given], STRATEGIES, 'strategy')?.[0] ?? 'reject';
  const target = optional(body, 'target_queue', readQueueName) ?? c.req.query('target_queue');
  if (strategy === 'move' && target === undefined) {
    throw invalidRequest('target_queue', 'target_queue is required to move jobs.');
  }
  const target_queue = target === undefined ? undefined : readQueueName(target, 'target_queue');
  const request = defined({ strategy, target_queue });
  const removal = unwrap(await queueObject(c.env, queue).remove(request, readWaitMs(c)));
  return json(c, { queue, ...removal }, 202);
}

/** The states, age and group of the jobs to purge. @throws {ApiError} 400 */
function readPurge(body: JsonObject, now: number): { filter: JobFilter; states: JobState[] } {
  const { states: given, older_than, group } = body;
  if (!Array.isArray(given) || given.length === 0 || !given.every((state) => typeof state === 'string')) {
    throw invalidRequest('states', `states is required: a list of ${JOB_STATES.join(', ')}.`);
  }
  const states = [...new Set(oneOf(given as string[], JOB_STATES, 'states'))];
  if (states.includes('active')) {
    throw invalidRequest('states', 'states: running jobs cannot be purged; cancel them first.');
  }
  const max = optional({ older_than }, 'older_than', (value, field) => readAge(value, field, now));
  return {
    states,
    filter: defined({
      states,
      aged: max === undefined ? undefined : { max },
      group: optional({ group }, 'group', readName(MAX_GROUP_LENGTH)),
    }),
  };
}

/** With `dry_run`: how many jobs would be removed. */
export async function previewPurge(c: AppContext, body: JsonObject) {
  const queue = queueNameIn(c);
  return previewOf(c, 'purge', body, (now) => ({ filter: readPurge(body, now).filter, queues: [queue] }));
}

/** Removes jobs of the queue that the path names for good. */
export async function purgeJobs(
  c: AppContext,
  body: JsonObject,
): Promise<{ summary: OperationSummary; states: JobState[] }> {
  const queue = queueNameIn(c);
  const { filter, states } = readPurge(body, Date.now());
  await mustExist(c, queue);
  return { summary: await operate(c.env, 'purge', { filter, queues: [queue] }, readWaitMs(c)), states };
}
