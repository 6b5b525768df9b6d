/** Databases as a release stored them ({@link file://./record.ts}), and loading them into fresh objects. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import type { Json } from '../support/server';
import queue8 from './fixtures/queue-8.json';

export type Namespace = 'QUEUES' | 'DIRECTORY' | 'WORKFLOWS' | 'UNIQUE_LOCKS';

export interface StoredObject {
  namespace: Namespace;
  name: string;
  /** Epoch ms. */
  alarm: number | null;
  schema: string[];
  rows: Record<string, Record<string, SqlStorageValue>[]>;
}

export interface Stored {
  /** When it was recorded, epoch ms. */
  at: number;
  /** Ids of what is stored, by what it is. */
  ids: Record<string, string>;
  objects: StoredObject[];
}

/**
 * A deployment as 0.1.0 stored it: queues of version 8, directories of version 3, all others of version 1. Its directory
 * has still to list the ids that were chosen by producers: the objects that hold the list were not recorded.
 */
export const QUEUE_8 = queue8 as unknown as Stored;

export const object = (namespace: Namespace, name: string) => env[namespace].getByName(name) as DurableObjectStub;

/** Puts what was stored into the objects of these names, in place of what they have, and lets them be constructed anew. */
export async function load({ objects }: Stored): Promise<void> {
  for (const { namespace, name, alarm, schema, rows } of objects) {
    const stub = object(namespace, name);
    await runInDurableObject(stub, async (_, { storage }) => {
      await storage.deleteAlarm();
      await storage.deleteAll();
      storage.transactionSync(() => {
        for (const statement of schema) storage.sql.exec(statement).toArray();
        for (const [table, all] of Object.entries(rows)) for (const row of all) insert(storage.sql, table, row);
      });
      if (alarm !== null) await storage.setAlarm(alarm);
    });
  }
  // All together, once everything is there: an object that is opened may call the others.
  for (const { namespace, name } of objects) await evictDurableObject(object(namespace, name));
}

function insert(sql: SqlStorage, table: string, row: Record<string, SqlStorageValue>): void {
  const names = Object.keys(row);
  const places = names.map(() => '?').join(', ');
  sql.exec(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${places})`, ...Object.values(row)).toArray();
}

/** Everything in an object's database and its alarm, to compare. */
export function contents(namespace: Namespace, name: string): Promise<Json> {
  return runInDurableObject(object(namespace, name), async (_, { storage }) => ({
    alarm: await storage.getAlarm(),
    schema: schemaOf(storage.sql),
    rows: Object.fromEntries(
      tablesOf(storage.sql).map((table) => [table, storage.sql.exec(`SELECT * FROM ${table}`).toArray()]),
    ),
  }));
}

/** The tables of a database, in the order in which they were made. */
export function tablesOf(sql: SqlStorage): string[] {
  return sql
    .exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*'")
    .toArray()
    .map(({ name }) => name);
}

/** Columns and indexes of every table, whatever statements made them in whatever order. */
export function schemaOf(sql: SqlStorage): Json {
  const tables = tablesOf(sql).sort();
  return Object.fromEntries(
    tables.map((table) => [
      table,
      {
        columns: sql.exec(`SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info('${table}')`).toArray(),
        indexes: sql
          .exec<{ sql: string }>(
            "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL ORDER BY name",
            table,
          )
          .toArray()
          .map(({ sql }) => sql.replace('IF NOT EXISTS ', '')),
      },
    ]),
  );
}
