/** A metered queue database: billed rows written, tables deleted from, work of operations. */

type Cursor = { readonly rowsWritten: number };

/** Statements that begin so write nothing. */
const READS = 'SELECT';

const DELETES = 'DELETE FROM ';

export class CountingSql {
  private cursors: Cursor[] = [];
  private deleted: string[] = [];
  writes = 0;
  /** Approximate characters of rows that operations have read and written. */
  work = 0;

  private constructor(private readonly sql: SqlStorage) {}

  /** Wraps a database; its users see no difference. */
  static over(sql: SqlStorage): { sql: SqlStorage; written: CountingSql } {
    const written = new CountingSql(sql);
    return { sql: written as unknown as SqlStorage, written };
  }

  get databaseSize(): number {
    return this.sql.databaseSize;
  }

  exec<T extends Record<string, SqlStorageValue>>(query: string, ...bindings: SqlStorageValue[]): SqlStorageCursor<T> {
    const cursor = this.sql.exec<T>(query, ...bindings);
    if (query.startsWith(READS)) return cursor;
    this.cursors.push(cursor);
    this.writes++;
    for (const value of bindings) if (typeof value === 'string') this.work += value.length;
    if (query.startsWith(DELETES)) this.deleted.push(query);
    return cursor;
  }

  /** Notes work that no statement shows. @param chars of rows */
  spend(chars: number): void {
    this.work += chars;
  }

  get count(): number {
    return this.cursors.length;
  }

  /** Forgets the statements after the first `count`: they were rolled back. */
  rollback(count: number): void {
    this.cursors.length = Math.min(this.cursors.length, count);
  }

  /** Was anything deleted from a table in this transaction? */
  hasDeletedFrom(table: string): boolean {
    return this.deleted.some((query) => query.startsWith(table, DELETES.length));
  }

  /** The transaction is over. */
  end(): void {
    this.deleted = [];
  }

  /** The rows written since the last call. */
  take(): number {
    let rows = 0;
    for (const { rowsWritten } of this.cursors) rows += rowsWritten;
    this.cursors = [];
    return rows;
  }
}
