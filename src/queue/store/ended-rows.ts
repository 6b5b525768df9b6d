/** Rows of cancelled and discarded jobs in the order of removal; those with their own retention separately. */

import { cell, column, type Fragment, LIMIT, rows } from '../../durable/sql';
import { foreverFrom } from '../../job/retention';
import type { DeadLetterPlace } from '../../rpc/failures';
import { STATE } from './job-row';

const AS_QUEUE_SAYS = '(keep_until IS NULL) = 1';
const AS_JOB_SAYS = '(keep_until IS NULL) = 0';

/** Keys of the oldest rows in `state` that their queue's retention removes, ended at or before `cutoff`. */
export function endedBefore(sql: SqlStorage, state: number, cutoff: number, limit: number): number[] {
  const oldest = `SELECT key FROM jobs WHERE state = ? AND ${AS_QUEUE_SAYS} AND ended_at <= ? ORDER BY ended_at ${LIMIT}`;
  return column(sql, oldest, state, cutoff, limit);
}

/** When the first row in `state` ended that its queue's retention removes, epoch ms. */
export const firstEnded = (sql: SqlStorage, state: number): number | undefined =>
  cell(sql, `SELECT min(ended_at) FROM jobs WHERE state = ? AND ${AS_QUEUE_SAYS} AND ended_at IS NOT NULL`, state);

/** Keys of rows that were kept until `now`, those due first in front. */
export function keptBefore(sql: SqlStorage, now: number, limit: number): number[] {
  const due = `SELECT key FROM jobs WHERE keep_until <= ? AND ended_at IS NOT NULL ORDER BY keep_until ${LIMIT}`;
  return column(sql, due, now, limit);
}

/** When the first row with a retention of its own is due, epoch ms. */
export const firstKeptRow = (sql: SqlStorage): number | undefined =>
  cell(sql, 'SELECT min(keep_until) FROM jobs WHERE keep_until IS NOT NULL AND ended_at IS NOT NULL');

/** Rows in `state` that may go early, not those kept for ever. @param asQueueSays false: with own retentions only */
function removable(sql: SqlStorage, state: number, now: number, asQueueSays = true): string {
  const part = (from: string, kind: string) =>
    `SELECT key, ended_at FROM ${from} WHERE state = ${state} AND ${kind} AND ended_at IS NOT NULL`;
  // Many may be kept for ever: then the others are found by their moments.
  const asJobSays = isAnyForever(sql, now)
    ? part('jobs INDEXED BY jobs_kept', `keep_until < ${foreverFrom(now)}`)
    : part('jobs', AS_JOB_SAYS);
  return asQueueSays ? `${part('jobs', AS_QUEUE_SAYS)} UNION ALL ${asJobSays}` : asJobSays;
}

function isAnyForever(sql: SqlStorage, now: number): boolean {
  const any = 'SELECT EXISTS (SELECT 1 FROM jobs WHERE keep_until >= ? AND ended_at IS NOT NULL)';
  return cell(sql, any, foreverFrom(now)) === 1;
}

/** Keys of the oldest rows in `state` that may go before their time, see {@link removable}. */
export const oldestEnded = (sql: SqlStorage, state: number, limit: number, now: number, asQueueSays?: boolean) =>
  column<number>(sql, `${removable(sql, state, now, asQueueSays)} ORDER BY ended_at ${LIMIT}`, limit);

/** Of `count` dead letters, how many may go early. @param most no more are counted */
export function countEvictable(sql: SqlStorage, count: number, most: number, now: number): number {
  if (!isAnyForever(sql, now)) return count;
  return cell<number>(sql, `SELECT count(*) FROM (${removable(sql, STATE.dead, now)} LIMIT ?)`, most) as number;
}

/** When the oldest row in `state` ended, whatever its retention; epoch ms. */
export function oldestEndedAt(sql: SqlStorage, state: number): number | undefined {
  const part = (kind: string) =>
    `SELECT min(ended_at) AS at FROM jobs WHERE state = ${state} AND ${kind} AND ended_at IS NOT NULL`;
  return cell(sql, `SELECT min(at) FROM (${part(AS_QUEUE_SAYS)} UNION ALL ${part(AS_JOB_SAYS)})`);
}

/** Rows that ended in [`since`, `until`), epoch ms; only those after the position `before`, newest first. */
export interface EndedRange {
  since: number;
  until: number;
  before?: DeadLetterPlace;
}

export function newestEnded(sql: SqlStorage, state: number, range: EndedRange, limit: number): DeadLetterPlace[] {
  const { since, until, before } = range;
  const read = (bounds: string, ...bindings: [from: number, to: number, most: number]) =>
    rows<{ key: number; at: number }>(
      sql,
      `${endedWhere(state, bounds)} ORDER BY at DESC, key DESC LIMIT ?3`,
      ...bindings,
    );
  const sameMoment =
    before && before.at >= since && before.at < until
      ? read('ended_at = ?1 AND key < ?2', before.at, before.key, limit)
      : [];
  const end = before ? Math.min(before.at, until) : until;
  const rest = limit - sameMoment.length;
  return rest > 0 ? [...sameMoment, ...read(IN_RANGE, since, end, rest)] : sameMoment;
}

const IN_RANGE = 'ended_at >= ?1 AND ended_at < ?2';

function endedWhere(state: number, bounds: string): string {
  const part = (kind: string) =>
    `SELECT key, ended_at AS at FROM jobs WHERE state = ${state} AND ${kind} AND ${bounds}`;
  return `${part(AS_QUEUE_SAYS)} UNION ALL ${part(AS_JOB_SAYS)}`;
}

export function whichMatch(
  sql: SqlStorage,
  places: readonly DeadLetterPlace[],
  condition: Fragment,
): ReadonlySet<number> {
  const keys = JSON.stringify(places.map(({ key }) => key));
  const query = `SELECT key FROM jobs WHERE key IN (SELECT value FROM json_each(?)) AND ${condition.sql}`;
  return new Set(column<number>(sql, query, keys, ...condition.bindings));
}

/** How many rows in `state` match, of at most `limit` that are looked at. */
export function countEnded(
  sql: SqlStorage,
  state: number,
  { since, until }: EndedRange,
  limit: number,
  condition?: Fragment,
): { looked: number; matched: number } {
  const ended = `${endedWhere(state, IN_RANGE)} LIMIT ?3`;
  if (!condition) {
    const looked = cell<number>(sql, `SELECT count(*) FROM (${ended})`, since, until, limit) as number;
    return { looked, matched: looked };
  }
  return sql
    .exec<{ looked: number; matched: number }>(
      `WITH ended AS (${ended}) SELECT count(*) AS looked, coalesce(sum(${condition.sql}), 0) AS matched
       FROM ended CROSS JOIN jobs USING (key)`,
      ...[since, until, limit],
      ...condition.bindings,
    )
    .one();
}
