/** The part of the directory's interface that is about the schemas of jobs. */
import type { Outcome } from '../job/errors';
import type { RegisteredSchema } from '../job/schemas/registry';
import type { SchemaStamp } from '../job/schemas/stamp';

/** All schemas, at one moment. */
export interface SchemaSet {
  /** Absent: there never were any. */
  stamp?: SchemaStamp;
  schemas: RegisteredSchema[];
}

export interface SchemasApi {
  /** All schemas; null when they are still those of this stamp. */
  schemas(unless?: SchemaStamp): Promise<SchemaSet | null>;
  /**
   * Registers a schema, and notifies the queues of the change; waits a moment for that.
   * @returns how many queues have not confirmed yet; 409 when this version or URI exists, 413 when there is no room
   */
  putSchema(
    schema: Omit<RegisteredSchema, 'created_at'>,
  ): Promise<Outcome<{ schema: RegisteredSchema; untold: number }>>;
  /** Removes schemas of a type: of one version, or (without) all. @returns how many there were */
  removeSchemas(type: string, version?: string): Promise<{ removed: number; untold: number }>;
}
