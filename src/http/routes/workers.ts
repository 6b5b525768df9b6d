/** Routes of workers that pull: fetch, ack, nack, heartbeat. */
import { Hono } from 'hono';
import { readConfig } from '../../config';
import { optional, type Reader, readList, readMilliseconds, readQueueName } from '../../job/envelope/fields';
import { type Envelope, renderJob } from '../../job/envelope/render';
import { invalidRequest, unsupported, unwrap } from '../../job/errors';
import { isUuidV7 } from '../../job/ids';
import type { JobView } from '../../job/record';
import { formatInstant } from '../../job/time';
import type { ClaimRequest } from '../../queue/api';
import { type JsonObject, MAX_BATCH_BYTES, readBody, readOptionalBody } from '../body';
import type { AppContext, AppEnv } from '../context';
import { queueOfRoute, withJob } from '../locate';
import { inParallel, knownQueues, queueObject } from '../objects';
import { pagination, readPaging } from '../pagination';
import { forQueue, type Heartbeat, readAck, readHeartbeat, readNack, readWorkerId } from '../reports';
import { json } from '../respond';

const MAX_QUEUES = 100;
const MAX_COUNT = 100;
const MAX_WAIT_MS = 20_000;
const DELIVERY_HEADER = 'X-OJS-Delivery-ID';

const readQueues: Reader<string[]> = (value, field) => [...new Set(readList(MAX_QUEUES, readQueueName)(value, field))];

/** Routes below `/ojs/v1`. */
export function workerRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  for (const path of ['/workers/fetch', '/jobs/fetch']) routes.post(path, fetchJobs);
  for (const path of ['/workers/heartbeat', '/workers/beat']) routes.post(path, heartbeat);
  routes.post('/workers/ack', async (c) => ack(c, await readBody(c, MAX_BATCH_BYTES), undefined));
  routes.post('/workers/nack', async (c) => nack(c, await readBody(c), undefined));
  routes.post('/jobs/:id/ack', async (c) => {
    return ack(c, (await readOptionalBody(c, MAX_BATCH_BYTES)) ?? {}, c.req.param('id'));
  });
  routes.post('/jobs/:id/nack', async (c) => nack(c, (await readOptionalBody(c)) ?? {}, c.req.param('id')));
  return routes;
}

/** Workers known to the server. Heartbeats are not registered yet, so there are none to show. */
export function listWorkers(c: AppContext): Response {
  return json(c, {
    items: [],
    workers: [],
    summary: { total: 0, running: 0, quiet: 0, stale: 0 },
    pagination: pagination(readPaging(c), 0, false, null),
  });
}

async function fetchJobs(c: AppContext): Promise<Response> {
  const body = await readBody(c);
  if (body.queues === undefined) throw invalidRequest('queues', 'queues is required.');
  const queues = readQueues(body.queues, 'queues');
  if (queues.length === 0) throw invalidRequest('queues', 'queues must name at least one queue.');
  if ((body.runtime ?? null) !== null)
    throw unsupported('runtime is not offered by this version.', { field: 'runtime' });
  const worker = optional(body, 'worker_id', readWorkerId);
  const visibility = optional(body, 'visibility_timeout_ms', readMilliseconds);
  const views = await claimInOrder(c, queues, {
    count: clamped(body, 'count', 1, MAX_COUNT) ?? 1,
    wait_ms: clamped(body, 'wait_ms', 0, MAX_WAIT_MS) ?? 0,
    ...(worker !== undefined && { worker_id: worker }),
    ...(visibility !== undefined && { visibility_timeout_ms: visibility }),
  });
  const { retryVariables } = readConfig(c.env);
  return json(c, { jobs: views.map((view) => renderJob(view, retryVariables)) });
}

/**
 * Drains the queues in the order given until `count` jobs are claimed. Waiting is left to a single queue, the last:
 * two that wait at once might both hand out jobs, more than were asked for.
 */
