/** Rows of cancelled and discarded jobs in the order of removal; those with their own retention separately. */

import { type Fragment, LIMIT } from '../../durable/sql';
import type { DeadLetterPlace } from '../../rpc/failures';

const AS_QUEUE_SAYS = '(keep_until IS NULL) = 1';
const AS_JOB_SAYS = '(keep_until IS NULL) = 0';

/** Keys of the oldest rows in `state` that their queue's retention removes, ended at or before `cutoff`. */
export function endedBefore(sql: SqlStorage, state: number, cutoff: number, limit: number): number[] {
  return keysOf(
    sql.exec<{ key: number }>(
      `SELECT key FROM jobs WHERE state = ? AND ${AS_QUEUE_SAYS} AND ended_at <= ? ORDER BY ended_at ${LIMIT}`,
      state,
      cutoff,
      limit,
    ),
  );
}

/** When the first row in `state` ended that its queue's retention removes, epoch ms. */
export function firstEnded(sql: SqlStorage, state: number): number | undefined {
  const first = `SELECT min(ended_at) AS at FROM jobs WHERE state = ? AND ${AS_QUEUE_SAYS} AND ended_at IS NOT NULL`;
  return sql.exec<{ at: number | null }>(first, state).one().at ?? undefined;
}

/** Keys of rows that were kept until `now`, those due first in front. */
export function keptBefore(sql: SqlStorage, now: number, limit: number): number[] {
  return keysOf(
    sql.exec<{ key: number }>(
      `SELECT key FROM jobs WHERE keep_until <= ? AND ended_at IS NOT NULL ORDER BY keep_until ${LIMIT}`,
      now,
      limit,
    ),
  );
}

/** When the first row with a retention of its own is due, epoch ms. */
export function firstKeptRow(sql: SqlStorage): number | undefined {
  const first = 'SELECT min(keep_until) AS at FROM jobs WHERE keep_until IS NOT NULL AND ended_at IS NOT NULL';
  return sql.exec<{ at: number | null }>(first).one().at ?? undefined;
}

/** Keys of the oldest rows in `state`, whatever their retention. */
export function oldestEnded(sql: SqlStorage, state: number, limit: number): number[] {
  const part = (kind: string) =>
    `SELECT key, ended_at FROM jobs WHERE state = ${state} AND ${kind} AND ended_at IS NOT NULL`;
  const both = `${part(AS_QUEUE_SAYS)} UNION ALL ${part(AS_JOB_SAYS)}`;
  return keysOf(sql.exec<{ key: number }>(`${both} ORDER BY ended_at ${LIMIT}`, limit));
}

/** When the oldest row in `state` ended, whatever its retention; epoch ms. */
export function oldestEndedAt(sql: SqlStorage, state: number): number | undefined {
  const part = (kind: string) =>
    `SELECT min(ended_at) AS at FROM jobs WHERE state = ${state} AND ${kind} AND ended_at IS NOT NULL`;
  const first = `SELECT min(at) AS at FROM (${part(AS_QUEUE_SAYS)} UNION ALL ${part(AS_JOB_SAYS)})`;
  return sql.exec<{ at: number | null }>(first).one().at ?? undefined;
}

/** Rows that ended in [`since`, `until`), epoch ms; only those after the position `before`, newest first. */
export interface EndedRange {
  since: number;
  until: number;
  before?: DeadLetterPlace;
}

export function newestEnded(sql: SqlStorage, state: number, range: EndedRange, limit: number): DeadLetterPlace[] {
  const { since, until, before } = range;
  const read = (bounds: string, from: number, to: number, most: number) =>
    sql
      .exec<{ key: number; at: number }>(
        `${endedWhere(state, bounds)} ORDER BY at DESC, key DESC LIMIT ?3`,
        from,
        to,
        most,
      )
      .toArray();
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

/** Keys of the rows at these positions that match the condition. */
export function whichMatch(
  sql: SqlStorage,
  places: readonly DeadLetterPlace[],
  condition: Fragment,
): ReadonlySet<number> {
  const keys = JSON.stringify(places.map(({ key }) => key));
  const query = `SELECT key FROM jobs WHERE key IN (SELECT value FROM json_each(?)) AND ${condition.sql}`;
  return new Set(keysOf(sql.exec<{ key: number }>(query, keys, ...condition.bindings)));
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
    const query = `SELECT count(*) AS n FROM (${ended})`;
    const { n } = sql.exec<{ n: number }>(query, since, until, limit).one();
    return { looked: n, matched: n };
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

function keysOf(rows: Iterable<{ key: number }>): number[] {
  return Array.from(rows, ({ key }) => key);
}
