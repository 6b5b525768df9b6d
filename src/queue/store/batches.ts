/**
 * Batches over several queues that are not finished (table `batches`): the share of a participant with the name of the
 * coordinator, and the decision of a coordinator with the queues that must still be told.
 */
import type { BulkAction } from '../../rpc/operations';
import type { LockedPlace } from './locks';
import type { QueueState } from './state';

/** A batch that nobody has finished is checked after this long, ms. */
export const CHECK_AFTER_MS = 10_000;

/** A job that exists from the commit of its batch on. */
export interface PreparedJob {
  key: number;
  dueAt: number;
  pending: boolean;
  /** Jobs that this one replaces. They are cancelled by the commit, not before. */
  replaces?: number[];
  /** It is replaced itself, by a later entry in another queue. */
  superseded?: boolean;
}

/** What the commit does to jobs that exist. */
export interface PreparedAction {
  action: BulkAction;
  locked: LockedPlace[];
  /** Keys of completed jobs. Nothing but a removal can happen to these, so they need no lock. */
  archived: number[];
}

/** A participant's share. */
export interface Share {
  coordinator: string;
  jobs: PreparedJob[];
  act?: PreparedAction;
  /** How many of the locked jobs have not ended. */
  open?: number;
}

/** What the coordinator decided. */
export interface Decision {
  committed: boolean;
  /** Queues that have not confirmed yet. */
  untold: string[];
}

export type Role = 'participant' | 'coordinator';

/** Reads a row; undefined when there is none. */
export function readBatch<T>(q: QueueState, batch: string, role: Role): T | undefined {
  const row = q.sql
    .exec<{ data: string }>('SELECT data FROM batches WHERE batch = ? AND role = ?', batch, role)
    .toArray()[0];
  return row && (JSON.parse(row.data) as T);
}

/** Writes a row and wakes the queue for it. @param checkAt when it is checked, epoch ms */
export function writeBatch(q: QueueState, batch: string, role: Role, data: Share | Decision, checkAt: number): void {
  q.sql
    .exec(
      'INSERT OR REPLACE INTO batches (batch, role, data, check_at) VALUES (?, ?, ?, ?)',
      batch,
      role,
      JSON.stringify(data),
      checkAt,
    )
    .toArray();
  q.wake(checkAt);
}

/** Writes a participant's share. */
export function writeShare(q: QueueState, batch: string, share: Share, now: number): void {
  writeBatch(q, batch, 'participant', share, now + CHECK_AFTER_MS);
}

/** Deletes a row. */
export function forgetBatch(q: QueueState, batch: string, role: Role): void {
  q.sql.exec('DELETE FROM batches WHERE batch = ? AND role = ?', batch, role).toArray();
}
