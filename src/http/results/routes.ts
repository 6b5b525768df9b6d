/** Results of jobs: of one, waiting for its end if asked to, or of many at once. */
import { Hono } from 'hono';
import { withJob } from '../../across/locate';
import { knownQueues } from '../../across/queues';
import { readConfig } from '../../config';
import { inParallel } from '../../durable/parallel';
import { readList, readString } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { type Envelope, renderJob } from '../../job/envelope/render';
import { ApiError, invalidRequest, payloadTooLarge, unwrap } from '../../job/errors';
import type { JobView } from '../../job/record';
import { TERMINAL_STATES } from '../../job/states';
import { queueObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { groupByHome } from '../job-groups';
import { readBody } from '../request/body';
import { textParam } from '../request/query';
import { json } from '../respond';

const DEFAULT_WAIT_SECONDS = 30;
const MAX_WAIT_SECONDS = 60;

/** When to look again at a job that has not ended, seconds. */
const LOOK_AGAIN_SECONDS = '1';

/** Characters of results in one answer; what is beyond is asked for again. */
const MAX_ANSWER_CHARS = 16 * 1024 * 1024;

/** Routes below `/ojs/v1`. */
export function resultRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/jobs/:id/result', (c) => oneResult(c, c.req.param('id')));
  routes.post('/jobs/results', manyResults);
  return routes;
}

async function oneResult(c: AppContext, id: string): Promise<Response> {
  const seconds = readWait(c);
  const wait = Math.round((seconds ?? 0) * 1000);
  const view = unwrap(await withJob(c.env, id, (queue) => queue.awaitEnd(id, wait)));
  if (hasEnded(view)) return json(c, render(c, view));
  if (seconds !== undefined) throw notEnded(view, seconds);
  return json(c, render(c, view), 200, { 'Retry-After': LOOK_AGAIN_SECONDS });
}

const hasEnded = (view: JobView): boolean => TERMINAL_STATES.includes(view.record.state);

function render(c: AppContext, view: JobView): Envelope {
  const job = renderJob(view, readConfig(c.env).retryVariables);
  return {
    job_id: job.id,
    state: job.state,
    result: job.result ?? null,
    ...(hasEnded(view) && job.error !== undefined && { error: job.error }),
    completed_at: job.completed_at ?? null,
  };
}

/** How long to wait, in seconds; undefined: not at all. @throws {ApiError} 400 */
function readWait(c: AppContext): number | undefined {
  const wait = textParam(c, 'wait') ?? 'false';
  if (!['true', 'false', '1', '0'].includes(wait)) throw invalidRequest('wait', 'wait must be true or false.');
  const timeout = textParam(c, 'timeout') ?? String(DEFAULT_WAIT_SECONDS);
  if (!/^[+-]?\d+(\.\d+)?$/.test(timeout)) {
    throw invalidRequest('timeout', `timeout must be a number of seconds, at most ${MAX_WAIT_SECONDS}.`);
  }
  if (wait === 'false' || wait === '0') return undefined;
  return Math.min(Math.max(Number(timeout), 0), MAX_WAIT_SECONDS);
}

function notEnded(view: JobView, seconds: number): ApiError {
  const { id, state } = view.record;
  return new ApiError({
    status: 408,
    code: 'timeout',
    message: `Job ${id} has not ended within ${seconds} s: it is ${state}.`,
    retryable: true,
    details: { job_id: id, current_state: state },
    headers: { 'Retry-After': LOOK_AGAIN_SECONDS },
  });
}

async function manyResults(c: AppContext): Promise<Response> {
  const { ids: given } = await readBody(c);
  if (given === undefined || given === null) throw invalidRequest('ids', 'ids is required.');
  if (Array.isArray(given) && given.length > MAX_BATCH_SIZE) {
    throw payloadTooLarge('ids', given.length, MAX_BATCH_SIZE, 'jobs');
  }
  const ids = [...new Set(readList(MAX_BATCH_SIZE, readString)(given, 'ids'))];
  const found = await lookUp(c, ids);
  const results: Record<string, Envelope> = {};
  const omitted = [...found.omitted];
  let chars = 0;
  for (const view of found.jobs) {
    const { id } = view.record;
    if (chars > MAX_ANSWER_CHARS) omitted.push(id);
    else results[id] = render(c, view);
    chars += view.record.result?.length ?? 0;
  }
  const missing = ids.filter((id) => results[id] === undefined && !omitted.includes(id));
  return json(c, { results, missing, omitted });
}

/** Asks the queues that the ids name, then all others for what is left. */
async function lookUp(c: AppContext, ids: readonly string[]): Promise<{ jobs: JobView[]; omitted: string[] }> {
  const ask = (groups: Map<string, string[]>) =>
    inParallel([...groups], ([queue, group]) => queueObject(c.env, queue).getMany(group));
  const groups = await groupByHome(c.env, ids);
  const first = await ask(groups);
  const jobs = first.flatMap((answer) => answer.jobs);
  const omitted = first.flatMap((answer) => answer.omitted);
  const seen = new Set([...jobs.map(({ record }) => record.id), ...omitted]);
  // An id chosen by a client may carry a route by accident.
  const elsewhere = new Map<string, string[]>();
  const left = [...new Set([...groups.values()].flat())].filter((id) => !seen.has(id));
  if (left.length === 0) return { jobs, omitted };
  for (const queue of await knownQueues(c.env)) {
    const asked = new Set(groups.get(queue));
    const unasked = left.filter((id) => !asked.has(id));
    if (unasked.length > 0) elsewhere.set(queue, unasked);
  }
  const second = await ask(elsewhere);
  return {
    jobs: [...jobs, ...second.flatMap((answer) => answer.jobs)],
    omitted: [...omitted, ...second.flatMap((answer) => answer.omitted)],
  };
}
