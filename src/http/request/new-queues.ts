/**
 * Which requests may create queues: those that bring jobs, schedules or settings. The number is bounded for keys that
 * are not administrators. A change of an existing queue, such as a pause, creates none: its name may be misspelt.
 */
import { admitQueues } from '../../across/new-queues';
import { statsOf } from '../../across/statistics';
import { notFound, refusal, unwrap } from '../../job/errors';
import { quotaOf } from '../../job/keys';
import { queueObject } from '../../rpc/stubs';
import type { AppContext } from '../context';
import { insideOnly } from './bounds';

/** Its maximum length: it is kept in the attachment of a socket. */
const MAX_CREATOR = 100;

/** The caller under which the queues that it creates are counted; undefined: unbounded. */
export function creatorOf(c: AppContext): string | undefined {
  const caller = c.get('caller');
  if (!caller || caller.open || caller.scopes.includes('admin:write')) return undefined;
  return (caller.name ?? caller.key_hint ?? undefined)?.slice(0, MAX_CREATOR);
}

/**
 * Call before a request that may create these queues, with the jobs that it brings to them, if any.
 * @throws {ApiError} 403 outside the bounds of its key; 429 above its key's bound for a day
 */
export async function mayCreate(
  c: AppContext,
  places: Parameters<typeof insideOnly>[1],
  isBatch = false,
): Promise<void> {
  await insideOnly(c, places, isBatch);
  await admitQueues(c.env, creatorOf(c), places);
}

/** Call before jobs are enqueued, after {@link mayCreate}. @throws {ApiError} 429 above the rate of the key */
export function withinRate(c: AppContext, jobs: readonly { queue: string }[]): Promise<void> | undefined {
  const { rate, key_id: key } = c.get('caller') ?? {};
  return rate === undefined || key === undefined ? undefined : spend(c, jobs, key, rate);
}

async function spend(c: AppContext, jobs: Parameters<typeof withinRate>[1], key: string, rate: string): Promise<void> {
  const quota = quotaOf(rate);
  const counts = Map.groupBy(jobs, ({ queue }) => queue);
  for (const [queue, { length: count }] of counts) {
    const waitMs = count > quota.limit ? undefined : await queueObject(c.env, queue).spendRate(key, count, quota);
    if (waitMs === 0) continue;
    const hint = waitMs === undefined ? 'Send fewer jobs at once.' : 'Wait for the time in Retry-After.';
    throw refusal(429, 'rate_limited', `This key may enqueue ${rate} jobs into queue ${queue}.`, {
      ...{ retryable: waitMs !== undefined, details: { rate, queue, jobs: count }, hint },
      ...(waitMs !== undefined && { headers: { 'Retry-After': String(Math.ceil(waitMs / 1_000)) } }),
    });
  }
}

const HOW_TO_FIND = 'GET /ojs/v1/queues lists the queues. POST /ojs/v1/queues creates one before its first job.';

/** Call before a change that brings a queue nothing. Declared queues count. @throws {ApiError} 404 without one */
export async function mustExist(c: AppContext, queue: string): Promise<void> {
  if ((await statsOf(c.env, queue)).exists) return;
  if (!unwrap(await queueObject(c.env, queue).settings()).declared) throw notFound('queue', queue, HOW_TO_FIND);
  await mayCreate(c, [{ queue }]);
}
