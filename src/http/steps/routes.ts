/** Durable steps of a job, and the signals that it waits for. */
import { REDACTED } from '../../access/redaction';
import { type JobSteps, type StepRecorded, steps } from '../../contract/steps';
import { storableText } from '../../job/attempt/notes';
import { parseReport } from '../../job/envelope/json';
import { MAX_ENVELOPE_BYTES } from '../../job/envelope/names';
import { own } from '../../job/own';
import { isSignalUrl } from '../../job/signal-url';
import { noStep, readStepName, readStepSaid } from '../../job/steps';
import { formatInstant } from '../../job/time';
import { refuseOthers } from '../../job/unknown-members';
import type { JobStep } from '../../job/wire';
import { type AppContext, json, may } from '../context';
import { answerJob } from '../jobs/render';
import { MAX_BATCH_BYTES, readBody, readOptionalBody } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { serve } from '../route';
import { attemptIn } from '../workers/report-in-request';

export const stepRoutes = serve(steps, { list, show, record, signal });

/** Only who may send a signal sees the URL that does. */
export function stepsShown(c: AppContext, steps: JobSteps['steps']): JobSteps['steps'] {
  if (may(c, 'data:write')) return steps;
  const urls = Object.entries(steps).filter(([name, { result }]) => isSignalUrl(name, result));
  return { ...steps, ...Object.fromEntries(urls.map(([name, step]) => [name, { ...step, result: REDACTED }])) };
}

async function list(c: AppContext) {
  const recorded: JobSteps['steps'] = JSON.parse(await callJob(c, (queue, id) => queue.steps(id)));
  return json(c, { job_id: pathParam(c, 'id'), steps: stepsShown(c, recorded) });
}

async function show(c: AppContext) {
  const name = readStepName(pathParam(c, 'name'), 'name');
  const known: Record<string, JobStep> = JSON.parse(await callJob(c, (queue, id) => queue.steps(id)));
  const record = own(stepsShown(c, known), name);
  if (!record) throw noStep(name);
  const { result_bytes: bytes, ...step } = record;
  const [part] = bytes === undefined ? [] : await callJob(c, (queue, id) => queue.stepParts(id, [name]));
  const result = part && { result: (JSON.parse(part.data) as unknown[])[0] };
  return json(c, { job_id: pathParam(c, 'id'), name, ...(result ? { ...step, ...result } : record) });
}

/** Records a step, its sleep, or that its signal has not come. A recorded step is answered from its record. */
async function record(c: AppContext) {
  const name = readStepName(pathParam(c, 'name'), 'name');
  const body = await readBody(c, MAX_BATCH_BYTES, parseReport);
  const step = readStepSaid(body);
  const request = { ...attemptIn(c, body, 'step'), name, record: JSON.stringify(step) };
  const { earlier } = await callJob(c, (queue) => queue.recordStep(request));
  const known: JobStep = earlier === undefined ? {} : JSON.parse(earlier);
  return json(c, { job_id: request.job_id, name, recorded: true, ...known } satisfies StepRecorded);
}

async function signal(c: AppContext) {
  const name = readStepName(pathParam(c, 'name'), 'name');
  const body = (await readOptionalBody(c, MAX_ENVELOPE_BYTES, parseReport)) ?? {};
  refuseOthers(body, ['payload']);
  const payload = storableText(body.payload ?? null, 'payload');
  const { job, at } = await callJob(c, (queue, job_id) => queue.signal({ job_id, name, payload }));
  return answerJob(c, job, { signal: { name, at: formatInstant(at) } });
}
