/** Discards waiting jobs whose time has passed. */
import type { Feature, Host } from '../../feature';
import { expire } from '../../jobs/expire';
import { rowByKey, STATE } from '../../store/columns';
import type { QueueState } from '../../store/state';

export class Expiry implements Feature {
  constructor(private readonly host: Host) {}

  get overdueAt(): number {
    return this.host.q.nextExpiry;
  }

  due(): number {
    return this.overdueAt;
  }

  before(now: number): void {
    expireDue(this.host.q, now);
  }
}

/** Rows looked at in one go. */
const STEP = 500;

/**
 * Discards waiting jobs that have expired. A job that runs is left alone: expiry forbids a start, not an end.
 * Costs nothing while no job can have expired.
 */
function expireDue(q: QueueState, now: number): void {
  if (now < q.nextExpiry) return;
  let after = { at: Number.MIN_SAFE_INTEGER, key: 0 };
  for (;;) {
    const rows = q.sql
      .exec<{ key: number; at: number }>(
        `SELECT key, expires_at AS at FROM jobs
         WHERE expires_at <= ? AND (expires_at, key) > (?, ?) AND ended_at IS NULL AND state <> ${STATE.held}
         ORDER BY expires_at, key LIMIT ?`,
        now,
        after.at,
        after.key,
        STEP,
      )
      .toArray();
    for (const { key } of rows) {
      const row = q.leases.active.has(key) ? undefined : rowByKey(q.sql, key);
      if (row) expire(q, row, now);
    }
    const last = rows.at(-1);
    if (rows.length < STEP || !last) break;
    after = last;
  }
  const next = q.sql
    .exec<{ at: number | null }>(
      'SELECT min(expires_at) AS at FROM jobs WHERE expires_at > ? AND ended_at IS NULL',
      now,
    )
    .one().at;
  q.nextExpiry = next ?? Number.POSITIVE_INFINITY;
}
