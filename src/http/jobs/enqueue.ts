/** Enqueuing: one job, or a batch of which all are accepted or none. */
import { enqueueOnce } from '../../across/enqueue';
import { readConfig } from '../../config';
import { readObject } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE } from '../../job/envelope/names';
import { type ParsedJob, parseJob, withFingerprint } from '../../job/envelope/parse';
import { flatten } from '../../job/envelope/render';
import { atIndex, invalidRequest, payloadTooLarge } from '../../job/errors';
import { refuseTooMuch } from '../../job/message';
import { type AppContext, json } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { REPLAYED, readIdempotency } from '../request/idempotency';
import { limitHeaders, renderEnqueued, warningsOf } from './render';

/** POST /jobs. */
export async function enqueueOne(c: AppContext): Promise<Response> {
  const { retryVariables: variables } = readConfig(c.env);
  const body = await readBody(c);
  const idempotency = await readIdempotency(c, body);
  const parsed = await withFingerprint(parseJob(body, { now: Date.now() }));
  const { jobs, replayed } = await enqueueOnce(c.env, [parsed], false, idempotency);
  const [view] = jobs;
  if (view === undefined) throw new Error(`Queue ${parsed.queue} gave no receipt for a job it accepted.`);
  const envelope = renderEnqueued(view, parsed, variables);
  const warned = warningsOf([view]);
  const answer = { job: envelope, ...flatten(envelope), ...warned.members };
  const headers = { ...(replayed ? REPLAYED : limitHeaders([view])), ...warned.headers };
  if (view.deduplicated) return json(c, { ...answer, deduplicated: true }, 200, headers);
  return json(c, answer, 201, { Location: `/ojs/v1/jobs/${view.record.id}`, ...headers });
}

/** POST /jobs/batch. */
export async function enqueueBatch(c: AppContext): Promise<Response> {
  const { retryVariables: variables } = readConfig(c.env);
  const body = await readBody(c, MAX_BATCH_BYTES);
  const idempotency = await readIdempotency(c, body);
  const parsed = await Promise.all(parseBatch(body).map(withFingerprint));
  refuseTooMuch(parsed.map(({ job }) => job));
  const { jobs: views, replayed } = await enqueueOnce(c.env, parsed, true, idempotency);
  const jobs = views.map((view, index) => ({
    ...renderEnqueued(view, parsed[index], variables),
    ...(view.deduplicated && { deduplicated: true }),
  }));
  const deduplicated = views.filter((view) => view.deduplicated).length;
  const counts = { enqueued: jobs.length - deduplicated, ...(deduplicated > 0 && { deduplicated }), failed: 0 };
  const warned = warningsOf(views);
  const headers = { ...(replayed ? REPLAYED : limitHeaders(views)), ...warned.headers };
  return json(c, { jobs, ...counts, ...warned.members }, 201, headers);
}

/** The entries of a request that carries many jobs. @throws {ApiError} 400; 413 when they are too many */
export function readJobList({ jobs }: JsonObject): unknown[] {
  if (!Array.isArray(jobs)) throw invalidRequest('jobs', 'jobs is required and must be an array.');
  if (jobs.length === 0) throw invalidRequest('jobs', 'jobs must have at least one entry.');
  if (jobs.length > MAX_BATCH_SIZE) throw payloadTooLarge('jobs', jobs.length, MAX_BATCH_SIZE, 'jobs');
  return jobs;
}

/** Reads every entry before any is written. @throws {ApiError} with `details.index` of the first wrong entry */
function parseBatch(body: JsonObject): ParsedJob[] {
  const now = Date.now();
  return readJobList(body).map((entry, index) => {
    try {
      return parseJob(readObject(entry, `jobs[${index}]`), { now, path: `jobs[${index}]` });
    } catch (error) {
      throw atIndex(error, index);
    }
  });
}
