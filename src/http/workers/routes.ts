/** Workers that pull: fetch, ack, nack, report, heartbeat, health; operators' views of them, and directives. */
import { claimWithin, outsideKey, reportsWithin } from '../../across/bounds';
import { takeReports } from '../../across/hand-out-reports';
import { encodeCursor, readAfter } from '../../across/paging';
import { directWorkers, jobsLeasedBy, knownWorker, removeWorker, takeHeartbeat } from '../../across/workers';
import { pull, type ReportOutcomes } from '../../contract/pull';
import { workerSocket } from '../../contract/worker-socket';
import * as contract from '../../contract/workers';
import { readReports, readWorkerId } from '../../job/attempt/read-report';
import { renderOutcomes } from '../../job/attempt/render-reported';
import { onlyName } from '../../job/bounds';
import { defined, optional, readQueueName, readWord } from '../../job/envelope/fields';
import { parseParts, parseReport } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { invalidRequest, refusal, unwrap } from '../../job/errors';
import { jsonOrText } from '../../job/text';
import { withWrittenTimes } from '../../job/time';
import { type Directive, readHeartbeat, renderHeartbeat } from '../../job/worker/heartbeat';
import { readConnection, SUBPROTOCOL } from '../../job/worker/socket';
import { also } from '../../ojs/names';
import type { WorkerView } from '../../rpc/directory';
import { directoryObject } from '../../rpc/stubs';
import { askToConnect } from '../../rpc/worker-socket';
import type { LeasedJob } from '../../rpc/workers';
import { type AppContext, json, noContent } from '../context';
import { answerJob } from '../jobs/render';
import { type JsonObject, MAX_BATCH_BYTES, readBody, readOptionalBody } from '../request/body';
import { boundsOf, mustSee } from '../request/bounds';
import { creatorOf } from '../request/new-queues';
import { type PagingStyle, pagination, readPaging } from '../request/pagination';
import { callJob, pathParam } from '../request/path';
import { offeredProtocols, switched } from '../request/upgrade';
import { serve } from '../route';
import { fetchJobs } from './fetch';
import { ackIn, nackIn } from './report-in-request';

/** The directives for workers; `resume` is another word for `running`. */
const DIRECTIVES = {
  running: 'running',
  resume: 'running',
  quiet: 'quiet',
  terminate: 'terminate',
} as const satisfies Record<string, Directive>;
const WORDS = Object.keys(DIRECTIVES) as (keyof typeof DIRECTIVES)[];

export const workerRoutes = [
  ...serve(contract.workers, { health }),
  ...serve(workerSocket, { open: connectWorker }),
  ...serve(pull, {
    fetch: fetchJobs,
    fetchJobs,
    heartbeat,
    beat: heartbeat,
    ack: async (c) => ack(c, await readBody(c, MAX_BATCH_BYTES, parseReport)),
    nack: async (c) => nack(c, await readBody(c, MAX_BATCH_BYTES, parseReport)),
    report: reportMany,
    ackJob: async (c) => ack(c, (await readOptionalBody(c, MAX_BATCH_BYTES, parseReport)) ?? {}),
    nackJob: async (c) => nack(c, (await readOptionalBody(c, MAX_BATCH_BYTES, parseReport)) ?? {}),
  }),
];

export const adminWorkerRoutes = serve(contract.adminWorkers, {
  list: (c) => listWorkers(c, 'page'),
  direct,
  show,
  quiet,
  forget: async (c) => {
    await removeWorker(c.env, pathParam(c, 'id'));
    return noContent(c);
  },
});

export async function listWorkers(c: AppContext, style?: PagingStyle) {
  const paging = readPaging(c, style);
  const { limit, offset } = paging;
  const request = defined({ limit, offset, after: readAfter(paging) });
  const { workers, summary, more: hasMore } = await directoryObject(c.env).workers(request);
  const items = workers.map(renderWorker);
  const nextCursor = encodeCursor({ after: workers.at(-1)?.id });
  const place = { total: summary.total, hasMore, nextCursor };
  return json(c, also('WorkerList', { items, summary, pagination: pagination(paging, place) }));
}

async function ack(c: AppContext, body: JsonObject) {
  const request = ackIn(c, body);
  await mustSee(c, request.job_id);
  const job = await callJob(c, (queue) => queue.settle(request), request.job_id);
  return answerJob(c, job, { acknowledged: true as const, job_id: job.record.id });
}

async function nack(c: AppContext, body: JsonObject) {
  const request = nackIn(c, body);
  await mustSee(c, request.job_id);
  const job = await callJob(c, (queue) => queue.settle(request), request.job_id);
  return answerJob(c, job, { job_id: job.record.id });
}

async function heartbeat(c: AppContext) {
  const heard = readHeartbeat(await readBody(c, MAX_ENVELOPE_BYTES, parseParts));
  const answer = renderHeartbeat(await takeHeartbeat(c.env, heard, c.get('requestId'), boundsOf(c)), Date.now());
  return json(c, answer);
}

