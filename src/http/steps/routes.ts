/** Durable steps of a job, and the signals that it waits for. */
import { readStepName, readStepSaid } from '../../job/steps';
import { formatInstant } from '../../job/time';
import { type AppContext, json } from '../context';
import { answerJob } from '../jobs/render';
import { readBody, readOptionalBody } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { DATA, get, post, put, REPORTS, type Route } from '../route';
import { attemptIn } from '../workers/reports';

/** Routes below `/ojs/v1`. */
export const stepRoutes: readonly Route[] = [
  get('/jobs/:id/steps', async (c) => {
    const steps = JSON.parse(await callJob(c, (queue, id) => queue.steps(id)));
    return json(c, { job_id: pathParam(c, 'id'), steps });
  }),
  put('/jobs/:id/steps/:name', record, REPORTS),
  post('/jobs/:id/signals/:name', signal, DATA),
];

/** Records a step, its sleep, or that its signal has not come. A step that is on record is answered as it is there. */
async function record(c: AppContext): Promise<Response> {
  const name = readStepName(pathParam(c, 'name'), 'name');
  const body = await readBody(c);
  const step = readStepSaid(body);
  const request = { ...attemptIn(c, body), name, record: JSON.stringify(step) };
  const { earlier } = await callJob(c, (queue) => queue.recordStep(request));
  return json(c, { job_id: request.job_id, name, recorded: true, ...(earlier !== undefined && JSON.parse(earlier)) });
}

async function signal(c: AppContext): Promise<Response> {
  const name = readStepName(pathParam(c, 'name'), 'name');
  const payload = JSON.stringify((await readOptionalBody(c))?.payload ?? null);
  const { job, at } = await callJob(c, (queue, job_id) => queue.signal({ job_id, name, payload }));
  return answerJob(c, job, { signal: { name, at: formatInstant(at) } });
}
