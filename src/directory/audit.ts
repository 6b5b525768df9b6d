/**
 * What operators have changed. The log is bounded in rows, in bytes and in age; the oldest entries make room for new ones, a
 * bounded number at a time.
 */

import type { Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { utf8Bytes } from '../job/bytes';
import type { AuditEntry, AuditPage, AuditRequest, StoredAudit } from '../rpc/audit';

/** Entries, the bytes of their JSON, and their age in ms, at most. */
export const AUDIT_BOUNDS = { rows: 20_000, bytes: 16 * 1024 * 1024, ageMs: 90 * 86_400_000 };

/** Entries removed at a time. */
const REMOVE_STEP = 50;

export class AuditLog {
  /** What is stored; undefined: not counted yet. */
  private size: { rows: number; bytes: number } | undefined;

  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>,
    private readonly tables: Schema,
    private readonly bounds = AUDIT_BOUNDS,
  ) {}

  /** Adds an entry. One row written, and one for each that makes room. */
  record(entry: AuditEntry): void {
    this.tables.create();
    const { at, action, actor, queue, job } = entry;
    const data = JSON.stringify(entry);
    const size = this.counted();
    try {
      this.storage.transactionSync(() => {
        put(this.storage.sql, 'audit', { at, action, actor: actor.name ?? actor.key_hint, queue, job, data });
        this.size = { rows: size.rows + 1, bytes: size.bytes + utf8Bytes(data) };
        this.prune(at);
      });
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Removes what is too old or too much, a bounded part of it. @param now epoch ms */
  prune(now: number): void {
    if (!this.tables.exist()) return;
    let { rows: count, bytes } = this.counted();
    const { sql } = this.storage;
    const oldest = 'SELECT id, at, length(CAST(data AS BLOB)) AS size FROM audit ORDER BY id LIMIT ?';
    let upTo: number | undefined;
    for (const { id, at, size } of rows<{ id: number; at: number; size: number }>(sql, oldest, REMOVE_STEP)) {
      const fits = count <= this.bounds.rows && bytes <= this.bounds.bytes;
      if (fits && now - at <= this.bounds.ageMs) break;
      upTo = id;
      count -= 1;
      bytes -= size;
    }
    if (upTo === undefined) return;
    rows(sql, 'DELETE FROM audit WHERE id <= ?', upTo);
    this.size = { rows: count, bytes };
  }

  /** A page of the entries that match, the newest first. What is too old is not shown. @param now epoch ms */
  page({ actor, actions, queue, job, since, until, offset, limit }: AuditRequest, now: number): AuditPage {
    if (!this.tables.exist()) return { entries: [], total: 0 };
    this.prune(now);
    const { sql } = this.storage;
    const conditions: [text: string, ...bindings: (string | number)[]][] = [
      ['at >= ?', Math.max(since ?? 0, now - this.bounds.ageMs)],
      ...(until === undefined ? [] : [['at <= ?', until] as [string, number]]),
      ...(queue === undefined ? [] : [['queue = ?', queue] as [string, string]]),
      ...(job === undefined ? [] : [['job = ?', job] as [string, string]]),
      ...(actor === undefined ? [] : [['actor = ?', actor] as [string, string]]),
    ];
    if (actions) {
      // Compared from the front: a pattern of GLOB has 50 characters at most.
      const starts = actions.map((action) => action.replace('*', ''));
      const each = actions.map((action, at) =>
        action === starts[at] ? 'action' : `substr(action, 1, ${starts[at]?.length})`,
      );
      conditions.push([`(${each.map((value) => `${value} = ?`).join(' OR ')})`, ...starts]);
    }
    const where = conditions.map(([text]) => text).join(' AND ');
    const bindings = conditions.flatMap(([, ...values]) => values);
    const query = `SELECT id, data FROM audit WHERE ${where} ORDER BY id DESC LIMIT ? OFFSET ?`;
    const found = rows<{ id: number; data: string }>(sql, query, ...bindings, limit, offset);
    const [counted] = rows<{ n: number }>(sql, `SELECT count(*) AS n FROM audit WHERE ${where}`, ...bindings);
    const entries = found.map(({ id, data }): StoredAudit => ({ ...(JSON.parse(data) as AuditEntry), id }));
    return { entries, total: counted?.n ?? 0 };
  }

  /** Everything was removed, or a transaction was undone. */
  forget(): void {
    this.size = undefined;
  }

  private counted(): { rows: number; bytes: number } {
    if (!this.size) {
      const sum = 'SELECT count(*) AS n, coalesce(sum(length(CAST(data AS BLOB))), 0) AS bytes FROM audit';
      const [row] = rows<{ n: number; bytes: number }>(this.storage.sql, sum);
      this.size = { rows: row?.n ?? 0, bytes: row?.bytes ?? 0 };
    }
    return this.size;
  }
}
