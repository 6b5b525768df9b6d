/** The audit log, bounded in rows, bytes and age: a new entry displaces the oldest of the actor with most entries. */

import type { Schema } from '../durable/schema';
import { utf8Bytes } from '../job/bytes';
import type { AuditEntry, AuditPage, AuditRequest, StoredAudit } from '../rpc/audit';

/** Entries, the bytes of their JSON, and their age in ms, at most. */
export const AUDIT_BOUNDS = { rows: 20_000, bytes: 16 * 1024 * 1024, ageMs: 90 * 86_400_000 };

const REMOVE_STEP = 50;

interface Share {
  rows: number;
  bytes: number;
  /** No entry has this number or a lower one. */
  after: number;
}

type Stored = {
  id: number;
  at: number;
  actor: string | null;
  size: number;
};

export class AuditLog {
  /** What is stored, by actor; undefined: not counted yet. */
  private shares: Map<string | null, Share> | undefined;

  constructor(
    private readonly tables: Schema,
    private readonly bounds = AUDIT_BOUNDS,
  ) {}

  /** Adds an entry. One row written, and one for each that makes room. */
  record(entry: AuditEntry): void {
    const { at, action, actor, queue, job } = entry;
    const data = JSON.stringify(entry);
    const by = actor.name ?? actor.key_hint;
    this.counted();
    try {
      this.tables.transaction(() => {
        this.tables.put('audit', { at, action, actor: by, queue, job, data });
        this.count(by, 1, utf8Bytes(data));
        this.prune(at);
      });
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Removes entries beyond the bounds, a limited number. @param now epoch ms */
  prune(now: number): void {
    if (!this.tables.exist()) return;
    const oldest = 'SELECT id, at, actor, length(CAST(data AS BLOB)) AS size FROM audit ORDER BY id LIMIT ?';
    let upTo: number | undefined;
    for (const { id, at, actor, size } of this.tables.rows<Stored>(oldest, REMOVE_STEP)) {
      if (now - at <= this.bounds.ageMs) break;
      upTo = id;
      this.count(actor, -1, -size);
    }
    if (upTo !== undefined) this.tables.rows('DELETE FROM audit WHERE id <= ?', upTo);
    for (let removed = 0; removed < REMOVE_STEP && this.makeRoom(); removed++);
  }

  /** Removes the oldest entry of the actor that has most, if there is too much. @returns whether one was removed */
  private makeRoom(): boolean {
    const shares = this.counted();
    const sum = (of: 'rows' | 'bytes') => [...shares.values()].reduce((all, share) => all + share[of], 0);
    const tooMuch = (['rows', 'bytes'] as const).find((of) => sum(of) > this.bounds[of]);
    if (tooMuch === undefined) return false;
    const [actor, share] = [...shares].reduce((most, one) => (one[1][tooMuch] > most[1][tooMuch] ? one : most));
    const oldest = `SELECT id, length(CAST(data AS BLOB)) AS size FROM audit WHERE actor IS ? AND id > ? ORDER BY id LIMIT 1`;
    const [first] = this.tables.rows<Stored>(oldest, actor, share.after);
    if (!first) return false;
    this.tables.rows('DELETE FROM audit WHERE id = ?', first.id);
    share.after = first.id;
    this.count(actor, -1, -first.size);
    return true;
  }

  /** A page of the entries that match, the newest first. Expired ones are not shown. @param now epoch ms */
  page({ actor, actions, queue, job, since, until, offset, limit }: AuditRequest, now: number): AuditPage {
    if (!this.tables.exist()) return { entries: [], total: 0 };
    this.prune(now);
    const conditions: [text: string, ...bindings: (string | number)[]][] = [
      ['at >= ?', Math.max(since ?? 0, now - this.bounds.ageMs)],
      ...(until === undefined ? [] : [['at <= ?', until] as [string, number]]),
    ];
    for (const [column, value] of Object.entries({ queue, job, actor })) {
      if (value !== undefined) conditions.push([`${column} = ?`, value]);
    }
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
    const found = this.tables.rows<{ id: number; data: string }>(query, ...bindings, limit, offset);
    const total = this.tables.count(`SELECT count(*) AS n FROM audit WHERE ${where}`, ...bindings);
    const entries = found.map(({ id, data }): StoredAudit => ({ ...(JSON.parse(data) as AuditEntry), id }));
    return { entries, total };
  }

  forget(): void {
    this.shares = undefined;
  }

  private count(actor: string | null, entries: number, bytes: number): void {
    const shares = this.counted();
    const share = shares.get(actor) ?? { rows: 0, bytes: 0, after: 0 };
    share.rows += entries;
    share.bytes += bytes;
    if (share.rows > 0) shares.set(actor, share);
    else shares.delete(actor);
  }

  private counted(): Map<string | null, Share> {
    if (!this.shares) {
      const sums = 'SELECT actor, count(*) AS n, sum(length(CAST(data AS BLOB))) AS bytes FROM audit GROUP BY actor';
      const found = this.tables.rows<{ actor: string | null; n: number; bytes: number }>(sums);
      this.shares = new Map(found.map(({ actor, n, bytes }) => [actor, { rows: n, bytes, after: 0 }]));
    }
    return this.shares;
  }
}
