/** What a key with bounds sees of many jobs, and what it may enqueue. Without bounds: everything. */
import { type Brought, bringWithin, isInside, outsideKey } from '../../across/bounds';
import { withJob } from '../../across/locate';
import type { Env } from '../../config';
import { type Bounds, fits, intersection, onlyName } from '../../job/bounds';
import { notFound, unwrap } from '../../job/errors';
import type { Selection } from '../../job/filter';
import { MAX_QUEUES_AT_ONCE } from '../../rpc/directory';
import { directoryObject } from '../../rpc/stubs';
import type { AppContext } from '../context';

export const boundsOf = (c: AppContext): Bounds | undefined => c.get('caller')?.bounds;

/** Is there such a job, and inside? @throws {ApiError} where its queue cannot be read */
export async function seesJob(c: AppContext, bounds: Bounds, id: string): Promise<boolean> {
  const found = await withJob(c.env, id, (queue) => queue.get(id));
  return found.ok || found.error.code !== 'not_found' ? isInside(bounds, unwrap(found)) : false;
}

/** @throws {ApiError} 404 unless the key of this request sees the job: one answer, whether it exists or not */
export async function mustSee(c: AppContext, id: string): Promise<void> {
  const bounds = boundsOf(c);
  // That of a queue would say that the job was there once.
  if (bounds && !(await seesJob(c, bounds, id))) throw notFound('job', id);
}

/** A page without the number of jobs that were looked at, where others' jobs are among them. */
export function pageSeen<T extends { searched?: number }>(c: AppContext, page: T): T | Omit<T, 'searched'> {
  const { types, groups } = boundsOf(c) ?? {};
  const { searched: _, ...rest } = page;
  return types || groups ? rest : page;
}

/** @param isBatch errors say the place of an entry @throws {ApiError} 403 `outside_key` */
export async function insideOnly(c: AppContext, brought: readonly Brought[], isBatch: boolean): Promise<void> {
  const bounds = boundsOf(c);
  if (bounds) await bringWithin(c.env, bounds, brought, isBatch);
}

/** The queues of which a key with bounds sees jobs; as of now. @throws {ApiError} 403 if they are too many */
export async function queuesWithin(env: Env, bounds: Bounds): Promise<string[] | undefined> {
  const { queues } = bounds;
  if (!queues) return undefined;
  const named = queues.map((pattern) => onlyName([pattern]));
  if (named.every((name) => name !== undefined)) return named;
  const names = await directoryObject(env).namesWithin(queues);
  if (names.length > MAX_QUEUES_AT_ONCE) throw outsideKey(bounds, 'Too many queues lie within the bounds of this key.');
  return names;
}

/** What of a selection the key of this request sees. @throws {ApiError} 403 for a type that cannot be narrowed */
export function within(c: AppContext, { filter, queues }: Selection): Selection {
  const bounds = boundsOf(c);
  if (!bounds) return { filter, ...(queues && { queues }) };
  const known = c.get('queues');
  const seen = known && queues ? queues.filter((queue) => known.includes(queue)) : (known ?? queues);
  const types = bounds.types && (filter.types ? intersection(filter.types, bounds.types) : bounds.types);
  if (bounds.types && !types)
    throw outsideKey(bounds, 'type must lie within the types of this key.', { field: 'type' });
  const hasNone = types?.length === 0 || (filter.group !== undefined && !fits(bounds, { group: filter.group }));
  const groups = filter.group === undefined ? bounds.groups : undefined;
  return {
    filter: { ...filter, ...(types && { types }), ...(groups && { groups }) },
    ...(hasNone ? { queues: [] } : seen && { queues: seen }),
  };
}
