/** Progress of a running job: reported by its worker, read by whoever waits. */
import { defined, optional, type Reader, readObject } from '../../job/envelope/fields';
import { MAX_META_BYTES, utf8Bytes } from '../../job/envelope/names';
import { invalidRequest, payloadTooLarge } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { ProgressReport, ProgressRequest } from '../../rpc/workers';
import { checkpointContent } from '../checkpoints/routes';
import { type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { callJob } from '../request/path';
import { get, post, put, type Route } from '../route';
import { DELIVERY_HEADER, readAttempt, readJobId } from '../workers/reports';

/** Longest `message`, in characters. */
const MAX_MESSAGE = 8192;

/** Routes below `/ojs/v1`. */
export const progressRoutes: readonly Route[] = [
  put('/jobs/:id/progress', report),
  post('/jobs/:id/progress', report),
  post('/workers/progress', report),
  get('/jobs/:id/progress', async (c) => answer(c, await callJob(c, (queue, id) => queue.progress(id)))),
];

async function report(c: AppContext): Promise<Response> {
  const request = readProgress(await readBody(c, MAX_BATCH_BYTES), c.req.param('id'), c.req.header(DELIVERY_HEADER));
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
function readProgress(body: JsonObject, pathId: string | undefined, delivery: string | undefined): ProgressRequest {
  const fraction = optional(body, 'progress', readNumber);
  const percentage = optional(body, 'percentage', readNumber);
  const progress = fraction ?? (percentage === undefined ? undefined : percentage / 100);
  if (progress === undefined) {
    const field = pathId === undefined ? 'percentage' : 'progress';
    throw invalidRequest(field, 'progress (0 to 1) or percentage (0 to 100) is required.');
  }
  const message = optional(body, 'message', readMessage);
  const data = optional(body, 'data', readObject);
  const bytes = data === undefined ? 0 : utf8Bytes(JSON.stringify(data), MAX_META_BYTES);
  if (bytes > MAX_META_BYTES) throw payloadTooLarge('data', bytes, MAX_META_BYTES);
  const { checkpoint } = body;
  return {
    job_id: readJobId(body, pathId),
    ...readAttempt(body, delivery),
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
      progress: report.progress ?? null,
      message: report.message ?? null,
      data: report.data ?? null,
      updated_at: at === undefined ? null : formatInstant(at),
      ...(checkpoint && {
        checkpoint: { sequence: checkpoint.sequence, created_at: formatInstant(checkpoint.created_at) },
      }),
    },
    200,
    report.progress === undefined ? {} : { 'X-OJS-Progress': String(report.progress) },
  );
}
