import type * as contract from '../contract/failures';
import { jsonOf, type Moment, momentText } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { type BulkOptions, type BulkResult, summaryOf, waitParameter } from './bulk';
import { checked } from './conditions';
import { keyHeader } from './enqueue';
import { parametersFrom } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** How a failed job stands: a dead letter, discarded otherwise, waiting for its next attempt. */
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
export class Failures {
  constructor(private readonly requests: Requests) {}

  /**
   * The groups of the newest failures, up to 200, largest first by default. @param options `cursor`: of a partial
   * answer
   * @example
   * const { items } = await tocsin.failures.list({ queue: 'mail', since: '24h' });
   */
  async list(
    query: FailureQuery = {},
    options: { sort?: 'count' | 'last_seen' | 'first_seen'; cursor?: string } = {},
  ): Promise<FailureGroups> {
    const { since, until, ...chosen } = checked(query, { ...GROUP_PART, since: true, until: true });
    const parameters = parametersFrom({
      ...{ ...chosen, ...options, limit: 200 },
      ...{ since: momentText(since, 'since'), until: momentText(until, 'until') },
    });
    return await this.requests.read<FailureGroups>(`/admin/failures?${parameters}`, 'items', 'the groups');
  }

  /** One group. @throws {NotFoundError} when it has no jobs */
  async get(fingerprint: string): Promise<FailureGroup> {
    const answer = await this.requests.safely('GET', pathTo`/admin/failures/${fingerprint}`);
    return shaped<FailureGroup>(answer, 'fingerprint', 'the group');
  }

  /**
   * Runs the jobs of a group again. An operation that takes longer continues in the background: {@link Bulk.wait}.
   * @param narrow only those in these queues, of these types, in these states
   * @example
   * await tocsin.failures.redrive(group.fingerprint, { queue: 'mail' });
   */
  async redrive(fingerprint: string, narrow: GroupPart = {}, options: BulkOptions = {}): Promise<BulkResult> {
    return await this.#act(pathTo`/admin/failures/${fingerprint}/redrive`, narrow, options);
  }

  /** Removes the jobs of a group permanently, also waiting ones. Needs `admin:purge`. As {@link Failures.redrive}. */
  async discard(fingerprint: string, narrow: GroupPart = {}, options: BulkOptions = {}): Promise<BulkResult> {
    return await this.#act(pathTo`/admin/failures/${fingerprint}/discard`, narrow, options);
  }

  async #act(path: string, narrow: GroupPart, { idempotencyKey }: BulkOptions): Promise<BulkResult> {
    const body = jsonOf({ ...checked(narrow, GROUP_PART), confirm: true });
    const send = idempotencyKey === undefined ? this.requests.once : this.requests.safely;
    const to = `${path}?${waitParameter(this.requests)}`;
    return summaryOf(await send('POST', to, body, { headers: keyHeader(idempotencyKey) }));
  }
}

export type GroupPart = Pick<FailureQuery, 'queue' | 'type' | 'state'>;
