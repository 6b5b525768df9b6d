/** How many queues a key may create in a day, as names are unbounded, and how many jobs it may enqueue into each. */
import { quotaOf } from '../access/keys';
import { type Env, readConfig } from '../config';
import { onEmptied } from '../durable/memory';
import { eventualOutcomeOf, refusal, unwrap } from '../job/errors';
import { directoryObject } from '../rpc/stubs';
import { type Here, takerOf } from './batch';

/** Names that are remembered; beyond that all are forgotten, and asked about again. */
const MAX_NAMES = 10_000;

/** Queues that exist, or that the directory has counted. */
const seen = new Set<string>();
onEmptied(() => seen.clear());

/** Call before a request that may create these queues. @param by the key, if bounded @throws {ApiError} 429 */
export async function admitQueues(
  env: Env,
  by: string | undefined,
  places: readonly { queue: string }[],
): Promise<void> {
  if (by === undefined) return;
  const unseen = [...new Set(places.map(({ queue }) => queue))].filter((queue) => !seen.has(queue));
  if (unseen.length === 0) return;
  const most = readConfig(env).maxNewQueues;
  const outcome = await eventualOutcomeOf(async () => unwrap(await directoryObject(env).admitQueues(by, unseen, most)));
  // While the directory cannot be asked, accepting jobs matters more than this bound.
  if (!outcome.ok && outcome.error.status === 429) unwrap(outcome);
  if (!outcome.ok) return;
  if (seen.size + unseen.length > MAX_NAMES) seen.clear();
  for (const queue of unseen) seen.add(queue);
}

/** Counts jobs that a key is about to enqueue. @param here the calling queue @throws {ApiError} 429 above its rate */
export async function admitJobs(
  env: Env,
  { id, rate }: { id?: string | undefined; rate?: string | undefined },
  jobs: readonly { queue: string }[],
  here?: Here,
): Promise<void> {
  if (rate === undefined || id === undefined) return;
  const quota = quotaOf(rate);
  const counts = Map.groupBy(jobs, ({ queue }) => queue);
  for (const [queue, { length: count }] of counts) {
    const waitMs = count > quota.limit ? undefined : await takerOf(env, queue, here).spendRate(id, count, quota);
    if (waitMs === 0) continue;
    const hint = waitMs === undefined ? 'Send fewer jobs at once.' : 'Wait for the time in Retry-After.';
    throw refusal(429, 'rate_limited', `This key may enqueue ${rate} jobs into queue ${queue}.`, {
      ...{ retryable: waitMs !== undefined, details: { rate, queue, jobs: count }, hint },
      ...(waitMs !== undefined && { headers: { 'Retry-After': String(Math.ceil(waitMs / 1_000)) } }),
    });
  }
}
