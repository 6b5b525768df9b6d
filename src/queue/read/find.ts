/** From a job id to its row: by the key inside the id, or through the alias table for ids chosen by clients. */
import { rows } from '../../durable/sql';
import type { CheckpointContent } from '../../job/attempt/notes';
import { notFound } from '../../job/errors';
import { decodeId, isUuidV7 } from '../../job/ids';
import type { JobView } from '../../job/record';
import { bytesOfView, MAX_ANSWER_BYTES } from '../../job/size';
import { inlined, stepsForRunner } from '../../job/steps';
import { lockedError } from '../../job/undecided';
import type { FollowedJob } from '../../rpc/follow';
import { farResult } from '../store/archive';
import type { JobRow } from '../store/job-row';
import { moveOf } from '../store/moves';
import type { Named, Stored, StoredQueue } from '../store/parts';
import { completedByKey, rowByKey } from '../store/row-lookup';
import { type ArchivedJob, recordOf, recordOfArchived } from '../store/rows';

export type Found = { row: JobRow; archived?: undefined } | { row?: undefined; archived: ArchivedJob };

function byKey(q: Stored, key: number, matches: (job: { created: number; alias: string | null }) => boolean) {
  const row = rowByKey(q.store, key);
  if (row) {
    const seen = q.store.locks.seen(row);
    return seen && matches({ created: row.created_at, alias: row.alias }) ? { row: seen } : undefined;
  }
  // A job that this very transaction has completed is not in the archive yet.
  const archived = completedByKey(q.store, key);
  if (archived && matches({ created: archived.at[0], alias: archived.a ?? null })) return { archived };
  return undefined;
}

export function find(q: Named & Stored, id: string): Found | undefined {
  if (!isUuidV7(id)) return undefined;
  const decoded = decodeId(id);
  if (decoded.route === q.route) {
    const found = byKey(q, decoded.key, (job) => job.alias === null && job.created === decoded.time);
    if (found) return found;
  }
  const aliased = keyOfAlias(q, id);
  return aliased === undefined ? undefined : byKey(q, aliased, (job) => job.alias === id);
}

/** The key that an id leads to: of its alias, else the one inside it. Reads no job. @param id satisfies `isUuidV7` */
export const keyOf = (q: Named & Stored, id: string): number | undefined => keyOfAlias(q, id) ?? keyInside(q, id);

const keyOfAlias = ({ store }: Stored, id: string): number | undefined =>
  rows<{ key: number }>(store.sql, 'SELECT key FROM aliases WHERE id = ?', id)[0]?.key;

/** The key that an id has inside, if it was made here. Reads nothing. @param id satisfies `isUuidV7` */
export function keyInside(q: Named, id: string): number | undefined {
  const { route, key } = decodeId(id);
  return route === q.route ? key : undefined;
}

/** The keys that these ids lead to, as {@link keyOf}; those that lead nowhere here are left out. */
export function keysOf(q: Named & Stored, ids: readonly string[]): Map<string, number> {
  const query = 'SELECT id, key FROM aliases WHERE id IN (SELECT value FROM json_each(?))';
  const aliases = q.store.sql.exec<{ id: string; key: number }>(query, JSON.stringify(ids));
  const keys = new Map(Array.from(aliases, ({ id, key }) => [id, key]));
  for (const id of ids) {
    const key = keys.has(id) ? undefined : keyInside(q, id);
    if (key !== undefined) keys.set(id, key);
  }
  return keys;
}

/** Those of these jobs that run. Reads no job. @param ids satisfy `isUuidV7` */
export function runningOf(q: Named & Stored, ids: readonly string[]): string[] {
  const { active } = q.store.leases;
  return active.size === 0 ? [] : ids.filter((id) => active.has(keyOf(q, id) ?? -1));
}

export const ENDED_JOBS_HINT = 'Jobs that ended are removed after their retention.';

/** Finds a job by id. @throws {ApiError} 404; 503 as {@link findSettled} */
export function mustFind(q: StoredQueue, id: string): Found {
  const found = findSettled(q, id);
  if (!found) throw notFound('job', id, ENDED_JOBS_HINT);
  return found;
}

/** Finds a job that something is to happen to. @throws {ApiError} 503 as {@link refuseSetAside} */
export function findSettled(q: StoredQueue, id: string): Found | undefined {
  refuseSetAside(q, id);
  return find(q, id);
}

