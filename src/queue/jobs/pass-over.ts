import { bytesOf } from '../../job/size';
import type { JobRow } from '../store/job-row';
import type { Stored } from '../store/parts';
import { isTooLate } from '../store/rows';

/** Passes over running and expired rows for any consumer; the first expired ones are discarded later. */
export function passOver(q: Stored, row: JobRow, now: number, expired: JobRow[]): boolean {
  if (q.store.leases.active.has(row.key)) return true;
  if (!isTooLate(row, now)) return false;
  if (expired.length < q.store.turn.share) expired.push(row);
  return true;
}

/** Bytes of all that travels to the runner of a job. */
export function bytesOnTheWay(q: Stored, { key, body, history }: JobRow): number {
  const past = history === null ? 0 : bytesOf(history);
  return bytesOf(body) + past + q.store.checkpoints.sizeOf(key) + q.store.progress.sizeOf(key);
}
