import type * as contract from '../contract/failures';
import { jsonOf, type Moment } from '../producer/job';
import type { Named } from '../producer/names';
import { type BulkOptions, type BulkResult, summaryOf, waitParameter } from './bulk';
import { parametersFrom } from './pages';
import { checked, pathTo, type Requests } from './requests';

/** A dead letter, discarded otherwise, or waiting for its next attempt. */
export type FailureState = contract.FailureState;

/** Which failures. Conditions must all hold; of a list any value may match. */
export interface FailureQuery {
  queue?: string | readonly string[];
  /** `*` stands for anything. */
  type?: string | readonly string[];
  state?: FailureState | readonly FailureState[];
  /** When they failed last; a bare duration counts back from now. */
  since?: Moment;
  until?: Moment;
}

const GROUP_PART = { queue: true, type: true, state: true };

/** Jobs that failed in the same way. */
export type FailureGroup = Named<contract.FailureGroup>;

/** Groups, and how far was looked. */
export type FailureGroups = Omit<Named<contract.FailureGroups>, 'pagination'>;

/** Failures in groups, as `tocsin.failures`. */
export interface Failures {
  /**
   * The groups of the newest failures, up to 200, largest first by default. @param options `cursor`: of a partial
   * answer
   * @example
   * const { items } = await tocsin.failures.list({ queue: 'mail', since: '24h' });
   */
  list(
    query?: FailureQuery,
    options?: { sort?: 'count' | 'last_seen' | 'first_seen'; cursor?: string },
  ): Promise<FailureGroups>;
  /** One group. @throws {NotFoundError} when it has no jobs */
  get(fingerprint: string): Promise<FailureGroup>;
  /**
   * Runs the jobs of a group again. An operation that takes longer continues in the background: {@link Bulk.wait}.
   * @param narrow only those in these queues, of these types, in these states
   * @example
   * await tocsin.failures.redrive(group.fingerprint, { queue: 'mail' });
   */
  redrive(fingerprint: string, narrow?: GroupPart, options?: BulkOptions): Promise<BulkResult>;
  /** Removes the jobs of a group permanently, also waiting ones. Needs `admin:purge`. As {@link Failures.redrive}. */
  discard(fingerprint: string, narrow?: GroupPart, options?: BulkOptions): Promise<BulkResult>;
}

export function createFailures(requests: Requests): Failures {
  const act =
    (action: string): Failures['redrive'] =>
    async (fingerprint, narrow = {}, { idempotencyKey } = {}) => {
      const path = `${pathTo`/admin/failures/${fingerprint}/${action}`}?${waitParameter(requests)}`;
      const body = jsonOf({ ...checked(narrow, GROUP_PART), confirm: true });
      return summaryOf(await requests.underKey(idempotencyKey)('POST', path, body));
    };
  return {
    list: async (query = {}, options = {}) => {
      const conditions = checked(query, { ...GROUP_PART, since: true, until: true });
      const parameters = parametersFrom({ ...conditions, ...options, limit: 200 });
      return await requests.read(`/admin/failures?${parameters}`, 'items', 'the groups');
    },
    get: async (fingerprint) => requests.read(pathTo`/admin/failures/${fingerprint}`, 'fingerprint', 'the group'),
    redrive: act('redrive'),
    discard: act('discard'),
  };
}

export type GroupPart = Pick<FailureQuery, 'queue' | 'type' | 'state'>;
