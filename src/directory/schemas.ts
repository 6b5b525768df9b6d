/** The schemas of jobs. Workers that validate read them; the queues only know the stamp of the last change. */
import type { Schema } from '../durable/schema';
import { conflict, payloadTooLarge } from '../job/errors';
import type { RegisteredSchema } from '../job/schemas/registry';

/** Schemas that are kept, and their bytes: a Worker that validates holds them all in memory. */
const MAX_SCHEMAS = 1_000;
const MAX_BYTES = 1_048_576;

type Row = { type: string; version: string; uri: string; created_at: number; data: string };

export class SchemaStore {
  constructor(private readonly tables: Schema) {}

  all(): RegisteredSchema[] {
    const every = 'SELECT type, version, uri, created_at, data FROM schemas ORDER BY type, created_at';
    return this.tables.rows<Row>(every).map(({ data, ...row }) => ({ ...row, schema: JSON.parse(data) }));
  }

  /** Adds one. @throws {ApiError} 409, 413 */
  add({ schema, ...row }: RegisteredSchema): void {
    const { type, version, uri } = row;
    const taken = 'SELECT type, version FROM schemas WHERE uri = ? OR (type = ? AND version = ?)';
    const [other] = this.tables.rows<{ type: string; version: string }>(taken, uri, type, version);
    if (other) {
      const which = `version ${other.version} of ${other.type}`;
      throw conflict(
        `A schema is registered already as ${which}.`,
        { type: other.type, version: other.version },
        'Jobs may rely on it: register the change as another version, or delete that one first.',
      );
    }
    const data = JSON.stringify(schema);
    const sum = 'SELECT count(*) AS count, coalesce(sum(length(data)), 0) AS bytes FROM schemas';
    const [{ count, bytes } = { count: 0, bytes: 0 }] = this.tables.rows<{ count: number; bytes: number }>(sum);
    if (count >= MAX_SCHEMAS) throw payloadTooLarge('schemas', count + 1, MAX_SCHEMAS, 'schemas');
    if (bytes + data.length > MAX_BYTES) throw payloadTooLarge('schemas', bytes + data.length, MAX_BYTES);
    this.tables.put('schemas', { ...row, data });
  }

  /** @returns how many were removed */
  remove(type: string, version: string | undefined): number {
    const removed = 'DELETE FROM schemas WHERE type = ? AND (?2 IS NULL OR version = ?2) RETURNING version';
    return this.tables.rows(removed, type, version ?? null).length;
  }
}
