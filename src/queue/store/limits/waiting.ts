/** Counts the available jobs of keys, from what is stored. */
import { type JobRow, STATE } from '../job-row';
import type { Stored } from '../parts';
import { isBegun } from '../row-texts';
import type { WaitingJobs } from './limiter';

/** Counts the jobs under these keys. Reads heads of blocks, and all rows of limited jobs. @param now epoch ms */
export function waitingUnder({ store }: Stored, keys: ReadonlySet<string>, now: number): Map<string, WaitingJobs> {
  const { sql, blocks, leases, priorities } = store;
  const found = new Map<string, WaitingJobs>();
  const visit = (row: Pick<JobRow, 'key' | 'limit_key' | 'attempt' | 'history'>) => {
    if (row.limit_key === null || !keys.has(row.limit_key) || leases.active.has(row.key)) return;
    const counts = found.get(row.limit_key) ?? { all: 0, begun: 0 };
    counts.all++;
    if (isBegun(row)) counts.begun++;
    found.set(row.limit_key, counts);
  };
  for (const row of blocks.line.after(leases.head, false)) visit(row);
  for (const row of blocks.singles.after(0)) visit(row);
  for (const priority of priorities) for (const row of blocks.due.inTurn(priority, undefined, now, false)) visit(row);
  const own = `SELECT key, limit_key, attempt, history FROM jobs WHERE limit_key IS NOT NULL AND state = ${STATE.waiting}
    AND coalesce(due_at, 0) <= ?`;
  for (const row of sql.exec<Pick<JobRow, 'key' | 'limit_key' | 'attempt' | 'history'>>(own, now)) visit(row);
  return found;
}
