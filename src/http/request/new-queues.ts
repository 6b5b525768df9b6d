/**
 * Which requests may create queues: those that bring jobs, schedules or settings. The number is bounded for keys that
 * are not administrators. A change of an existing queue, such as a pause, creates none: its name may be misspelt.
 */
import { admitJobs, admitQueues } from '../../across/new-queues';
import { statsOf } from '../../across/statistics';
import { notFound, unwrap } from '../../job/errors';
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
  const { rate, key_id: id } = c.get('caller') ?? {};
  return rate === undefined ? undefined : admitJobs(c.env, { id, rate }, jobs);
}

const HOW_TO_FIND = 'GET /ojs/v1/queues lists the queues. POST /ojs/v1/queues creates one before its first job.';

/** Call before a change that brings a queue nothing. Declared queues count. @throws {ApiError} 404 without one */
export async function mustExist(c: AppContext, queue: string): Promise<void> {
  if ((await statsOf(c.env, queue)).exists) return;
  if (!unwrap(await queueObject(c.env, queue).settings()).declared) throw notFound('queue', queue, HOW_TO_FIND);
  await mayCreate(c, [{ queue }]);
}
