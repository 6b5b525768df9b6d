/** The deliveries of one webhook: a row each, written two or three times. Pending ones are also in memory. */
import { put, readFact, rows, writeMeta } from '../../durable/sql';
import type { DeliveryVerdict } from '../../notifications/webhook/schedule';
import { DELIVERY_STATUSES, type DeliveryStatus } from '../../notifications/webhook/subscription';
import type { DeliveriesRequest, Delivery, DeliveryAttempt, Notice, WebhookStats } from '../../rpc/webhooks';

/** Finished deliveries that are kept: their age, ms, and their number. */
const KEPT_MS = 7 * 86_400_000;
const KEPT = 1_000;

/** The log is trimmed when it is this much too long: in few transactions, each of a bounded size. */
const SLACK = 50;
const CLEARED_AT_ONCE = 500;
const LOOK_EVERY_MS = 3_600_000;

/** What may wait, in deliveries and in characters: beyond, the oldest are given up. */
const MAX_PENDING = 10_000;
const MAX_PENDING_CHARS = 32 * 1024 * 1024;

const MAX_ATTEMPTS = 20;

const PENDING = 0;
const DEAD = 3;

/** Facts in the table `meta`: counts of what has left the log. */
const COUNTS = 'webhook_counts';

type Row = {
  event: string;
  type: string;
  state: number;
  tries: number;
  due_at: number | null;
  tried_at: number | null;
  created_at: number;
  body: string;
  log: string;
};

interface Log {
  attempts: DeliveryAttempt[];
  response?: string;
}

type Counts = Record<'success' | 'failure', number>;

/** A delivery in the form of its row. */
export type LoggedDelivery = Omit<Delivery, 'id' | 'subscription_id'>;

interface Waiting {
  dueAt: number;
  chars: number;
}

interface Known {
  waiting: Map<string, Waiting>;
  /** Of what waits. */
  chars: number;
  /** Deliveries that are over. */
  over: number;
  /** When the log is next checked for expired deliveries, epoch ms. */
  lookAt: number;
}

export type Sendable = Pick<Row, 'event' | 'type' | 'body' | 'tries'>;

export class Deliveries {
  private loaded: Known | undefined;

  constructor(private readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>) {}

  forget(): void {
    this.loaded = undefined;
  }

  /** Takes those of these that are new. */
  add(notices: readonly Notice[], now: number): void {
    this.write(() => {
      const insert = `INSERT OR IGNORE INTO deliveries (event, type, state, tries, due_at, created_at, body, log)
        VALUES (?, ?, ${PENDING}, 0, ?, ?, ?, '{"attempts":[]}') RETURNING event`;
      const { waiting } = this.load();
      for (const { id, type, body } of notices) {
        if (rows(this.sql, insert, id, type, now, now, body).length > 0)
          this.wait(id, { dueAt: now, chars: body.length });
      }
      for (const [event] of waiting) {
        if (waiting.size <= MAX_PENDING && this.load().chars <= MAX_PENDING_CHARS) break;
        this.giveUp(event, now);
      }
      this.clear(now);
    });
  }

  /** What is due, the oldest first, at most `limit`, none of `except`. */
  due(now: number, except: readonly string[], limit: number): string[] {
    const ready = [...this.load().waiting].filter(([event, { dueAt }]) => dueAt <= now && !except.includes(event));
    return ready
      .sort(([, a], [, b]) => a.dueAt - b.dueAt)
      .slice(0, limit)
      .map(([event]) => event);
  }

  /** When the next one is due, epoch ms; infinity: none is. */
  nextAt(except: readonly string[]): number {
    let next = Number.POSITIVE_INFINITY;
    for (const [event, { dueAt }] of this.load().waiting) {
      if (dueAt < next && !except.includes(event)) next = dueAt;
    }
    return next;
  }

  /** A waiting delivery; undefined: it no longer waits. */
  sendable(event: string): Sendable | undefined {
    const query = `SELECT event, type, body, tries FROM deliveries WHERE event = ? AND state = ${PENDING}`;
    return rows<{ event: string; type: string; body: string; tries: number }>(this.sql, query, event)[0];
  }

  /** An attempt has ended. One row written. */
  settle(event: string, attempt: DeliveryAttempt & { response: string }, verdict: DeliveryVerdict, now: number): void {
    this.write(() => {
      const row = this.row(event);
      if (row?.state !== PENDING) return;
      const { response, ...told } = attempt;
      const before = JSON.parse(row.log) as Log;
      const log: Log = { attempts: [...before.attempts, told].slice(-MAX_ATTEMPTS), ...(response && { response }) };
      const isOver = verdict.state !== 'pending';
      const due_at = isOver ? null : now + verdict.delayMs;
      const state = DELIVERY_STATUSES.indexOf(verdict.state);
      const tried = { tries: row.tries + 1, tried_at: attempt.at, log: JSON.stringify(log) };
      put(this.sql, 'deliveries', { ...row, state, due_at, ...tried });
      if (due_at === null) this.isOver(event);
      else this.wait(event, { dueAt: due_at, chars: row.body.length });
      this.clear(now);
    });
  }

  /** One more life, from now on. @returns whether there is such a delivery */
  again(event: string, now: number): boolean {
    return this.write(() => {
      const row = this.row(event);
      if (!row) return false;
      put(this.sql, 'deliveries', { ...row, state: PENDING, tries: 0, due_at: now });
      if (row.state !== PENDING) this.load().over--;
      this.wait(event, { dueAt: now, chars: row.body.length });
      return true;
    });
  }

