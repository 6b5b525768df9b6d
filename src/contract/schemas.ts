/** The schemas of job arguments: below `/admin` by type and version, else by URI too, as the OJS SDKs have it. */
import type { Also } from '../ojs/names';
import type { CursorQuery, Page, Spreading, Time } from './common';
import { del, get, operates, post, put } from './route';

interface SchemaMembers {
  uri: string;
  type: string;
  /** A whole number stays one. */
  version: string | number;
  /** JSON Schema of the array of arguments. */
  schema: Record<string, unknown>;
  created_at: Time;
}

/** A version of the schema of a job type. */
export interface ArgsSchema extends Also<'ArgsSchema', SchemaMembers> {}

export interface ArgsSchemaChanged extends ArgsSchema, Spreading {}

export interface SchemaAnswer {
  schema: ArgsSchema;
}

export interface SchemaChanged extends SchemaAnswer, Spreading {}

export interface SchemaList extends Also<'SchemaList', Page<ArgsSchema>> {}

/** The versions of a type, the latest first. */
export interface SchemaVersions {
  type: string;
  versions: { version: string | number; created_at: Time; is_latest: boolean }[];
}

export interface SchemasRemoved extends Spreading {
  deleted: true;
  type: string;
  /** How many versions. */
  removed: number;
}

interface NewSchema {
  /** JSON Schema of the array of arguments. */
  schema?: Record<string, unknown>;
  /** Default: made of type and version. */
  uri?: string | null;
}

/** A version to register. */
export interface SchemaRequest extends Also<'SchemaRequest', NewSchema> {}

interface NamedSchema extends SchemaRequest {
  type?: string;
  version: string | number;
}

/** A version to register, where the path does not name it. */
export interface NamedSchemaRequest extends Also<'NamedSchemaRequest', NamedSchema> {}

/** Below `/ojs/v1`. A key that changes what other producers may send needs more than the right to send jobs. */
export const schemas = {
  /** Lists the schemas of job arguments. */
  list: get<{ query: CursorQuery; 200: SchemaList }>('/schemas'),
  /** Registers a version of a schema. It is never replaced by another one. */
  register: post<{ body: NamedSchemaRequest; 201: SchemaChanged; errors: 409 }>('/schemas', operates('schema.put')),
  /** Lists the versions of a schema. */
  versions: get<{ 200: SchemaVersions; errors: 404 }>('/schemas/:name/versions'),
  /** Removes a version of a schema. */
  removeVersion: del<{ 200: SchemasRemoved; errors: 404 }>('/schemas/:name/:version', operates('schema.delete')),
  /** Shows the latest version of a schema, or the schema of a URI. */
  show: get<{ 200: SchemaAnswer; errors: 404 }>('/schemas/:name'),
  /** Removes the schema of a URI, or all versions of a type. */
  remove: del<{ 200: SchemasRemoved; errors: 404 }>('/schemas/:name', operates('schema.delete')),
};

/** Below `/ojs/v1/admin`. */
export const adminSchemas = {
  /** Lists the schemas of job arguments. */
  list: get<{ query: CursorQuery; 200: SchemaList }>('/schemas'),
  /** Lists the versions of a schema. */
  versions: get<{ 200: SchemaVersions; errors: 404 }>('/schemas/:name/versions'),
  /** Shows a version of a schema. */
  showVersion: get<{ 200: ArgsSchema; errors: 404 }>('/schemas/:name/:version'),
  /** Shows the latest version of a schema. */
  show: get<{ 200: ArgsSchema; errors: 404 }>('/schemas/:name'),
  /** Registers a version of a schema. It is never replaced by another one. */
  register: put<{ body: SchemaRequest; 201: ArgsSchemaChanged; errors: 409 }>('/schemas/:name/:version', {
    audit: 'schema.put',
  }),
  /** Removes a version of a schema. */
  remove: del<{ 200: SchemasRemoved; errors: 404 }>('/schemas/:name/:version', { audit: 'schema.delete' }),
};
