import type * as contract from '../contract/keys';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { collection, type ListOptions } from './pages';
import { pathTo, type Requests } from './requests';

export type ApiKey = Named<contract.ApiKey>;

/** A key with its secret, which is not shown again. */
export type ApiKeyCreated = Named<contract.ApiKeyCreated>;

export type ApiKeyOptions = Named<contract.ApiKeyRequest>;

export type ApiKeyChange = Named<contract.ApiKeyChange>;

/** API keys made at run time, as `tocsin.keys`. Needs `admin:keys`. */
export interface Keys {
  /** Every key, the oldest first. */
  list(options?: ListOptions): AsyncGenerator<ApiKey>;
  /** @throws {NotFoundError} */
  get(id: string): Promise<ApiKey>;
  /**
   * Creates a key. Its secret is in this answer, and never again.
   * @throws {InvalidJobError} {@link ConflictError} there are too many
   * @example
   * const { key } = await tocsin.keys.create({ name: 'acme web', role: 'operator', groups: ['acme'] });
   */
  create(key: ApiKeyOptions): Promise<ApiKeyCreated>;
  /** Renames or narrows a key. @throws {NotFoundError} {@link InvalidJobError} for more than it had */
  change(id: string, change: ApiKeyChange): Promise<ApiKey>;
  /** Makes another secret. The former ones work for `overlap`; default: not at all. @throws {NotFoundError} */
  rotate(id: string, options?: Named<contract.RotateRequest>): Promise<ApiKeyCreated>;
  /** Revokes a key. @throws {NotFoundError} */
  delete(id: string): Promise<void>;
}

const ALL = '/admin/keys';

export function createKeys(requests: Requests): Keys {
  const { once, safely } = requests;
  const keyIn = (answer: unknown) => shaped<ApiKey>(answer, 'id', 'the key');
  const createdIn = (answer: unknown) => shaped<ApiKeyCreated>(answer, 'key', 'the key');
  return {
    ...collection(requests, ALL, 'keys', keyIn),
    create: async (key) => createdIn(await once('POST', ALL, jsonOf(key, 'The key'))),
    change: async (id, change) => keyIn(await safely('PATCH', ALL + pathTo`/${id}`, jsonOf(change, 'The change'))),
    rotate: async (id, options = {}) =>
      createdIn(await once('POST', ALL + pathTo`/${id}/rotate`, jsonOf(options, 'The options'))),
  };
}
