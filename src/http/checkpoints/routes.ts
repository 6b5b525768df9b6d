/**
 * Checkpoints: a handler's own state, kept between the attempts of its job. Offered under `/jobs/:id/checkpoint` and, for
 * the OJS JavaScript SDK, under `/checkpoints/:id`; that SDK puts the prefix `/ojs/v1` before such a path twice.
 */
import { Hono } from 'hono';
import { withJob } from '../../across/locate';
import { isObject, optional, readInteger, readObject } from '../../job/envelope/fields';
import { invalidRequest, notFound, payloadTooLarge, unwrap } from '../../job/errors';
import { formatInstant } from '../../job/time';
import type { CheckpointContent, StoredCheckpoint } from '../../rpc/workers';
import type { AppContext, AppEnv } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody, readOptionalBody } from '../request/body';
import { json } from '../respond';
import { DELIVERY_HEADER, readAttempt, readJobId } from '../workers/reports';

/** Largest checkpoint, in bytes of the JSON texts of its state and metadata. */
const MAX_CHECKPOINT_BYTES = 1_048_576;

/** Routes below `/ojs/v1`. */
export function checkpointRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.put('/jobs/:id/checkpoint', (c) => save(c, c.req.param('id')));
  routes.post('/jobs/:id/checkpoint', (c) => save(c, c.req.param('id')));
  routes.get('/jobs/:id/checkpoint', (c) => show(c, c.req.param('id')));
  routes.delete('/jobs/:id/checkpoint', (c) => remove(c, c.req.param('id')));
  routes.route('/', sdkCheckpointRoutes());
  return routes;
}

/** The SDK's own routes, also mounted below its doubled prefix. */
export function sdkCheckpointRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.post('/checkpoints/:id', (c) => save(c, c.req.param('id')));
  routes.get('/checkpoints/:id', (c) => show(c, c.req.param('id')));
  routes.delete('/checkpoints/:id', (c) => remove(c, c.req.param('id')));
  routes.get('/checkpoints/:id/resume', async (c) => {
    const checkpoint = await read(c, c.req.param('id'));
    return json(c, { has_checkpoint: checkpoint !== null, ...(checkpoint && { checkpoint: render(checkpoint) }) });
  });
  return routes;
}

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
  const content: CheckpointContent = {
    state: body.state ?? null,
    ...(step !== undefined && { step_index: step }),
    ...(metadata !== undefined && { metadata }),
  };
  const bytes = sizeOf(content.state) + (metadata === undefined ? 0 : sizeOf(metadata));
  if (bytes > MAX_CHECKPOINT_BYTES) throw payloadTooLarge(field, bytes, MAX_CHECKPOINT_BYTES);
  return JSON.stringify(content);
}

const sizeOf = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).byteLength;

async function save(c: AppContext, pathId: string): Promise<Response> {
  const body = await readBody(c, MAX_BATCH_BYTES);
  const request = {
    job_id: readJobId(body, pathId),
    ...readAttempt(body, c.req.header(DELIVERY_HEADER)),
    content: checkpointContent(body),
  };
  const saved = unwrap(await withJob(c.env, pathId, (queue) => queue.saveCheckpoint(request)));
  const { sequence, created_at } = render(saved);
  return json(c, { job_id: pathId, sequence, created_at, checkpoint: render(saved) });
}

async function read(c: AppContext, id: string): Promise<StoredCheckpoint | null> {
  return unwrap(await withJob(c.env, id, (queue) => queue.checkpoint(id)));
}

async function show(c: AppContext, id: string): Promise<Response> {
  const stored = await read(c, id);
  if (stored === null) throw notFound('checkpoint', id, 'The job exists but has no checkpoint.');
  const checkpoint = render(stored);
  return json(c, { job_id: id, ...checkpoint, checkpoint });
}

async function remove(c: AppContext, pathId: string): Promise<Response> {
  const body = (await readOptionalBody(c)) ?? {};
  const request = { job_id: readJobId(body, pathId), ...readAttempt(body, c.req.header(DELIVERY_HEADER)) };
  const { job_id } = unwrap(await withJob(c.env, pathId, (queue) => queue.deleteCheckpoint(request)));
  return json(c, { deleted: true, job_id });
}

function render({ sequence, created_at, content }: StoredCheckpoint) {
  const stored: unknown = JSON.parse(content);
  return { ...(isObject(stored) ? stored : {}), sequence, created_at: formatInstant(created_at) };
}
