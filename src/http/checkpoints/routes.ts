/**
 * Checkpoints: a handler's own state, kept between the attempts of its job. Offered under `/jobs/:id/checkpoint` and, for
 * the OJS JavaScript SDK, under `/checkpoints/:id`; that SDK puts the prefix `/ojs/v1` before such a path twice.
 */
import { defined, isObject, optional, readInteger, readObject } from '../../job/envelope/fields';
import { invalidRequest, notFound, payloadTooLarge } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { CheckpointContent, StoredCheckpoint } from '../../rpc/workers';
import { type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody, readOptionalBody } from '../request/body';
import { callJob, pathParam } from '../request/path';
import { del, get, post, put, REPORTS, type Route } from '../route';
import { readAttempt } from '../workers/reports';

/** Largest checkpoint, in bytes of the JSON texts of its state and metadata. */
const MAX_CHECKPOINT_BYTES = 1_048_576;

/** The SDK's own routes, also mounted below its doubled prefix. */
export const sdkCheckpointRoutes: readonly Route[] = [
  post('/checkpoints/:id', save, REPORTS),
  get('/checkpoints/:id', show),
  del('/checkpoints/:id', remove),
  get('/checkpoints/:id/resume', async (c) => {
    const checkpoint = await read(c);
    return json(c, { has_checkpoint: checkpoint !== null, ...(checkpoint && { checkpoint: render(checkpoint) }) });
  }),
];

/** Routes below `/ojs/v1`. */
export const checkpointRoutes: readonly Route[] = [
  put('/jobs/:id/checkpoint', save, REPORTS),
  post('/jobs/:id/checkpoint', save, REPORTS),
  get('/jobs/:id/checkpoint', show),
  del('/jobs/:id/checkpoint', remove),
  ...sdkCheckpointRoutes,
];

/**
 * The stored form of a checkpoint.
 * @param field names its largest member in a refusal
 * @throws {ApiError} 400, or 413 above 1 MiB
 */
export function checkpointContent(body: JsonObject, field = 'state'): string {
  const step = optional(body, 'step_index', readInteger(0, Number.MAX_SAFE_INTEGER));
  const metadata = optional(body, 'metadata', readObject);
  if (body.state === undefined && step === undefined && metadata === undefined) {
    throw invalidRequest('state', 'state is required; any JSON value will do.');
  }
  const content: CheckpointContent = { state: body.state ?? null, ...defined({ step_index: step, metadata }) };
  const bytes = sizeOf(content.state) + (metadata === undefined ? 0 : sizeOf(metadata));
  if (bytes > MAX_CHECKPOINT_BYTES) throw payloadTooLarge(field, bytes, MAX_CHECKPOINT_BYTES);
  return JSON.stringify(content);
}

const sizeOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).byteLength;

async function save(c: AppContext): Promise<Response> {
  const body = await readBody(c, MAX_BATCH_BYTES);
  const report = { ...readAttempt(c, body), content: checkpointContent(body) };
  const saved = render(await callJob(c, (queue) => queue.saveCheckpoint(report)));
  return json(c, { job_id: report.job_id, sequence: saved.sequence, created_at: saved.created_at, checkpoint: saved });
}

function read(c: AppContext): Promise<StoredCheckpoint | null> {
  return callJob(c, (queue, id) => queue.checkpoint(id));
}

async function show(c: AppContext): Promise<Response> {
  const id = pathParam(c, 'id');
  const stored = await read(c);
  if (stored === null) throw notFound('checkpoint', id, 'The job exists but has no checkpoint.');
  const checkpoint = render(stored);
  return json(c, { job_id: id, ...checkpoint, checkpoint });
}

async function remove(c: AppContext): Promise<Response> {
  const report = readAttempt(c, (await readOptionalBody(c)) ?? {});
  const { job_id } = await callJob(c, (queue) => queue.deleteCheckpoint(report));
  return json(c, { deleted: true, job_id });
}

function render({ sequence, created_at, content }: StoredCheckpoint) {
  const stored: unknown = JSON.parse(content);
  return { ...(isObject(stored) ? stored : {}), sequence, created_at: formatInstant(created_at) };
}