  find(event: string): LoggedDelivery | undefined {
    const row = this.row(event);
    return row && view(row);
  }

  /** A page, newest first. */
  page({ statuses = [...DELIVERY_STATUSES], offset, limit }: DeliveriesRequest): {
    deliveries: LoggedDelivery[];
    total: number;
  } {
    const states = JSON.stringify(statuses.map((status) => DELIVERY_STATUSES.indexOf(status)));
    const where = 'state IN (SELECT value FROM json_each(?))';
    const page = `SELECT * FROM deliveries WHERE ${where} ORDER BY event DESC LIMIT ? OFFSET ?`;
    const found = rows<Row>(this.sql, page, states, limit, offset);
    const count = rows<{ n: number }>(this.sql, `SELECT count(*) AS n FROM deliveries WHERE ${where}`, states);
    return { deliveries: found.map(view), total: count[0]?.n ?? 0 };
  }

  stats(): WebhookStats {
    const counts = { ...this.counts() };
    const states = 'SELECT state, count(*) AS n FROM deliveries GROUP BY 1';
    for (const { state, n } of rows<{ state: number; n: number }>(this.sql, states)) add(counts, state, n);
    const latest =
      'SELECT tried_at AS at, state FROM deliveries WHERE tried_at IS NOT NULL ORDER BY tried_at DESC LIMIT 1';
    const [last] = rows<{ at: number; state: number }>(this.sql, latest);
    return {
      success_count: counts.success,
      failure_count: counts.failure,
      pending_count: this.load().waiting.size,
      ...(last && { last_delivery_at: last.at, last_delivery_status: statusOf(last.state) }),
    };
  }

  private get sql(): SqlStorage {
    return this.storage.sql;
  }

  private write<T>(run: () => T): T {
    try {
      return this.storage.transactionSync(run);
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  private load(): Known {
    if (this.loaded) return this.loaded;
    this.loaded = { waiting: new Map(), chars: 0, over: 0, lookAt: 0 };
    const query = `SELECT event, due_at AS dueAt, length(body) AS chars FROM deliveries WHERE state = ${PENDING} ORDER BY event`;
    for (const { event, ...one } of rows<{ event: string } & Record<keyof Waiting, number>>(this.sql, query)) {
      this.wait(event, one);
    }
    const count = `SELECT count(*) AS n FROM deliveries WHERE state <> ${PENDING}`;
    this.loaded.over = rows<{ n: number }>(this.sql, count)[0]?.n ?? 0;
    return this.loaded;
  }

  private wait(event: string, one: Waiting): void {
    const known = this.load();
    if (!known.waiting.has(event)) known.chars += one.chars;
    known.waiting.set(event, one);
  }

  private isOver(event: string): void {
    const known = this.load();
    known.chars -= known.waiting.get(event)?.chars ?? 0;
    known.waiting.delete(event);
    known.over++;
  }

  private giveUp(event: string, now: number): void {
    const row = this.row(event);
    if (!row) return;
    const { attempts, ...log } = JSON.parse(row.log) as Log;
    const last = { at: now, error: 'Abandoned: too many deliveries are waiting.', duration_ms: 0 };
    const told = JSON.stringify({ ...log, attempts: [...attempts, last] });
    put(this.sql, 'deliveries', { ...row, state: DEAD, due_at: null, log: told });
    this.isOver(event);
  }

  private row(event: string): Row | undefined {
    return rows<Row>(this.sql, 'SELECT * FROM deliveries WHERE event = ?', event)[0];
  }

  private counts(): Counts {
    return readFact<Counts>(this.sql, COUNTS) ?? { success: 0, failure: 0 };
  }

  /** Removes what exceeds the bounds of the log, and from time to time what is expired. */
  private clear(now: number): void {
    const known = this.load();
    const surplus = known.over > KEPT + SLACK ? Math.min(known.over - KEPT, CLEARED_AT_ONCE) : 0;
    if (surplus === 0 && now < known.lookAt) return;
    known.lookAt = now + LOOK_EVERY_MS;
    const over = `SELECT event FROM deliveries WHERE state <> ${PENDING}`;
    const clear = `DELETE FROM deliveries WHERE event IN (SELECT event FROM (${over} ORDER BY event LIMIT ?))
      OR event IN (${over} AND created_at < ? ORDER BY event LIMIT ?) RETURNING state`;
    const gone = rows<{ state: number }>(this.sql, clear, surplus, now - KEPT_MS, CLEARED_AT_ONCE);
    if (gone.length === 0) return;
    const counts = this.counts();
    for (const { state } of gone) add(counts, state, 1);
    writeMeta(this.sql, COUNTS, counts);
    known.over -= gone.length;
  }
}

const statusOf = (state: number): DeliveryStatus => DELIVERY_STATUSES[state] as DeliveryStatus;

function add(counts: Counts, state: number, n: number): void {
  const status = statusOf(state);
  if (status === 'delivered') counts.success += n;
  else if (status !== 'pending') counts.failure += n;
}

function view({ event, ...row }: Row): LoggedDelivery {
  const { attempts, response } = JSON.parse(row.log) as Log;
  const { job_id } = (JSON.parse(row.body) as { data?: { job_id?: string } }).data ?? {};
  return {
    event_id: event,
    event_type: row.type,
    ...(job_id !== undefined && { job_id }),
    status: statusOf(row.state),
    tries: row.tries,
    attempts,
    ...(row.due_at !== null && { next_attempt_at: row.due_at }),
    created_at: row.created_at,
    ...(response !== undefined && { response_body: response }),
  };
}
