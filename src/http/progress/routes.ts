/** Progress of a running job: reported by its worker, read by whoever waits. */
import { defined, given, optional, type Reader, readObject, withinBytes } from '../../job/envelope/fields';
import { MAX_META_BYTES } from '../../job/envelope/names';
import { invalidRequest } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { ProgressReport, ProgressRequest } from '../../rpc/workers';
import { checkpointContent } from '../checkpoints/routes';
import { type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { callJob } from '../request/path';
import { get, post, put, REPORTS, type Route } from '../route';
import { readAttempt } from '../workers/reports';

/** Longest `message`, in characters. */
const MAX_MESSAGE = 8192;

/** Routes below `/ojs/v1`. */
export const progressRoutes: readonly Route[] = [
  put('/jobs/:id/progress', report, REPORTS),
  post('/jobs/:id/progress', report, REPORTS),
  post('/workers/progress', report, REPORTS),
  get('/jobs/:id/progress', async (c) => answer(c, await callJob(c, (queue, id) => queue.progress(id)))),
];

async function report(c: AppContext): Promise<Response> {
  const request = readProgress(c, await readBody(c, MAX_BATCH_BYTES));
  return answer(c, await callJob(c, (queue) => queue.reportProgress(request), request.job_id));
}

const readNumber: Reader<number> = (value, field) => {
  if (typeof value === 'number') return value;
  throw invalidRequest(field, `${field} must be a number.`);
};

const readMessage: Reader<string> = (value, field) => {
  if (typeof value === 'string' && value.length <= MAX_MESSAGE) return value;
  throw invalidRequest(field, `${field} must be a string of at most ${MAX_MESSAGE} characters.`);
};

/** Reads a report: `progress` 0 … 1 or `percentage` 0 … 100, clamped. @throws {ApiError} 400, 404 or 413 */
function readProgress(c: AppContext, body: JsonObject): ProgressRequest {
  const fraction = optional(body, 'progress', readNumber);
  const percentage = optional(body, 'percentage', readNumber);
  const progress = fraction ?? (percentage === undefined ? undefined : percentage / 100);
  if (progress === undefined) {
    const field = c.req.param('id') === undefined ? 'percentage' : 'progress';
    throw invalidRequest(field, 'progress (0 to 1) or percentage (0 to 100) is required.');
  }
  const message = optional(body, 'message', readMessage);
  const data = optional(body, 'data', readObject);
  if (data !== undefined) withinBytes(JSON.stringify(data), MAX_META_BYTES, 'data');
  const { checkpoint } = body;
  return {
    ...readAttempt(c, body),
    progress: Math.min(Math.max(progress, 0), 1),
    ...defined({ message, data }),
    ...((checkpoint ?? null) !== null && { checkpoint: checkpointContent({ state: checkpoint }, 'checkpoint') }),
  };
}

function answer(c: AppContext, { at, checkpoint, ...report }: ProgressReport): Response {
  return json(
    c,
    {
      job_id: report.job_id,
      state: report.state,
      // Whoever runs the job hears here that it need not go on.
      cancelled: report.state === 'cancelled',
      progress: report.progress ?? null,
      message: report.message ?? null,
      data: report.data ?? null,
      updated_at: given(at, formatInstant) ?? null,
      ...(checkpoint && {
        checkpoint: { sequence: checkpoint.sequence, created_at: formatInstant(checkpoint.created_at) },
      }),
    },
    200,
    report.progress === undefined ? {} : { 'X-OJS-Progress': String(report.progress) },
  );
}
