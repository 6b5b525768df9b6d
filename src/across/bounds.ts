/** What lies within the bounds of a key, of what its workers name. */
import type { Env } from '../config';
import { type Bounded, type Bounds, fits, onlyName } from '../job/bounds';
import { parseObject } from '../job/envelope/fields';
import { type ApiError, jobNotFound, type Outcome, refusal } from '../job/errors';
import { groupOf } from '../job/group';
import type { JobBody, JobView } from '../job/record';
import type { Heartbeat } from '../job/worker/heartbeat';
import type { ClaimRequest, Report } from '../rpc/workers';
import { readJobs } from './locate';

export function outsideKey(bounds: Bounds, message: string, details: object = {}): ApiError {
  return refusal(403, 'outside_key', message, { details: { bounds, ...details } });
}

export function isInside(bounds: Bounds | undefined, { record: { queue, type, body } }: JobView): boolean {
  if (!bounds) return true;
  const group = bounds.groups && (groupOf((parseObject(body) ?? {}) as Pick<JobBody, 'group' | 'rate_limit'>) ?? null);
  return fits(bounds, { queue, type, ...(group !== undefined && { group }) });
}

/** Those of these jobs that exist and lie inside. */
export async function insideOf(env: Env, bounds: Bounds, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const inside = new Set<string>();
  // The bytes of jobs in an answer are bounded; the rest is asked for again.
  for (let left = ids; left.length > 0; ) {
    const { jobs, omitted } = await readJobs(env, left);
    for (const view of jobs) if (isInside(bounds, view)) inside.add(view.record.id);
    left = omitted;
  }
  return inside;
}

/** Jobs, or the queues of other writes, as a request brings them. */
export interface Brought {
  queue: string;
  job?: { id?: string; type: string; group?: string };
  /** Its place in the request. Default: among these. */
  index?: number;
}

/** @param isBatch errors say the place of an entry @throws {ApiError} 403 `outside_key` */
export async function bringWithin(
  env: Env,
  bounds: Bounds,
  brought: readonly Brought[],
  isBatch: boolean,
): Promise<void> {
  const at = (entry: Brought) => (isBatch ? { index: entry.index ?? brought.indexOf(entry) } : {});
  for (const entry of brought) {
    const { queue, job } = entry;
    const named: Bounded = job ? { queue, type: job.type, group: job.group ?? null } : { queue };
    if (!fits(bounds, named)) throw outsideKey(bounds, 'This key may not enqueue such a job.', at(entry));
  }
  const ids = brought.flatMap(({ job }) => job?.id ?? []);
  if (ids.length === 0) return;
  const { jobs, omitted } = await readJobs(env, ids);
  const foreign = [...omitted, ...jobs.filter((view) => !isInside(bounds, view)).map(({ record }) => record.id)];
  const taken = brought.find(({ job }) => job?.id !== undefined && foreign.includes(job.id));
  if (taken) throw outsideKey(bounds, 'This id is not free to this key; leave it out to get a new one.', at(taken));
}

/** Reports about jobs outside are refused as those about unknown ones. */
export async function reportsWithin(
  env: Env,
  bounds: Bounds | undefined,
  entries: readonly Outcome<Report>[],
): Promise<readonly Outcome<Report>[]> {
  if (!bounds) return entries;
  const ids = entries.flatMap((entry) => (entry.ok ? [entry.value.job_id] : []));
  const inside = await insideOf(env, bounds, ids);
  return entries.map((entry) =>
    !entry.ok || inside.has(entry.value.job_id) ? entry : jobNotFound(entry.value.job_id),
  );
}

/** What a worker asks for, within the bounds of its key. @param queues absent: of a pool @throws {ApiError} 403 */
export function claimWithin<T extends Pick<ClaimRequest, 'types' | 'handlers'>>(
  bounds: Bounds | undefined,
  queues: readonly string[] | undefined,
  claim: T,
): T {
  if (!bounds) return claim;
  if (!queues?.every((queue) => fits(bounds, { queue }))) {
    throw outsideKey(bounds, 'This key may not fetch from these queues.', { field: queues ? 'queues' : 'pool' });
  }
  const strange = claim.handlers?.find(({ type }) => !fits(bounds, { type }));
  if (strange) throw outsideKey(bounds, `This key has no handler for ${strange.type}.`, { field: 'handlers' });
  if (!bounds.types) return claim;
  const types = (claim.types ?? bounds.types).filter((type) => fits(bounds, { type }) && onlyName([type]));
  if (types.length > 0 && (claim.types || types.length === bounds.types.length)) return { ...claim, types };
  throw outsideKey(bounds, 'Name the types of jobs to fetch, within those of this key.', { field: 'types' });
}

/** May such a worker be connected to this queue with a key with these bounds? */
export function mayConnect(
  bounds: Bounds | undefined,
  queue: string,
  { types, handlers = [] }: Pick<ClaimRequest, 'types' | 'handlers'>,
): boolean {
  if (!bounds) return true;
  const isNarrow = !bounds.types || types?.every((type) => fits(bounds, { type })) === true;
  return !bounds.groups && fits(bounds, { queue }) && isNarrow && handlers.every(({ type }) => fits(bounds, { type }));
}

/** A heartbeat as far as it concerns jobs inside. @throws {ApiError} 403 */
export async function heartbeatWithin(env: Env, bounds: Bounds, heard: Heartbeat): Promise<Heartbeat> {
  const { queues, job_ids } = heard;
  if (queues?.every((queue) => fits(bounds, { queue })) === false) {
    throw outsideKey(bounds, 'These queues do not all lie within the bounds of this key.', { field: 'queues' });
  }
  if (!job_ids) throw outsideKey(bounds, 'A key with bounds names the jobs to extend.', { field: 'active_jobs' });
  const inside = await insideOf(env, bounds, job_ids);
  return { ...heard, job_ids: job_ids.filter((id) => inside.has(id)) };
}
