/** Alert rules through the client: numbers of queues that are watched. */
import type { Duration } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import { shaped } from './answers';
import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** What is watched: part of attempts that failed, age of the oldest job in s, jobs that have not ended, dead letters. */
export type AlertMetric = 'error_rate' | 'oldest_age' | 'depth' | 'dead_letters';

/** What a rule says. */
export interface AlertOptions {
  /** For humans. */
  name: string;
  /** Null or absent: each queue for itself, also those to come. */
  queue?: string | null;
  metric: AlertMetric;
  /** It fires above this; of `oldest_age` seconds or a duration. */
  above: number | Duration;
  /** So long without a break. */
  for?: Duration;
  /** The only webhook that is told. Default: all that subscribed to `alert.*`. */
  subscriptionId?: string | null;
  active?: boolean;
}

/** How a rule stands in a queue. */
export interface AlertInQueue {
  queue: string;
  state: 'ok' | 'firing';
  since: string;
  /** The number when the state changed. */
  lastValue: number | null;
}

/** A rule. It fires where any queue does. Times are RFC 3339. */
export interface Alert {
  id: string;
  name: string;
  queue: string | null;
  metric: AlertMetric;
  above: number;
  /** ISO 8601. */
  for: string;
  subscriptionId: string | null;
  active: boolean;
  /** The name under which the code declares it. */
  declared?: string;
  state: 'ok' | 'firing';
  since: string | null;
  lastValue: number | null;
  queues: AlertInQueue[];
  createdAt: string;
  updatedAt: string;
}

/** Alert rules, as `tocsin.alerts`. Needs `admin:read`, and `admin:write` to change them. */
export class Alerts {
  constructor(private readonly requests: Requests) {}

  /** Every rule, read page by page. */
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
   * await tocsin.alerts.create({ name: 'mail is late', queue: 'mail', metric: 'oldest_age', above: '5m', for: '1m' });
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
