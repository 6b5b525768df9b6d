/** Routes of workers that pull: fetch, ack, nack, heartbeat, health. */
import { Hono } from 'hono';
import { withJob } from '../../across/locate';
import { knownQueues } from '../../across/queues';
import { readConfig } from '../../config';
import { inParallel } from '../../durable/parallel';
import { optional, type Reader, readList, readMilliseconds, readQueueName } from '../../job/envelope/fields';
import { type Envelope, renderJob } from '../../job/envelope/render';
import { invalidRequest, notFound, unsupported, unwrap } from '../../job/errors';
import type { JobView } from '../../job/record';
import { formatInstant } from '../../job/time';
import type { WorkerView } from '../../rpc/directory';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { ClaimRequest } from '../../rpc/workers';
import type { AppContext, AppEnv } from '../context';
import { groupByHome } from '../job-groups';
import { type JsonObject, MAX_BATCH_BYTES, readBody, readOptionalBody } from '../request/body';
import { encodeCursor, type PagingStyle, pagination, readAfter, readPaging } from '../request/pagination';
import { json } from '../respond';
import { DELIVERY_HEADER, forQueue, type Heartbeat, readAck, readHeartbeat, readNack, readWorkerId } from './reports';

const MAX_QUEUES = 100;
const MAX_COUNT = 100;
const MAX_WAIT_MS = 20_000;

const readQueues: Reader<string[]> = (value, field) => [...new Set(readList(MAX_QUEUES, readQueueName)(value, field))];

/** Routes below `/ojs/v1`. */
export function workerRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  for (const path of ['/workers/fetch', '/jobs/fetch']) routes.post(path, fetchJobs);
  for (const path of ['/workers/heartbeat', '/workers/beat']) routes.post(path, heartbeat);
  routes.get('/workers/:id/health', workerHealth);
  routes.post('/workers/ack', async (c) => ack(c, await readBody(c, MAX_BATCH_BYTES), undefined));
  routes.post('/workers/nack', async (c) => nack(c, await readBody(c), undefined));
  routes.post('/jobs/:id/ack', async (c) => {
    return ack(c, (await readOptionalBody(c, MAX_BATCH_BYTES)) ?? {}, c.req.param('id'));
  });
  routes.post('/jobs/:id/nack', async (c) => nack(c, (await readOptionalBody(c)) ?? {}, c.req.param('id')));
  return routes;
}

/** Workers known from their heartbeats. */
export async function listWorkers(c: AppContext, style?: PagingStyle): Promise<Response> {
  const paging = readPaging(c, style);
  const after = paging.cursor === undefined ? {} : { after: readAfter(paging.cursor) };
  const { limit, offset } = paging;
  const { workers, summary, more } = await directoryObject(c.env).workers({ limit, offset, ...after });
  const items = workers.map(renderWorker);
  const next = encodeCursor({ after: workers.at(-1)?.id });
  return json(c, { items, workers: items, summary, pagination: pagination(paging, summary.total, more, next) });
}

/** A worker as operators see it. */
export function renderWorker({ labels, started_at, last_heartbeat_at, ...worker }: WorkerView) {
  const seen = formatInstant(last_heartbeat_at);
  return {
    hostname: null,
    pid: null,
    queues: [],
    concurrency: null,
    version: null,
    ...worker,
    started_at: formatInstant(started_at),
    last_heartbeat_at: seen,
    last_heartbeat: seen,
    metadata: labels === undefined ? {} : { labels },
  };
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
    unwrap(await queueObject(c.env, queue).claim({ ...rest, count, ...(wait > 0 && { wait_ms: wait }) }));

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
  const view = unwrap(await withJob(c.env, request.job_id, (queue) => queue.ack(request)));
  const job = renderJob(view, readConfig(c.env).retryVariables);
  return json(c, { acknowledged: true, ...pick(job, ['id', 'state', 'completed_at']), job_id: job.id, job });
}

async function nack(c: AppContext, body: JsonObject, pathId: string | undefined): Promise<Response> {
  const request = readNack(body, pathId, c.req.header(DELIVERY_HEADER));
  const view = unwrap(await withJob(c.env, request.job_id, (queue) => queue.nack(request)));
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

/**
 * Extends the worker's leases and registers it. Its jobs come first: when the directory cannot be reached, the worker is
 * told to go on, and its leases are extended all the same.
 */
async function heartbeat(c: AppContext): Promise<Response> {
  const heard = readHeartbeat(await readBody(c), readQueues);
  const [answers, told] = await Promise.all([extendLeases(c, heard), register(c, heard)]);
  const directives: (string | undefined)[] = [told, ...answers.map(({ directive }) => directive)];
  return json(c, {
    acknowledged: true,
    state: ['terminate', 'quiet'].find((state) => directives.includes(state)) ?? 'running',
    jobs_extended: [...new Set(answers.flatMap(({ extended }) => extended))],
    server_time: formatInstant(Date.now()),
  });
}

async function extendLeases(c: AppContext, heard: Heartbeat): Promise<{ extended: string[]; directive?: string }[]> {
  const held: Map<string, string[] | undefined> =
    heard.job_ids === undefined
      ? new Map((heard.queues ?? (await knownQueues(c.env))).map((queue) => [queue, undefined]))
      : await groupByHome(c.env, heard.job_ids, heard.queues);
  const { testHooks } = readConfig(c.env);
  return inParallel([...held], async ([queue, ids]) => {
    const { extended, directive } = unwrap(await queueObject(c.env, queue).heartbeat(forQueue(heard, ids)));
    return { extended, ...(testHooks && directive !== undefined && { directive }) };
  });
}

async function register(c: AppContext, heard: Heartbeat): Promise<string> {
  try {
    const { directive, silenced, silencedChanged } = await directoryObject(c.env).beat(heard.beat);
    if (silencedChanged) await tellQueues(c, [heard.worker_id], silenced, heard.queues);
    return directive;
  } catch (error) {
    console.error(`${c.get('requestId')} worker ${heard.worker_id} could not be registered:`, error);
    return 'running';
  }
}

/** Lets queues know at once whether these workers may get jobs; what is missed here they find out within a minute. */
export async function tellQueues(c: AppContext, ids: string[], silenced: boolean, queues?: string[]): Promise<void> {
  const names = queues ?? (await knownQueues(c.env));
  await inParallel(names, (name) => queueObject(c.env, name).silence(ids, silenced));
}

/** Is this worker at work? 503 once it leaves or is silent for too long, so that a load balancer or supervisor sees it. */
async function workerHealth(c: AppContext): Promise<Response> {
  const id = c.req.param('id') ?? '';
  const worker = await directoryObject(c.env).worker(id);
  if (worker === null) throw notFound('worker', id, 'Workers are known from their first heartbeat on.');
  const leaving = worker.reported_state === 'draining' || worker.reported_state === 'shutting_down';
  const state = leaving && worker.state !== 'stale' ? worker.reported_state : worker.state;
  const healthy = state === 'running' || state === 'quiet';
  const { id: worker_id, ...rest } = renderWorker(worker);
  return json(c, { worker_id, ...rest, state, healthy }, healthy ? 200 : 503, healthy ? {} : { 'Retry-After': '5' });
}
