/** The tables of one subject, which an object has from the subject's first row on: one that is only read stays empty. */

type Storage = Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;

/** A column that a later version has added. */
export interface AddedColumn {
  name: string;
  /** The migration that adds it. */
  schema: string;
}

export class Tables {
  private ready = false;

  /**
   * @param table a table by which they are known
   * @param schema the migration that makes them
   * @param added what tables of an earlier version do not have
   */
  constructor(
    private readonly storage: Storage,
    private readonly table: string,
    private readonly schema: string,
    private readonly added?: AddedColumn,
  ) {}

  /** Are they there? Tables of an earlier version are brought up to date. */
  exist(): boolean {
    if (this.ready) return true;
    const { sql } = this.storage;
    const found = sql
      .exec<{ sql: string }>("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", this.table)
      .toArray()[0];
    if (!found) return false;
    if (this.added && !found.sql.includes(this.added.name)) sql.exec(this.added.schema).toArray();
    this.ready = true;
    return true;
  }

  /** Makes them unless they are there. */
  create(): void {
    if (this.exist()) return;
    const { sql } = this.storage;
    this.storage.transactionSync(() => {
      sql.exec(this.schema).toArray();
      if (this.added) sql.exec(this.added.schema).toArray();
    });
    this.ready = true;
  }

  /** The storage was emptied. */
  forget(): void {
    this.ready = false;
  }
}
