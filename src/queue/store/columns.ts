import type { LimitPolicy } from '../../job/limits/policy';
import { type JobRow, STATE } from './job-row';

export const isInLine = (row: Pick<JobRow, 'state' | 'due_at'>): boolean =>
  row.state === STATE.waiting && row.due_at === null;

/** {@link isInLine} in SQL, for keys of the line. */
export const STANDS_IN_LINE = `state = ${STATE.waiting} AND due_at IS NULL`;

/** May this body name a URL? A cheap test of its text: never false if it does, rarely true if it does not. */
export const mayNameUrl = (body: string) => body.includes('"target_url":"');

/** May such a job stand in a block when its turn comes and its key has no room? Others are looked at at once. */
export const mayWaitInLine = (limit: LimitPolicy | undefined): boolean => !limit || limit.on_limit === 'wait';

/** Do its body, type and id say everything about it, so that it can join a block? */
export function isPlain(row: JobRow): boolean {
  if (row.expires_at !== null || row.history !== null || row.holds_group !== null) return false;
  return row.attempt === 0 && row.claims === 0 && row.created_at === row.enqueued_at;
}
