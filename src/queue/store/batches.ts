/**
 * Unfinished batches over several queues, as outbox messages: a participant's share to the coordinator, sent when it
 * is late; the coordinator's decision to the others.
 */
import { payloadTooLarge } from '../../job/errors';
import { bytesOf } from '../../job/size';
import type { IdPlace } from '../../rpc/ids';
import type { BulkAction } from '../../rpc/operations';
import type { LockedPlace } from './locks';
import type { Stored } from './parts';

/** The kind of a {@link Share}; its address is the id of the batch. */
export const SHARE = 'share';

/** The kind of a decision for a batch; its address is the batch's id, its data what is {@link Untold}. */
export const DECISION = 'decision';

/** What a row holds of one: a batch that names more jobs to be replaced is refused. */
const MAX_BYTES = 1_900_000;

/** A batch that is still unfinished is checked after this interval, ms. */
export const CHECK_AFTER_MS = 10_000;

/** A job that exists from the commit of its batch on. */
export interface PreparedJob {
  key: number;
  dueAt: number;
  pending: boolean;
  /** Jobs that this one replaces. The commit cancels them, not earlier. */
  replaces?: number[];
  /** A later entry in another queue replaces this one. */
  superseded?: boolean;
}

/** What the commit does to jobs that exist. */
export interface PreparedAction {
  action: BulkAction;
  locked: LockedPlace[];
  /** Keys of completed jobs. They can only be removed, so they need no lock. */
  archived: number[];
}

export interface Share {
  coordinator: string;
  jobs: PreparedJob[];
  act?: PreparedAction;
}

export function readShare(q: Stored, batch: string): Share | undefined {
  const data = q.store.outbox.find(SHARE, batch);
  return data === undefined ? undefined : (JSON.parse(data) as Share);
}

/** Writes a participant's share: one row. @throws {ApiError} 413 when its jobs replace more than a row can name */
export function writeShare(q: Stored, batch: string, share: Share, now: number, checkAt = now + CHECK_AFTER_MS): void {
  post(q, SHARE, batch, share, now, checkAt);
}

/** What a decision has still to do: jobs that it replaces end first, then queues commit. */
export type Untold = (IdPlace | string)[];

export const isReplaced = (untold: IdPlace | string): untold is IdPlace => typeof untold !== 'string';

export function readDecision(q: Stored, batch: string): Untold | undefined {
  const data = q.store.outbox.find(DECISION, batch);
  return data === undefined ? undefined : (JSON.parse(data) as Untold);
}

/** Writes the coordinator's decision: one row. @throws {ApiError} 413 when it replaces more than a row can name */
export function writeDecision(q: Stored, batch: string, untold: Readonly<Untold>, now: number): void {
  post(q, DECISION, batch, untold, now);
}

function post(q: Stored, kind: string, batch: string, what: unknown, now: number, dueAt?: number): void {
  const text = JSON.stringify(what);
  const bytes = bytesOf(text);
  if (bytes > MAX_BYTES) throw payloadTooLarge('jobs', bytes, MAX_BYTES);
  q.store.outbox.post(kind, batch, text, now, dueAt);
}

/** The batch that has locked this job: when its share was written, and when it is checked; epoch ms. */
export function batchOf(q: Stored, key: number): { since: number; checkAt: number } | undefined {
  const found = lockedBy(q, key);
  return found && { since: found.at - CHECK_AFTER_MS, checkAt: found.at };
}

/** The lock of this job ended without its batch: its share no longer names it. One row written. */
export function leaveShare(q: Stored, key: number, now: number): void {
  const found = lockedBy(q, key);
  const share = found && readShare(q, found.batch);
  if (!found || !share?.act) return;
  const act = { ...share.act, locked: share.act.locked.filter((place) => place.key !== key) };
  writeShare(q, found.batch, { ...share, act }, now, found.at);
}

function lockedBy(q: Stored, key: number): { batch: string; at: number } | undefined {
  const query = `SELECT address AS batch, due_at AS at FROM outbox WHERE kind = ? AND json_valid(data) AND EXISTS
    (SELECT 1 FROM json_each(data, '$.act.locked') WHERE value ->> '$.key' = ?) LIMIT 1`;
  return q.store.sql.exec<{ batch: string; at: number }>(query, SHARE, key).toArray()[0];
}
