/**
 * Checkpoints: a handler's own state, kept between the attempts of its job. Offered under `/jobs/:id/checkpoint` and,
 * for the OJS JavaScript SDK, under `/checkpoints/:id`. That SDK puts the prefix `/ojs/v1` before such a path twice.
 */

import { type Checkpoint, type CheckpointResume, checkpoints, sdkCheckpoints } from '../../contract/checkpoints';
import { checkpointContent } from '../../job/attempt/notes';
import { isObject } from '../../job/envelope/fields';
import { parseReport } from '../../job/envelope/json';
import { notFound } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { StoredCheckpoint } from '../../rpc/workers';
import { type AppContext, json } from '../context';
import { MAX_BATCH_BYTES, readBody, readOptionalBody } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { serve } from '../route';
import { attemptIn } from '../workers/report-in-request';

/** The SDK's own routes, also mounted below its doubled prefix. */
export const sdkCheckpointRoutes = serve(sdkCheckpoints, { save, show, remove, resume });

export const checkpointRoutes = [...serve(checkpoints, { save, post: save, show, remove }), ...sdkCheckpointRoutes];

async function save(c: AppContext) {
  const body = await readBody(c, MAX_BATCH_BYTES, parseReport);
  const report = { ...attemptIn(c, body, 'checkpoint'), content: checkpointContent(body) };
  const saved = render(await callJob(c, (queue) => queue.saveCheckpoint(report)));
  return json(c, { job_id: report.job_id, sequence: saved.sequence, created_at: saved.created_at, checkpoint: saved });
}

const read = (c: AppContext): Promise<StoredCheckpoint | null> => callJob(c, (queue, id) => queue.checkpoint(id));

async function show(c: AppContext) {
  const id = pathParam(c, 'id');
  const stored = await read(c);
  if (stored === null) throw notFound('checkpoint', id, 'The job exists but has no checkpoint.');
  const checkpoint = render(stored);
  return json(c, { job_id: id, ...checkpoint, checkpoint });
}

async function resume(c: AppContext) {
  const checkpoint = await read(c);
  const answer: CheckpointResume = {
    has_checkpoint: checkpoint !== null,
    ...(checkpoint && { checkpoint: render(checkpoint) }),
  };
  return json(c, answer);
}

async function remove(c: AppContext) {
  const report = attemptIn(c, (await readOptionalBody(c)) ?? {}, 'removal');
  const { job_id } = await callJob(c, (queue) => queue.deleteCheckpoint(report));
  return json(c, { deleted: true as const, job_id });
}

function render({ sequence, created_at, content }: StoredCheckpoint): Checkpoint {
  const stored: unknown = JSON.parse(content);
  return { ...(isObject(stored) ? stored : {}), sequence, created_at: formatInstant(created_at) };
}
