import type * as contract from '../contract/alerts';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { collection, type ListOptions } from './pages';
import { pathTo, type Requests } from './requests';

/** The share of failed attempts, the age of the oldest job in s, jobs that have not ended, or dead letters. */
export type AlertMetric = contract.AlertMetric;

export type AlertOptions = Named<contract.AlertRequest>;

/** The state of a rule in one queue. */
export type AlertInQueue = Named<contract.AlertInQueue>;

export type Alert = Named<contract.Alert>;

/** Alert rules, as `tocsin.alerts`. Needs `admin:read`, and `admin:write` to change them. */
export interface Alerts {
  list(options?: ListOptions): AsyncGenerator<Alert>;
  /** @throws {NotFoundError} */
  get(id: string): Promise<Alert>;
  /**
   * @throws {InvalidJobError}
   * @example
   * const late = { name: 'mail is late', queue: 'mail', metric: 'oldest_age', above: '5m', for: '1m' } as const;
   * await tocsin.alerts.create(late);
   */
  create(rule: AlertOptions): Promise<Alert>;
  /** Changes the members that are named. @throws {NotFoundError} {@link InvalidJobError} */
  change(id: string, change: Partial<AlertOptions>): Promise<Alert>;
  /** @throws {NotFoundError} */
  delete(id: string): Promise<void>;
}

export function createAlerts(requests: Requests): Alerts {
  const ruleIn = (answer: unknown) => shaped<Alert>(answer, 'metric', 'the rule');
  return {
    ...collection(requests, '/admin/alerts', 'alerts', ruleIn),
    create: async (rule) => ruleIn(await requests.once('POST', '/admin/alerts', jsonOf(rule, 'The rule'))),
    change: async (id, change) =>
      ruleIn(await requests.safely('PATCH', pathTo`/admin/alerts/${id}`, jsonOf(change, 'The rule'))),
  };
}
