/** Progress of a running job: reported by its worker, read by clients that wait. */

import { type JobProgress, progress } from '../../contract/progress';
import { checkpointContent, readProgress } from '../../job/attempt/notes';
import { given } from '../../job/envelope/fields';
import { parseReport } from '../../job/envelope/json';
import { invalidRequest } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { ProgressReport, ProgressRequest } from '../../rpc/workers';
import { type Answer, type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { mustSee } from '../request/bounds';
import { callJob } from '../request/path';
import { serve } from '../route';
import { attemptIn } from '../workers/report-in-request';

export const progressRoutes = serve(progress, {
  report,
  post: report,
  ofWorker: report,
  show: async (c) => answer(c, await callJob(c, (queue, id) => queue.progress(id))),
});

async function report(c: AppContext) {
  const request = readReport(c, await readBody(c, MAX_BATCH_BYTES, parseReport));
  await mustSee(c, request.job_id);
  return answer(c, await callJob(c, (queue) => queue.reportProgress(request), request.job_id));
}

/** Reads a report. @throws {ApiError} 400, 404 or 413 */
function readReport(c: AppContext, body: JsonObject): ProgressRequest {
  const progress = readProgress(body);
  if (progress === undefined) {
    const field = c.req.param('id') === undefined ? 'percentage' : 'progress';
    throw invalidRequest(field, 'progress (0 to 1) or percentage (0 to 100) is required.');
  }
  const { checkpoint } = body;
  return {
    ...attemptIn(c, body, 'progress'),
    ...progress,
    ...((checkpoint ?? null) !== null && { checkpoint: checkpointContent({ state: checkpoint }, 'checkpoint') }),
  };
}

function answer(c: AppContext, { at, checkpoint, ...report }: ProgressReport): Answer<JobProgress> {
  return json(
    c,
    {
      job_id: report.job_id,
      state: report.state,
      // The runner learns here that it need not continue.
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
