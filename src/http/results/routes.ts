/** Results of jobs: of one, waiting for its end if asked to, or of many at once. */
import { isInside } from '../../across/bounds';
import { readJobs } from '../../across/locate';
import { type JobResult, results } from '../../contract/results';
import { parseParts } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { type ApiError, invalidRequest, refusal } from '../../job/errors';
import { own } from '../../job/own';
import type { JobView } from '../../job/record';
import { TERMINAL_STATES } from '../../job/states';
import { type AppContext, json } from '../context';
import { envelopeOf } from '../jobs/render';
import { readBody } from '../request/body';
import { boundsOf } from '../request/bounds';
import { readIds } from '../request/many-jobs';
import { callJob } from '../request/path';
import { textParam } from '../request/query';
import { serve } from '../route';

const DEFAULT_WAIT_SECONDS = 30;
const MAX_WAIT_SECONDS = 60;

/** Seconds until a client should ask again about an unfinished job. */
const LOOK_AGAIN_SECONDS = '1';

/** Characters of results in one answer; the rest must be asked for again. */
const MAX_ANSWER_CHARS = 16 * 1024 * 1024;

export const resultRoutes = serve(results, { one: oneResult, many: manyResults });

async function oneResult(c: AppContext) {
  const seconds = readWait(c);
  const wait = Math.round((seconds ?? 0) * 1000);
  const view = await callJob(c, (queue, id) => queue.awaitEnd(id, wait));
  if (hasEnded(view)) return json(c, render(c, view));
  if (seconds !== undefined) throw notEnded(view, seconds);
  return json(c, render(c, view), 200, { 'Retry-After': LOOK_AGAIN_SECONDS });
}

const hasEnded = (view: JobView): boolean => TERMINAL_STATES.includes(view.record.state);

function render(c: AppContext, view: JobView): JobResult {
  const job = envelopeOf(c, view);
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
  return refusal(408, 'timeout', `Job ${id} has not ended within ${seconds} s: it is ${state}.`, {
    retryable: true,
    details: { job_id: id, current_state: state },
    headers: { 'Retry-After': LOOK_AGAIN_SECONDS },
  });
}

async function manyResults(c: AppContext) {
  const { ids: given } = await readBody(c, MAX_ENVELOPE_BYTES, parseParts);
  if (given === undefined || given === null) throw invalidRequest('ids', 'ids is required.');
  const ids = [...new Set(readIds(given, 'ids', 'jobs'))];
  const found = await readJobs(c.env, ids);
  const results: Record<string, JobResult> = {};
  const omitted = boundsOf(c) ? [] : [...found.omitted];
  let chars = 0;
  const bounds = boundsOf(c);
  for (const view of found.jobs.filter((one) => isInside(bounds, one))) {
    const { id } = view.record;
    if (chars > MAX_ANSWER_CHARS) omitted.push(id);
    else results[id] = render(c, view);
    chars += view.record.result?.length ?? 0;
  }
  const missing = ids.filter((id) => own(results, id) === undefined && !omitted.includes(id));
  return json(c, { results, missing, omitted });
}
