/**
 * The schema of each object's SQLite database. `migrations/<object>.sql` is the current one; stored ones go through
 * `<object>_<version>.sql`, step by step, in one transaction. The version is in `meta`; tables without `meta` have
 * version 1.
 *
 * A database of a later version (rollback of a deployment) stays unchanged: calls are refused, the alarm stays armed.
 */
import allowance from '../../migrations/allowance.sql';
import directory from '../../migrations/directory.sql';
import directory4 from '../../migrations/directory_4.sql';
import directory5 from '../../migrations/directory_5.sql';
import locks from '../../migrations/locks.sql';
import queue from '../../migrations/queue.sql';
import queue9 from '../../migrations/queue_9.sql';
import queue10 from '../../migrations/queue_10.sql';
import queue11 from '../../migrations/queue_11.sql';
import queue12 from '../../migrations/queue_12.sql';
import workflow from '../../migrations/workflow.sql';
import { ApiError, invalidConfiguration, unavailable } from '../job/errors';
import { put, readFact, rows, writeMeta } from './sql';

export interface SchemaVersion {
  readonly object: string;
  /** From 1 on. */
  readonly version: number;
  /** Tables of version 1: any of them shows a database without a stored version. */
  readonly first: readonly string[];
  /** Makes the tables of this version in an empty database; with the table `meta`, from version 2 on. */
  readonly tables: string;
  /** By version: brings a database of the version before to it. */
  readonly steps: Readonly<Record<number, string>>;
}

export const QUEUE: SchemaVersion = {
  object: 'queue',
  version: 12,
  first: [],
  tables: queue,
  steps: { 9: queue9, 10: queue10, 11: queue11, 12: queue12 },
};
export const DIRECTORY: SchemaVersion = {
  object: 'directory',
  version: 5,
  first: ['queues', 'workers', 'cron_places', 'workflows', 'queue_defaults', 'operation_keys'],
  tables: directory,
  steps: { 4: directory4, 5: directory5 },
};
export const WORKFLOW: SchemaVersion = {
  object: 'workflow',
  version: 1,
  first: ['parts'],
  tables: workflow,
  steps: {},
};
export const LOCKS: SchemaVersion = { object: 'lock object', version: 1, first: ['holders'], tables: locks, steps: {} };
export const ALLOWANCE: SchemaVersion = {
  object: 'allowance',
  version: 1,
  first: ['leased'],
  tables: allowance,
  steps: {},
};

/** The newest version that this code supports, by kind of object. */
export const SUPPORTED: Readonly<Record<string, number>> = Object.fromEntries(
  [QUEUE, DIRECTORY, WORKFLOW, LOCKS, ALLOWANCE].map(({ object, version }) => [object, version]),
);

/** A request that met a database of a newer version is sent again after this, s. */
const NEWER_AGAIN_S = 60;

type Storage = Pick<DurableObjectStorage, 'sql' | 'transactionSync'>;

export class Schema {
  private ready = false;

  /** @param name of the object, for errors @param misplaced why nothing may be read or written, if so */
  constructor(
    private readonly storage: Storage,
    private readonly current: SchemaVersion,
    private readonly name = '',
    private readonly misplaced?: ApiError,
  ) {}

  /**
   * Are the tables there? Earlier versions are migrated.
   * @throws {ApiError} what was given, if the object is misplaced
   * @throws {ApiError} 503 `newer_state` for a later version, 500 `invalid_configuration` for one without a step
   */
  exist(): boolean {
    if (this.misplaced) throw this.misplaced;
    if (this.ready) return true;
    const stored = this.stored();
    if (stored === 0) return false;
    this.upgrade(stored);
    this.ready = true;
    return true;
  }

  /** Makes them unless they are there. @throws as {@link exist} */
  create(): void {
    if (this.exist()) return;
    const { version, tables } = this.current;
    this.storage.transactionSync(() => {
      this.storage.sql.exec(tables).toArray();
      this.record(version);
    });
  }

  /** The rows of a query; none without the tables. @throws as {@link exist} */
  rows<T extends Record<string, SqlStorageValue>>(statement: string, ...bindings: SqlStorageValue[]): T[] {
    return this.exist() ? rows<T>(this.storage.sql, statement, ...bindings) : [];
  }

  /** A number that a query selects as `n`; 0 without the tables. */
  count(query: string, ...bindings: SqlStorageValue[]): number {
    return this.rows<{ n: number }>(query, ...bindings)[0]?.n ?? 0;
  }

  /** A fact in `meta`; undefined where there is none. */
  fact<T>(key: string): T | undefined {
    return this.exist() ? readFact<T>(this.storage.sql, key) : undefined;
  }

  /** Writes a fact; undefined removes it. One row written. */
  writeFact(key: string, value: unknown): void {
    this.create();
    writeMeta(this.storage.sql, key, value);
  }

  /** Writes a row, replacing the one with the same key. */
  put(table: string, row: Record<string, SqlStorageValue>): void {
    this.create();
    put(this.storage.sql, table, row);
  }

  /** Runs `change` in a transaction; the tables are there. */
  transaction<T>(change: () => T): T {
    this.create();
    return this.storage.transactionSync(change);
  }

  /** Why the database cannot be used now, if so. {@link ApiError}: leave it as it is; else the storage failed. */
  get refusal(): Error | undefined {
    try {
      this.exist();
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  /** The storage was emptied. */
  forget(): void {
    this.ready = false;
  }

  /** The version that is stored; 0: there are no tables. */
  private stored(): number {
    const { sql } = this.storage;
    const tables = rows<{ name: string }>(sql, "SELECT name FROM sqlite_master WHERE type = 'table'");
    const names = new Set(tables.map(({ name }) => name));
    if (names.has('meta')) return readFact<number>(sql, 'schema') ?? 0;
    return this.current.first.some((table) => names.has(table)) ? 1 : 0;
  }

  private upgrade(stored: number): void {
    const { version, steps } = this.current;
    if (stored === version) return;
    const path = Array.from({ length: Math.max(0, version - stored) }, (_, at) => steps[stored + at + 1]);
    if (path.length === 0 || path.includes(undefined)) throw this.unknown(stored);
    this.storage.transactionSync(() => {
      for (const step of path) this.storage.sql.exec(step as string).toArray();
      this.record(version);
    });
  }

  private record(version: number): void {
    if (version > 1) writeMeta(this.storage.sql, 'schema', version);
  }

  private unknown(stored: number): ApiError {
    const { name } = this;
    const { object, version } = this.current;
    const message = `The ${object} ${name} is stored in version ${stored} of its schema; this code supports version ${version}.`;
    const details = { object, name, stored_version: stored, known_version: version };
    if (stored > version) {
      const hint = 'Deploy the newer version again.';
      return new ApiError({ ...unavailable(message, NEWER_AGAIN_S).data, type: 'newer_state', details, hint });
    }
    const { data } = invalidConfiguration(message, details);
    return new ApiError({ ...data, hint: 'First deploy a release between the two.' });
  }
}
