/** Operations under idempotency keys with their queues, so that a repetition has the same ones. */
import type { Schema } from '../durable/schema';
import { type Outcome, usedOtherwise } from '../job/errors';
import type { KeyedOperation } from '../rpc/directory';
import type { IdempotencyKey } from '../rpc/receipts';

/** Retention of a key, ms. */
export const REMEMBER_KEY_MS = 24 * 3_600_000;

const FORGET_STEP = 100;

type Stored = Omit<KeyedOperation, 'replayed'>;

export class OperationKeys {
  constructor(private readonly tables: Schema) {}

  /** The operation of this key, or `operation` as a new one, in two rows. @returns 409 for a key of another request */
  begin({ key, hash }: IdempotencyKey, operation: Stored): Outcome<KeyedOperation> {
    const now = operation.started_at;
    return this.tables.transaction(() => {
      const known = this.find(key, now);
      if (known && known.hash !== hash) return { ok: false, error: usedOtherwise(key).data };
      if (known) return { ok: true, value: { ...known.operation, replayed: true } };
      const due = 'SELECT key FROM operation_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT ?';
      this.tables.rows(`DELETE FROM operation_keys WHERE key IN (${due})`, now, FORGET_STEP);
      const expires_at = now + REMEMBER_KEY_MS;
      this.tables.put('operation_keys', { key, hash, expires_at, data: JSON.stringify(operation) });
      return { ok: true, value: { ...operation, replayed: false } };
    });
  }

  /** Makes `queue` the deciding one, unless there is one. One row. @returns the deciding one; null: unknown key */
  coordinate(key: string, id: string, queue: string, now: number): string | null {
    return this.tables.transaction(() => {
      const known = this.find(key, now);
      if (known?.operation.id !== id) return null;
      const { coordinator } = known.operation;
      if (coordinator !== undefined) return coordinator;
      const data = JSON.stringify({ ...known.operation, coordinator: queue });
      this.tables.rows('UPDATE operation_keys SET data = ? WHERE key = ?', data, key);
      return queue;
    });
  }

  /** The operation did nothing: the key may be used again. */
  forget(key: string, id: string): void {
    this.tables.transaction(() => {
      if (this.find(key, 0)?.operation.id !== id) return;
      this.tables.rows('DELETE FROM operation_keys WHERE key = ?', key);
    });
  }

  private find(key: string, now: number): { hash: string; operation: Stored } | undefined {
    const query = 'SELECT hash, data FROM operation_keys WHERE key = ? AND expires_at > ?';
    const [row] = this.tables.rows<{ hash: string; data: string }>(query, key, now);
    return row && { hash: row.hash, operation: JSON.parse(row.data) as Stored };
  }
}
