import type * as contract from '../contract/alerts';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/**
 * What is watched: part of attempts that failed, age of the oldest job in s, jobs that have not ended, dead letters.
 */
export type AlertMetric = contract.AlertMetric;

export type AlertOptions = Named<contract.AlertRequest>;

/** How a rule stands in a queue. */
export type AlertInQueue = Named<contract.AlertInQueue>;

export type Alert = Named<contract.Alert>;

/** Alert rules, as `tocsin.alerts`. Needs `admin:read`, and `admin:write` to change them. */
export class Alerts {
  constructor(private readonly requests: Requests) {}

  async *list(options: ListOptions = {}): AsyncGenerator<Alert> {
    yield* byCursor<Alert>(this.requests.safely, { path: '/admin/alerts', member: 'alerts' }, options);
  }

  /** @throws {NotFoundError} */
  async get(id: string): Promise<Alert> {
    return await this.requests.read<Alert>(pathTo`/admin/alerts/${id}`, 'id', 'the rule');
  }

  /**
   * @throws {InvalidJobError}
   * @example
   * const late = { name: 'mail is late', queue: 'mail', metric: 'oldest_age', above: '5m', for: '1m' } as const;
   * await tocsin.alerts.create(late);
   */
  async create(rule: AlertOptions): Promise<Alert> {
    return alertIn(await this.requests.once('POST', '/admin/alerts', jsonOf(rule, 'The rule')));
  }

  /** Changes the members that are named. @throws {NotFoundError} {@link InvalidJobError} */
  async change(id: string, change: Partial<AlertOptions>): Promise<Alert> {
    return alertIn(await this.requests.safely('PATCH', pathTo`/admin/alerts/${id}`, jsonOf(change, 'The rule')));
  }

  /** @throws {NotFoundError} */
  async delete(id: string): Promise<void> {
    await this.requests.remove(pathTo`/admin/alerts/${id}`);
  }
}

const alertIn = (answer: unknown): Alert => shaped<Alert>(answer, 'metric', 'the rule');