/** @throws {ApiError} 503 while the job is on its way to another queue, because its own is being deleted */
export function refuseSetAside(q: StoredQueue, id: string): void {
  const { moving, target_queue: target } = q.config.removal ?? {};
  if (!moving || !isUuidV7(id) || !moving.keys.includes(keyOf(q, id) ?? -1)) return;
  throw lockedError(id, `Job ${id} is on its way to queue ${target}; try again.`);
}

/** Finds a reported job, hidden on its way to another queue, where it may run already. @throws {ApiError} 404 */
export function mustFindForReport(q: Named & Stored, id: string): Found {
  const found = find(q, id);
  if (!found || (found.row && moveOf(q.store.outbox, found.row.key))) throw notFound('job', id, ENDED_JOBS_HINT);
  return found;
}

export function viewOfRow(q: StoredQueue, row: JobRow, now: number): JobView {
  const record = recordOf(row, q.store.leases.active.get(row.key), { queue: q.name, route: q.route, now });
  const reported = q.store.progress.read(row.key)?.reported;
  if (reported) record.progress = reported.progress;
  if (reported?.data) record.progress_data = reported.data;
  return { record, layers: q.config.layersFor(row.type) };
}

/** A row for its runner: with its checkpoint and steps. @param recalls large results are asked for when needed */
export function viewForRunner(q: StoredQueue, row: JobRow, now: number, recalls = false): JobView {
  const view = viewOfRow(q, row, now);
  const checkpoint = q.store.checkpoints.read(row.key);
  if (checkpoint) {
    const { state } = JSON.parse(checkpoint.content) as CheckpointContent;
    view.record.checkpoint = { state, sequence: checkpoint.sequence };
  }
  const steps = q.store.checkpoints.steps(row.key);
  const { values } = q.store.checkpoints;
  if (steps !== undefined) {
    const known = stepsForRunner(steps);
    view.record.steps = recalls ? known : inlined(known, (name) => values.read(row.key, name));
  }
  return view;
}

export function viewOfArchived(q: StoredQueue, job: ArchivedJob): JobView {
  const result = farResult(q.store.sql, job);
  const record = recordOfArchived(job, { queue: q.name, route: q.route, ...(result !== undefined && { result }) });
  return { record, layers: q.config.layersFor(job.t) };
}

export const viewOf = (q: StoredQueue, found: Found, now: number): JobView =>
  found.row ? viewOfRow(q, found.row, now) : viewOfArchived(q, found.archived);

/** The job as it is now, for the first message to its follower. @throws {ApiError} 404 */
export function followedJob(q: StoredQueue, id: string, now: number): FollowedJob {
  const { type, state, attempt, history } = viewOf(q, mustFind(q, id), now).record;
  const ended_at = history.completed_at ?? history.cancelled_at ?? history.discarded_at;
  return { id, type, state, attempt, ...(ended_at !== undefined && { ended_at }) };
}

/** Reads several jobs at once. @returns those that fit into an answer, and the ids of the others */
export function getMany(q: StoredQueue, ids: readonly string[], now: number): { jobs: JobView[]; omitted: string[] } {
  const jobs: JobView[] = [];
  const omitted: string[] = [];
  let bytes = 0;
  for (const id of ids) {
    const found = find(q, id);
    if (!found) continue;
    const view = omitted.length === 0 ? viewOf(q, found, now) : undefined;
    bytes += view ? bytesOfView(view) : 0;
    if (view && (jobs.length === 0 || bytes <= MAX_ANSWER_BYTES)) jobs.push(view);
    else omitted.push(id);
  }
  return { jobs, omitted };
}

const PAGE = 1000;

/** Those of these ids that are noted here, including those of operations on many jobs. */
export function knownIds(sql: SqlStorage, ids: readonly string[]): string[] {
  const query = `SELECT id FROM aliases WHERE id IN (SELECT value FROM json_each(?1))
    UNION SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(?1))`;
  return rows<{ id: string }>(sql, query, JSON.stringify(ids)).map(({ id }) => id);
}

/** The next of them after this one, in order. */
export function chosenIds(sql: SqlStorage, after: string): string[] {
  const query = 'SELECT id FROM aliases WHERE id > ? ORDER BY id LIMIT ?';
  return rows<{ id: string }>(sql, query, after, PAGE).map(({ id }) => id);
}
