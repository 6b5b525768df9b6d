import type * as contract from '../contract/schemas';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { byCursor, type ListOptions } from './pages';
import { pathTo, type Requests } from './requests';

export type ArgsSchema = Named<contract.ArgsSchema>;

export interface Schemas {
  /** Every version of every type, read page by page. */
  list(options?: ListOptions): AsyncGenerator<ArgsSchema>;
  /** The latest version, or the one that is named. @throws {NotFoundError} */
  get(type: string, version?: string | number): Promise<ArgsSchema>;
  /**
   * Registers a version.
   * @throws {InvalidJobError} when it is not a schema; {@link ConflictError} when the version has another one
   * @example
   * await tocsin.schemas.put('email.send', 1, { prefixItems: [{ type: 'object', required: ['to'] }], minItems: 1 });
   */
  put(type: string, version: string | number, schema: Readonly<Record<string, unknown>>): Promise<ArgsSchema>;
  /** Removes a version. @throws {NotFoundError} */
  delete(type: string, version: string | number): Promise<void>;
}

export function createSchemas({ safely, ask, read, remove }: Requests): Schemas {
  const path = (type: string, version?: string | number) =>
    pathTo`/admin/schemas/${type}` + (version === undefined ? '' : pathTo`/${String(version)}`);
  return {
    list: (options = {}) => byCursor(safely, { path: '/admin/schemas', member: 'schemas' }, options),
    get: async (type, version) => read(path(type, version), 'schema', 'the schema'),
    put: async (type, version, schema) =>
      ask('PUT', path(type, String(version)), 'schema', 'the schema', jsonOf({ schema }, 'The schema')),
    delete: async (type, version) => await remove(path(type, String(version))),
  };
}