async function claimInOrder(c: AppContext, queues: string[], request: ClaimRequest): Promise<JobView[]> {
  const { wait_ms = 0, ...rest } = request;
  const single = queues.length === 1;
  const claim = async (queue: string, count: number, wait: number): Promise<JobView[]> =>
    unwrap(await queueObject(c.env, queue).claim(queue, { ...rest, count, ...(wait > 0 && { wait_ms: wait }) }));

  const claimed: JobView[] = [];
  for (const queue of queues) {
    if (claimed.length >= request.count) break;
    claimed.push(...(await claim(queue, request.count - claimed.length, single ? wait_ms : 0)));
  }
  const last = queues.at(-1);
  if (claimed.length > 0 || single || wait_ms === 0 || last === undefined) return claimed;
  return claim(last, request.count, wait_ms);
}

/** An integer clamped to `min` … `max`. @throws {ApiError} 400 when it is no integer */
function clamped(body: JsonObject, name: string, min: number, max: number): number | undefined {
  return optional(body, name, (value, field) => {
    if (typeof value === 'number' && Number.isInteger(value)) return Math.min(Math.max(value, min), max);
    throw invalidRequest(field, `${field} must be an integer.`);
  });
}

async function ack(c: AppContext, body: JsonObject, pathId: string | undefined): Promise<Response> {
  const request = readAck(body, pathId, c.req.header(DELIVERY_HEADER));
  const view = unwrap(await withJob(c.env, request.job_id, (queue, name) => queue.ack(name, request)));
  const job = renderJob(view, readConfig(c.env).retryVariables);
  return json(c, { acknowledged: true, ...pick(job, ['id', 'state', 'completed_at']), job_id: job.id, job });
}

async function nack(c: AppContext, body: JsonObject, pathId: string | undefined): Promise<Response> {
  const request = readNack(body, pathId, c.req.header(DELIVERY_HEADER));
  const view = unwrap(await withJob(c.env, request.job_id, (queue, name) => queue.nack(name, request)));
  const job = renderJob(view, readConfig(c.env).retryVariables);
  const answer = pick(job, [
    'id',
    'state',
    'attempt',
    'max_attempts',
    'retry_delay_ms',
    'next_attempt_at',
    'completed_at',
    'discarded_at',
  ]);
  return json(c, { ...answer, job_id: job.id, job });
}

function pick(envelope: Envelope, names: readonly string[]): Envelope {
  return Object.fromEntries(names.flatMap((name) => (envelope[name] === undefined ? [] : [[name, envelope[name]]])));
}

async function heartbeat(c: AppContext): Promise<Response> {
  const beat = readHeartbeat(await readBody(c), readQueues);
  const held = await jobsByQueue(c, beat);
  const answers = await inParallel([...held], async ([queue, ids]) =>
    unwrap(await queueObject(c.env, queue).heartbeat(queue, forQueue(beat, ids))),
  );
  const directives = readConfig(c.env).testHooks ? answers.map(({ directive }) => directive) : [];
  return json(c, {
    acknowledged: true,
    state: ['terminate', 'quiet'].find((state) => directives.includes(state)) ?? 'running',
    jobs_extended: [...new Set(answers.flatMap(({ extended }) => extended))],
    server_time: formatInstant(Date.now()),
  });
}

/** Which queues to ask, and for which jobs each; no list means every job the worker holds there. */
async function jobsByQueue(c: AppContext, beat: Heartbeat): Promise<Map<string, string[] | undefined>> {
  if (beat.job_ids === undefined) {
    return new Map((beat.queues ?? (await knownQueues(c.env))).map((queue) => [queue, undefined]));
  }
  const byQueue = new Map<string, string[]>();
  const add = (queue: string, ids: string[]) => byQueue.set(queue, [...(byQueue.get(queue) ?? []), ...ids]);
  const ids = beat.job_ids.filter(isUuidV7);
  const homes = await inParallel(ids, (id) => queueOfRoute(c.env, id));
  for (const home of new Set(homes)) {
    if (home !== undefined)
      add(
        home,
        ids.filter((_, index) => homes[index] === home),
      );
  }
  const homeless = ids.filter((_, index) => homes[index] === undefined);
  // Ids chosen by clients carry no route; each queue extends those it holds.
  if (homeless.length > 0) for (const queue of beat.queues ?? (await knownQueues(c.env))) add(queue, homeless);
  return byQueue;
}
