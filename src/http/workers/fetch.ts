/**
 * Fetching jobs, perhaps after waiting for them.
 *
 * A job must not be claimed for a worker that is gone. Only a failing write shows the runtime that a client has left,
 * neither the request's signal nor the call to the queue. So a waiting answer writes blanks, which JSON allows before a
 * value. When they fail, the claim is withdrawn, and its jobs go back unused.
 *
 * The first blank sends the status. So a claim that fails later is answered like one that found nothing; the next fetch
 * gets the reason.
 */

import { claimWithin, reportsWithin } from '../../across/bounds';
import { takeReports } from '../../across/hand-out-reports';
import { beginFetch, type Counts, type Fetch } from '../../across/workers';
import { usableConfig } from '../../config';
import type { Fetched } from '../../contract/pull';
import { errorDataOf } from '../../durable/platform-errors';
import { readReports } from '../../job/attempt/read-report';
import { renderOutcomes } from '../../job/attempt/render-reported';
import { chunksOf } from '../../job/chunk';
import { defined, optional, type Reader, readInteger, readObject } from '../../job/envelope/fields';
import { parseParts } from '../../job/envelope/json';
import { enlisted } from '../../job/envelope/json-text';
import { readMembers } from '../../job/envelope/members';
import { PolicyRoom } from '../../job/envelope/render';
import { writeJob } from '../../job/envelope/write';
import { invalidRequest, type Outcome, unsupported, unwrap } from '../../job/errors';
import type { JobView } from '../../job/record';
import { CLAIM_MEMBERS } from '../../job/worker/handlers';
import { readQueues } from '../../job/worker/heartbeat';
import { poolNamedBy, readPoolName } from '../../job/worker/pool-name';
import type { ClaimRequest } from '../../rpc/workers';
import { type Answer, type AppContext, jsonText, mediaType, respond } from '../context';
import { type JsonObject, MAX_BATCH_BYTES, readBody } from '../request/body';
import { boundsOf } from '../request/bounds';

const MAX_COUNT = 100;
const MAX_WAIT_MS = 20_000;

/** Interval between blanks, ms. */
const BLANK_EVERY_MS = 250;
/** Blanks before jobs are handed over, and the time after each, ms: they show that a client has just left. */
const LAST_BLANKS = 2;
const LAST_BLANK_MS = 10;
const BLANK = new TextEncoder().encode(' ');

export async function fetchJobs(c: AppContext): Promise<Answer<Fetched>> {
  const body = await readBody(c, MAX_BATCH_BYTES, parseParts);
  const queues = readSource(body);
  if ((body.runtime ?? null) !== null)
    throw unsupported('runtime is not supported by this version.', { field: 'runtime' });
  const request = claimWithin(boundsOf(c), Array.isArray(queues) ? queues : undefined, readClaim(body));
  const counts = optional(body, 'counts', readCounts);
  if ((body.reports ?? null) !== null) return reportAndFetch(c, queues, request, body.reports, counts);
  const fetch = beginFetch(c.env, queues, request, c.get('requestId'), counts);
  const jobs = request.wait_ms ? await Promise.race([fetch.jobs, nothingAfter(BLANK_EVERY_MS)]) : await fetch.jobs;
  return jobs ? jsonText(c, written(c, jobs)) : answerLater(c, fetch);
}

/** The queues to take jobs from, or the pool: `pool`, or `pool:name` instead of the queues. */
function readSource({ queues: named, pool }: JsonObject): string[] | { pool: string } {
  if ((pool ?? null) !== null) {
    if ((named ?? null) !== null) throw invalidRequest('pool', 'pool cannot be combined with queues.');
    return { pool: readPoolName(pool, 'pool') };
  }
  if (named === undefined) throw invalidRequest('queues', 'queues is required.');
  const meant = Array.isArray(named) ? poolNamedBy(named) : undefined;
  if (meant !== undefined) return { pool: meant };
  const queues = readQueues(named, 'queues');
  if (queues.length === 0) throw invalidRequest('queues', 'queues must name at least one queue.');
  return queues;
}

/**
 * Takes reports, and fetches: the claim goes to the queue with the reports or right after them, so both share a
 * transaction there. The results of the reports do not wait for work: such a fetch does not wait. Nor do they depend on
 * the claim.
 */
