/**
 * The rows of batches over several queues that are not finished (table `batches`): as participant what is held here and
 * who decides, as coordinator the decision and who must still be told.
 */
import type { BulkAction } from '../../../rpc/operations';
import type { LockedPlace } from '../../store/locks';
import type { QueueState } from '../../store/state';

/** A batch that nobody has finished is looked into after this long, ms. */
export const CHECK_AFTER_MS = 10_000;

/** A job that becomes real when its batch is committed. */
export interface Fate {
  key: number;
  dueAt: number;
  pending: boolean;
  /** Jobs that this one replaces. They are cancelled when it becomes real, not before. */
  replaces?: number[];
  /** It is replaced itself, by a later entry in another queue. */
  superseded?: boolean;
}

/** What is done to jobs that exist, when the batch is committed. */
export interface HeldAction {
  action: BulkAction;
  locked: LockedPlace[];
  /** Keys of completed jobs. Nothing but a removal can happen to these, so they need no lock. */
  archived: number[];
}

/** A participant's share. */
export interface Held {
  coordinator: string;
  /** Keys of the rows, and what becomes of each. */
  jobs: Fate[];
  act?: HeldAction;
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

/** Writes a row and wakes the queue for it. @param checkAt when it is looked into, epoch ms */
export function writeBatch(q: QueueState, batch: string, role: Role, data: Held | Decision, checkAt: number): void {
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

/** Deletes a row. */
export function forgetBatch(q: QueueState, batch: string, role: Role): void {
  q.sql.exec('DELETE FROM batches WHERE batch = ? AND role = ?', batch, role).toArray();
}