/** Is this worker active? 503 once it leaves or is silent for too long, for a load balancer or supervisor. */
async function health(c: AppContext) {
  const worker = await knownWorker(c.env, pathParam(c, 'id'));
  const leaving = worker.reported_state === 'draining' || worker.reported_state === 'shutting_down';
  const state = leaving && worker.state !== 'stale' ? worker.reported_state : worker.state;
  const healthy = state === 'running' || state === 'quiet';
  const { id: worker_id, ...rest } = renderWorker(worker);
  return json(c, { worker_id, ...rest, state, healthy }, healthy ? 200 : 503, healthy ? {} : { 'Retry-After': '5' });
}

export function renderWorker({ labels, ...worker }: WorkerView): contract.WorkerStatus {
  return also('WorkerStatus', {
    hostname: null,
    pid: null,
    queues: [],
    concurrency: null,
    version: null,
    ...withWrittenTimes(worker),
    metadata: labels === undefined ? {} : { labels },
  });
}

/** Directs all known workers, or the one in `worker_id`. */
async function direct(c: AppContext) {
  const body = await readBody(c);
  const word = optional(body, 'directive', readWord(WORDS));
  if (word === undefined) throw invalidRequest('directive', 'directive is required.');
  const directive = DIRECTIVES[word];
  const only = optional(body, 'worker_id', readWorkerId);
  if (only !== undefined) await knownWorker(c.env, only);
  const told = await directWorkers(c.env, directive, only === undefined ? undefined : [only]);
  return json(c, { directive, updated: told.length });
}

async function show(c: AppContext) {
  const worker = await knownWorker(c.env, pathParam(c, 'id'));
  return json(c, { ...renderWorker(worker), jobs: (await jobsLeasedBy(c.env, worker)).map(renderLeased) });
}

async function quiet(c: AppContext) {
  const { id } = await knownWorker(c.env, pathParam(c, 'id'));
  await directWorkers(c.env, 'quiet', [id]);
  return json(c, renderWorker(await knownWorker(c.env, id)));
}

const renderLeased = (job: LeasedJob): contract.LeasedJob => ({ ...withWrittenTimes(job), state: 'active' });

/** Answers `POST /workers/report`: 207 when some reports were refused. */
export async function reportMany(c: AppContext) {
  const body = await readBody(c, MAX_BATCH_BYTES, parseParts);
  if (body.reports === undefined) throw invalidRequest('reports', 'reports is required.');
  const entries = readReports(body.reports, 'reports', optional(body, 'worker_id', readWorkerId), Date.now());
  const told: ReportOutcomes = renderOutcomes(
    entries,
    await takeReports(c.env, await reportsWithin(c.env, boundsOf(c), entries)),
  );
  return json(c, told, told.failed > 0 ? 207 : 200);
}

/** Answers `GET /workers/socket`. @throws {ApiError} 426 when it is not an upgrade; 400, 413 */
async function connectWorker(c: AppContext) {
  const offered = offeredProtocols(c, 'POST /ojs/v1/workers/fetch takes jobs over plain HTTP.');
  if (!offered.includes(SUBPROTOCOL)) {
    throw invalidRequest('Sec-WebSocket-Protocol', `Offer the subprotocol ${SUBPROTOCOL}.`, { offered });
  }
  const { key_id: id, key_hash: hash, rate, end } = c.get('caller') ?? {};
  if (end !== undefined) {
    const hint = 'Fetch and report over HTTP: POST /ojs/v1/workers/fetch. Clients do so without a socket.';
    throw refusal(403, 'forbidden', 'Sockets of workers need an API key.', { hint });
  }
  const bounds = boundsOf(c);
  if (bounds && id === undefined) throw outsideKey(bounds, 'Sockets with bounds need a key made at run time.');
  const { worker_id, types, handlers, ...others } = c.req.query();
  if (others.queue === undefined) throw invalidRequest('queue', 'queue is required.');
  const queue = readQueueName(others.queue, 'queue');
  const own = bounds?.types?.every((type) => onlyName([type])) ? bounds.types : undefined;
  const worker = readConnection({
    worker_id,
    types: types?.split(',').map((type) => type.trim()) ?? own,
    handlers: handlers === undefined ? undefined : jsonOrText(handlers),
    visibility_timeout_ms: numberIn(others.visibility_timeout_ms),
    default_visibility_timeout_ms: numberIn(others.default_visibility_timeout_ms),
  });
  const creator = creatorOf(c);
  const key = id !== undefined && hash !== undefined ? defined({ id, hash, rate, bounds }) : undefined;
  const connection = { ...claimWithin(bounds, [queue], worker), ...defined({ creator, key }) };
  const webSocket = unwrap(await askToConnect(c.env, queue, connection));
  return switched(c, webSocket, SUBPROTOCOL);
}

const numberIn = (text: string | undefined) => (text === undefined ? undefined : Number(text));
