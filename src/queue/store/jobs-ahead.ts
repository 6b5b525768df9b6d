/** How many jobs come before another one in the order of `ranks.ts`: counted when a client asks why it waits. */
import { rowsUntil } from '../../durable/sql';
import { RANK_BIT } from '../../job/ids';
import { compare, positionOf, START } from './due-index';
import { type JobRow, STANDS_IN_LINE } from './job-row';
import { comesFirst, type Ranks } from './ranks';
import type { Scan } from './scan';

/** Rows that one count looks at, at most. */
export const MAX_COUNTED = 1_000;

export interface Ahead {
  count: number;
  /** There may be more: the count reached its bound. */
  isMore: boolean;
}

type OtherRow = Pick<JobRow, 'key' | 'type' | 'enqueued_at' | 'due_at' | 'attempt' | 'limit_key'>;

/**
 * Counts the jobs that a consumer is given before this one. Reads no bodies, at most {@link MAX_COUNTED} rows.
 * @param scan the consumer's cursor @param row in the line or due @param isRival same consumer, not running?
 */
export function countAhead(
  ranks: Ranks,
  scan: Scan,
  row: JobRow,
  now: number,
  isRival: (other: Pick<JobRow, 'key' | 'type' | 'limit_key'>) => boolean,
): Ahead {
  const ahead: Ahead = { count: 0, isMore: false };
  let left = MAX_COUNTED;
  /** @param comesBefore must hold for all rows up to the first for which it does not */
  const count = (others: Iterable<OtherRow>, comesBefore: (other: OtherRow) => boolean): void => {
    if (ahead.isMore) return;
    for (const other of others) {
      if (!comesBefore(other)) return;
      if (left-- === 0) {
        ahead.isMore = true;
        return;
      }
      if (isRival(other)) ahead.count++;
    }
  };
  const read = (where: string, ...bindings: number[]): Iterable<OtherRow> => {
    const query = `SELECT key, type, enqueued_at, due_at, attempt, limit_key FROM jobs WHERE ${where}`;
    return rowsUntil<OtherRow>(ranks.sql, query, ...bindings);
  };
  const isLine = row.due_at === null;
  const comesFirstHere = (other: OtherRow) => {
    if (isLine) return other.due_at === null ? other.key < row.key : comesFirst(other, row);
    return other.due_at === null ? !comesFirst(row, other) : compare(positionOf(other), positionOf(row)) < 0;
  };
  for (const priority of [...new Set([...ranks.priorities, 0])].sort((a, b) => b - a)) {
    if (priority < row.priority) break;
    const comesBefore = priority === row.priority ? comesFirstHere : () => true;
    const cursor = scan.due.get(priority) ?? START;
    const isPast = (other: OtherRow) => compare(positionOf(other), cursor) <= 0;
    if (ranks.priorities.has(priority)) {
      const where = 'priority = ? AND due_at >= ? AND due_at <= ? ORDER BY due_at, attempt, key';
      count(read(where, priority, cursor.at, now), (other) => isPast(other) || comesBefore(other));
      count(ranks.blocks.due.inTurn(priority, cursor, now, false), comesBefore);
      count(ranks.blocks.retries.inTurn(priority, cursor, now, false), comesBefore);
    }
    if (priority !== 0) continue;
    const where = `key > ? AND key < ${RANK_BIT} AND ${STANDS_IN_LINE} ORDER BY key`;
    count(read(where, scan.line), comesBefore);
    count(ranks.blocks.line.after(scan.line, false), comesBefore);
  }
  return ahead;
}
