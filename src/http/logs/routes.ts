/** What the attempts of a job have logged: the newest lines. */

import { logs } from '../../contract/logs';
import { parseReport } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { invalidRequest } from '../../job/errors';
import { readLines } from '../../job/log';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { serve } from '../route';
import { attemptIn } from '../workers/report-in-request';

export const logRoutes = serve(logs, { show, add });

async function show(c: AppContext) {
  return json(c, { job_id: pathParam(c, 'id'), lines: await callJob(c, (queue, id) => queue.log(id)) });
}

async function add(c: AppContext) {
  const body = await readBody(c, MAX_ENVELOPE_BYTES, parseReport);
  if (body.lines === undefined) throw invalidRequest('lines', 'lines is required and must be an array.');
  const request = { ...attemptIn(c, body, 'log'), lines: readLines(Date.now())(body.lines, 'lines') };
  return json(c, { ...(await callJob(c, (queue) => queue.addLog(request))) });
}
