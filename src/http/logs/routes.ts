/** What the attempts of a job have logged: the newest lines. */

import { invalidRequest } from '../../job/errors';
import { readLines } from '../../job/log';
import { type AppContext, json } from '../context';
import { readBody } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { get, post, REPORTS, type Route } from '../route';
import { attemptIn } from '../workers/reports';

/** Routes below `/ojs/v1`. */
export const logRoutes: readonly Route[] = [
  get('/jobs/:id/log', async (c) => {
    return json(c, { job_id: pathParam(c, 'id'), lines: await callJob(c, (queue, id) => queue.log(id)) });
  }),
  post('/jobs/:id/log', add, REPORTS),
];

async function add(c: AppContext): Promise<Response> {
  const body = await readBody(c);
  if (body.lines === undefined) throw invalidRequest('lines', 'lines is required and must be an array.');
  const request = { ...attemptIn(c, body), lines: readLines(Date.now())(body.lines, 'lines') };
  return json(c, { ...(await callJob(c, (queue) => queue.addLog(request))) });
}
