import type * as contract from '../contract/schemas';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** A version of the schema of a job type. */
export type ArgsSchema = Named<contract.ArgsSchema>;

export class Schemas {
  constructor(private readonly requests: Requests) {}

  /** Every version of every type, read page by page. */
  async *list(options: ListOptions = {}): AsyncGenerator<ArgsSchema> {
    yield* byCursor<ArgsSchema>(this.requests.safely, { path: '/admin/schemas', member: 'schemas' }, options);
  }

  /** The latest version, or the one that is named. @throws {NotFoundError} */
  async get(type: string, version?: string | number): Promise<ArgsSchema> {
    const path = pathTo`/admin/schemas/${type}` + (version === undefined ? '' : pathTo`/${String(version)}`);
    return await this.requests.read<ArgsSchema>(path, 'schema', 'the schema');
  }

  /**
   * Registers a version.
   * @throws {InvalidJobError} when it is not a schema; {@link ConflictError} when the version has another one
   * @example
   * await tocsin.schemas.put('email.send', 1, { prefixItems: [{ type: 'object', required: ['to'] }], minItems: 1 });
   */
  async put(type: string, version: string | number, schema: Readonly<Record<string, unknown>>): Promise<ArgsSchema> {
    const path = pathTo`/admin/schemas/${type}/${String(version)}`;
    const answer = await this.requests.safely('PUT', path, jsonOf({ schema }, 'The schema'));
    return shaped<ArgsSchema>(answer, 'schema', 'the schema');
  }

  /** Removes a version. @throws {NotFoundError} */
  async delete(type: string, version: string | number): Promise<void> {
    await this.requests.remove(pathTo`/admin/schemas/${type}/${String(version)}`);
  }
}