async function reportAndFetch(
  c: AppContext,
  queues: string[] | { pool: string },
  { wait_ms: _, ...request }: ClaimRequest,
  reports: unknown,
  counts: Counts = new Map(),
): Promise<Answer<Fetched>> {
  const read = readReports(reports, 'reports', request.worker_id, Date.now());
  const entries = await reportsWithin(c.env, boundsOf(c), read);
  const [queue, ...others] = Array.isArray(queues) ? queues : [];
  const isOne = queue !== undefined && others.length === 0 && !counts.has(queue);
  const following = isOne ? { queue, request } : undefined;
  const { promise: sent, resolve } = Promise.withResolvers<{ claimed: Promise<Outcome<JobView[]>> | undefined }>();
  const taken = takeReports(c.env, entries, following, (claimed) => resolve({ claimed }));
  const { claimed } = await sent;
  const jobs = claimed ? claimed.then(unwrap) : beginFetch(c.env, queues, request, c.get('requestId'), counts).jobs;
  const found = jobs.catch((error: unknown): JobView[] => {
    if (!errorDataOf(error)) console.error(`${c.get('requestId')} a fetch that brought reports failed:`, error);
    return [];
  });
  const outcomes = await taken;
  return jsonText(c, written(c, await found, `,"reports":${JSON.stringify(renderOutcomes(read, outcomes))}`));
}

const readCount = readInteger(1, MAX_COUNT);

/** The most jobs of some of the queues. Queues that the request does not name do not count. */
const readCounts: Reader<Counts> = (value, field) =>
  new Map(
    Object.entries(readObject(value, field)).map(([queue, count]) => [queue, readCount(count, `${field}.${queue}`)]),
  );

/** An integer clamped to `min` … `max`. @throws {ApiError} 400 when it is not an integer */
const readClamped =
  (min: number, max: number): Reader<number> =>
  (value, field) => {
    if (typeof value === 'number' && Number.isInteger(value)) return Math.min(Math.max(value, min), max);
    throw invalidRequest(field, `${field} must be an integer.`);
  };

const readMembersOfClaim = readMembers({
  ...CLAIM_MEMBERS,
  count: readClamped(1, MAX_COUNT),
  wait_ms: readClamped(0, MAX_WAIT_MS),
});

function readClaim(body: JsonObject): ClaimRequest {
  const { count = 1, wait_ms = 0, ...claim } = readMembersOfClaim(body, '');
  return { ...claim, ...defined({ chunks: chunksOf(claim.handlers) }), count, wait_ms };
}

/** The answer as JSON. @param others text of its members beside the jobs, after a comma */
function written(c: AppContext, jobs: readonly JobView[], others = ''): string {
  const { retryVariables } = usableConfig(c.env);
  const room = new PolicyRoom();
  const texts = jobs.map((view) => writeJob(view, retryVariables, undefined, room));
  return enlisted('{"jobs":[', texts, `]${others}}`);
}

async function nothingAfter(ms: number): Promise<undefined> {
  await scheduler.wait(ms);
}

/** Answers with blanks while the fetch waits, and then with its jobs. */
function answerLater(c: AppContext, { jobs, abandon }: Fetch): Answer<Fetched> {
  const parts = partsOf(c, jobs);
  let isHandedOver = false;
  let isGone = false;
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await parts.next();
        if (isGone) return;
        isHandedOver = done === true;
        controller.enqueue(value);
        if (done) controller.close();
      },
      async cancel() {
        isGone = true;
        if (!isHandedOver) await abandon();
      },
    },
    { highWaterMark: 0 },
  );
  return respond(c, stream, 200, { 'Content-Type': mediaType(c) }) as Answer<Fetched>;
}

async function* partsOf(c: AppContext, jobs: Promise<JobView[]>): AsyncGenerator<Uint8Array, Uint8Array> {
  const claimed = jobs.catch((error: unknown): JobView[] => {
    console.error(`${c.get('requestId')} a fetch failed while it waited:`, error);
    return [];
  });
  let found: JobView[] | undefined;
  for (;;) {
    found = await Promise.race([claimed, nothingAfter(BLANK_EVERY_MS)]);
    if (found) break;
    yield BLANK;
  }
  for (let left = found.length > 0 ? LAST_BLANKS : 0; left > 0; left--) {
    yield BLANK;
    await scheduler.wait(LAST_BLANK_MS);
  }
  return new TextEncoder().encode(written(c, found));
}
