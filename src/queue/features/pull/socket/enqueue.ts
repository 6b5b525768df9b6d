/** Jobs that a worker or a producer enqueues over its socket. */
import type { Here } from '../../../../across/batch';
import { bringWithin } from '../../../../across/bounds';
import { enqueueAll } from '../../../../across/enqueue';
import { admitJobs, admitQueues } from '../../../../across/new-queues';
import { fullestOf, renderBatch, Telling, warningTexts } from '../../../../across/receipts';
import { type Env, readConfig, readTargetUrl } from '../../../../config';
import type { SocketEnqueued } from '../../../../contract/worker-socket';
import { parseEach } from '../../../../job/envelope/batch';
import { defined } from '../../../../job/envelope/fields';
import { type ParseContext, parseJob, withFingerprint } from '../../../../job/envelope/parse';
import { refuseTooMuch } from '../../../../job/message';
import { fingerprintOf } from '../../../../job/unique/fingerprint';
import { UnknownMembers } from '../../../../job/unknown-members';
import type { ConnectedKey, SpokenBatch } from '../../../../job/worker/socket';

/** The request that has the same effect: its key is the same key. */
const AS_REQUEST = { method: 'POST', path: '/ojs/v1/jobs/batch' };

/**
 * Enqueues all jobs of a message, or none. `creator` counts the queues that this creates, and `by` the jobs.
 * @returns the answer on the wire @throws {ApiError} as over HTTP, with `details.index` of the first wrong job
 */
export async function enqueueFromSocket(
  env: Env,
  here: Here,
  { jobs, idempotency_key: key, trace }: SpokenBatch,
  { creator, by, now }: { creator: string | undefined; by: ConnectedKey | undefined; now: number },
): Promise<SocketEnqueued> {
  const { retryVariables } = readConfig(env);
  const { bounds } = by ?? {};
  const idempotency =
    key === undefined
      ? undefined
      : { key: bounds ? `${by?.id}:${key}` : key, hash: await fingerprintOf({ ...AS_REQUEST, body: { jobs } }) };
  const unknown = new UnknownMembers();
  const ctx: ParseContext = {
    now,
    queue: here.queue,
    readTarget: readTargetUrl(env),
    unknown,
    ...defined({ trace, bounds }),
  };
  const read = parseEach(jobs, 'jobs', parseJob, ctx);
  const parsed = read.some(({ unique }) => unique) ? await Promise.all(read.map(withFingerprint)) : read;
  refuseTooMuch(parsed.map(({ job }) => job));
  if (bounds) await bringWithin(env, bounds, parsed, true);
  await admitQueues(env, creator, parsed);
  await admitJobs(env, by ?? {}, parsed, here);
  const { jobs: views, replayed } = await enqueueAll(env, parsed, { idempotency, here });
  const telling = new Telling(retryVariables, true);
  const warnings = warningTexts(views, unknown);
  return {
    ...renderBatch(views, (view, index) => telling.envelope(view, parsed[index])),
    ...(warnings.length > 0 && { warnings }),
    ...defined({ pressure: bounds ? undefined : fullestOf(views), replayed: replayed || undefined }),
  };
}
