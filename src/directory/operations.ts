/**
 * Operations under idempotency keys, with their queues: a repetition must not change which queues take part. Each
 * queue remembers its own part.
 */
import type { Schema } from '../durable/schema';
import { put, rows } from '../durable/sql';
import { type Outcome, usedOtherwise } from '../job/errors';
import type { KeyedOperation } from '../rpc/directory';
import type { IdempotencyKey } from '../rpc/receipts';

/** Retention of a key, ms. */
export const REMEMBER_KEY_MS = 24 * 3_600_000;

/** Keys forgotten at a time. */
const FORGET_STEP = 100;

type Stored = Omit<KeyedOperation, 'replayed'>;

export class OperationKeys {
  constructor(
    private readonly storage: Pick<DurableObjectStorage, 'sql' | 'transactionSync'>,
    private readonly tables: Schema,
  ) {}

  /**
   * The operation of this key, or `operation` as a new one: two rows, later two to forget it.
   * @returns 409 when the key was used for another request
   */
  begin({ key, hash }: IdempotencyKey, operation: Stored): Outcome<KeyedOperation> {
    this.tables.create();
    const now = operation.started_at;
    return this.storage.transactionSync(() => {
      const known = this.find(key, now);
      if (known && known.hash !== hash) return { ok: false, error: usedOtherwise(key).data };
      if (known) return { ok: true, value: { ...known.operation, replayed: true } };
      const due = 'SELECT key FROM operation_keys WHERE expires_at <= ? ORDER BY expires_at LIMIT ?';
      rows(this.storage.sql, `DELETE FROM operation_keys WHERE key IN (${due})`, now, FORGET_STEP);
      const expires_at = now + REMEMBER_KEY_MS;
      put(this.storage.sql, 'operation_keys', { key, hash, expires_at, data: JSON.stringify(operation) });
      return { ok: true, value: { ...operation, replayed: false } };
    });
  }

  /** Makes `queue` the deciding one, unless there is one. One row. @returns the deciding one; null: unknown key */
  coordinate(key: string, id: string, queue: string, now: number): string | null {
    this.tables.create();
    return this.storage.transactionSync(() => {
      const known = this.find(key, now);
      if (known?.operation.id !== id) return null;
      const { coordinator } = known.operation;
      if (coordinator !== undefined) return coordinator;
      const data = JSON.stringify({ ...known.operation, coordinator: queue });
      rows(this.storage.sql, 'UPDATE operation_keys SET data = ? WHERE key = ?', data, key);
      return queue;
    });
  }

  /** The operation did nothing: the key may be used again. */
  forget(key: string, id: string): void {
    this.tables.create();
    this.storage.transactionSync(() => {
      if (this.find(key, 0)?.operation.id !== id) return;
      rows(this.storage.sql, 'DELETE FROM operation_keys WHERE key = ?', key);
    });
  }

  private find(key: string, now: number): { hash: string; operation: Stored } | undefined {
    const query = 'SELECT hash, data FROM operation_keys WHERE key = ? AND expires_at > ?';
    const [row] = rows<{ hash: string; data: string }>(this.storage.sql, query, key, now);
    return row && { hash: row.hash, operation: JSON.parse(row.data) as Stored };
  }
}
