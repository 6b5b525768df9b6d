/** Limits of a stored job: what it carries, which key it counts under, and its place while it waits. */
import { LIMIT } from '../../../durable/sql';
import { type LimitPolicy, readLimitPolicy } from '../../../job/limits/policy';
import { ROW_COLUMNS, readRows } from '../columns';
import { type JobRow, STATE } from '../job-row';
import type { Named, Stored, Woken } from '../parts';
import { bodyOf, groupOfRow, isBegun } from '../row-texts';
import type { KeyLanes } from './lanes';
import type { Limiter } from './limiter';

/** Place of a waiting job: in the due index, or behind its key. */
export type WaitingPlace = Pick<JobRow, 'due_at' | 'waits_since'>;

/** Idle keys expire after this, ms. */
export const FORGET_AFTER_MS = 24 * 3_600_000;

/** The limits that a stored job carries; undefined if it has none that can be read. */
export function policyOf(q: Named, row: Pick<JobRow, 'body' | 'type'>): LimitPolicy | undefined {
  const written = bodyOf(row).rate_limit;
  if (written === undefined) return undefined;
  try {
    return readLimitPolicy(written, 'rate_limit', q.name);
  } catch {
    return undefined;
  }
}

/** The key of a stored job. An expired key is made again from the job. */
export function limiterOf(
  q: Named & Stored,
  row: Pick<JobRow, 'limit_key' | 'body' | 'type' | 'enqueued_at'>,
): Limiter {
  const key = row.limit_key as string;
  const known = q.store.limiters.find(key);
  if (known) return known;
  const limiter = q.store.limiters.get(key);
  limiter.limits = policyOf(q, row)?.limits ?? {};
  if (limiter.holder) limiter.holder.declared ??= { limits: limiter.limits, at: row.enqueued_at };
  return limiter;
}

/** Attempts of this key that run. */
export function runningOf(q: Stored, key: string): number {
  return q.store.leases.runningByKey.get(key) ?? 0;
}

/** A job with these limits arrives: from now on the newest job's limits are those of its key. */
export function learn(q: Stored & Woken, policy: LimitPolicy, now: number): void {
  const { key, limits } = policy;
  const limiter = q.store.limiters.get(key);
  if (limits && (JSON.stringify(limits) !== JSON.stringify(limiter.limits) || limiter.holder?.differs(limits))) {
    limiter.limits = limits;
    if (limiter.holder) limiter.holder.declared = { limits, at: now };
    limiter.isChanged = true;
    q.store.limiters.touch(key);
  }
  if (limiter.holder) {
    limiter.hasArrived = true;
    q.store.limiters.touch(key);
  }
  if (limiter.checkAt === null) {
    limiter.setCheck(now + FORGET_AFTER_MS);
    q.wake.at(now + FORGET_AFTER_MS);
  }
  q.store.limiters.save(limiter);
}

/**
 * Place of a job that becomes available at `dueAt`.
 * @param policy the job's limits, if the caller has them; else they are read from its body
 */
export function place(
  q: Named & Stored,
  row: Pick<
    JobRow,
    'limit_key' | 'priority' | 'body' | 'type' | 'enqueued_at' | 'attempt' | 'history' | 'holds_group' | 'group'
  >,
  dueAt: number,
  now: number,
  policy?: LimitPolicy,
): WaitingPlace {
  const ready = { due_at: dueAt, waits_since: null };
  if (row.limit_key === null || dueAt > now || !parks(q)) return ready;
  if (waitsInGroup(q, row)) return ready;
  // Further effects of a limit are decided when the turn of the other jobs comes.
  if ((policy ?? policyOf(q, row))?.on_limit !== 'wait') return ready;
  const waiting = { due_at: null, waits_since: dueAt };
  const limiter = limiterOf(q, row);
  const hasBegun = isBegun(row);
  if (limiter.roomToAdmit(row.priority, runningOf(q, row.limit_key), now, hasBegun) <= 0) return waiting;
  if (hasBegun) return ready;
  const first = limiter.mayHaveWaiting ? firstWaiting(q, limiter, 1)[0] : undefined;
  return first && first.priority >= row.priority ? waiting : ready;
}

/**
 * Do jobs leave their place to wait for their keys? Only where groups take turns. Elsewhere each consumer passes them
 * over, see {@link KeyLanes}.
 */
export const parks = ({ store }: Stored): boolean => store.gates.rules !== undefined;

/**
 * Does the job keep its place in its group, and not wait for its key? In a strict order only the first one of a group
 * waits for its key; of a paused group none does.
 */
export function waitsInGroup(q: Stored, row: Pick<JobRow, 'holds_group' | 'body' | 'group'>): boolean {
  const isBehind = q.store.gates.isStrict && row.holds_group === null && groupOfRow(row) !== undefined;
  return isBehind || isPaused(q, row);
}

/** Is the job's group paused? Then claims pass it, and it takes no room of its key from jobs of other groups. */
export function isPaused({ store: { gates } }: Stored, row: Pick<JobRow, 'body' | 'group'>): boolean {
  const group = gates.rules && groupOfRow(row);
  return group !== undefined && gates.isPaused(group);
}

/** Does the job count among those that are ready for the room of their key? Only jobs that wait for it elsewhere do. */
export function takesRoom(q: Stored, row: Pick<JobRow, 'body' | 'group'>): boolean {
  return parks(q) && !isPaused(q, row);
}

const WAITING = `FROM jobs WHERE limit_key = ? AND waits_since IS NOT NULL AND state = ${STATE.waiting}`;
const IN_ORDER = `ORDER BY priority DESC, waits_since, attempt, key ${LIMIT}`;
const WAITING_IN_ORDER = `${WAITING} ${IN_ORDER}`;

/** Is the job among the first `limit` that wait for the key? */
export function isAmongFirst(q: Stored, { key }: Limiter, row: Pick<JobRow, 'key'>, limit: number): boolean {
  const first = q.store.sql.exec<{ key: number }>(`SELECT key ${WAITING_IN_ORDER}`, key, limit);
  return Array.from(first).some((other) => other.key === row.key);
}

/** The jobs that wait for the key, in the order in which they are to run. */
export function firstWaiting(q: Stored, limiter: Limiter, limit: number): JobRow[] {
  const rows = [...readRows(q.store.sql, `SELECT ${ROW_COLUMNS} ${WAITING_IN_ORDER}`, limiter.key, limit)];
  if (rows.length === 0) limiter.mayHaveWaiting = false;
  return rows;
}

/**
 * The first `limit` jobs with a counted start that wait for the key, in the same order. May read all that wait for it.
 */
export function begunWaiting(q: Stored, limiter: Limiter, limit: number): JobRow[] {
  const begun = `instr(history, '"begun":' || (attempt + 1)) > 0`;
  const select = `SELECT ${ROW_COLUMNS} ${WAITING} AND ${begun} ${IN_ORDER}`;
  const rows = [...readRows(q.store.sql, select, limiter.key, limit)].filter(isBegun);
  if (rows.length === 0) limiter.mayHaveBegun = false;
  return rows;
}
