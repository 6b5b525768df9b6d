import type * as contract from '../contract/stats';
import type { Moment } from '../producer/job';
import { momentText } from '../producer/job';
import type { Named } from '../producer/names';
import { checked } from './conditions';
import { parametersFrom } from './pages';
import type { Requests } from './requests';

export type Throughput = Named<contract.Throughput>;

/** In ms; null: nothing was measured. */
export type Percentiles = Named<contract.Percentiles>;

export type Stats = Named<contract.Stats>;

/** What happened in a period. */
export type StatsPoint = Named<contract.StatsPoint>;

/** What was counted of a job type in a queue. */
export type TypeStats = Named<contract.TypeStats>;

/** What a job type in a queue has cost. */
export type CostItem = Named<contract.CostItem>;

/** What was written, and its price. */
export type Cost = Named<contract.Cost>;

export interface HistoryQuery {
  /** How long a point is. Default `5m`. */
  period?: contract.StatsPeriod;
  since?: Moment;
  until?: Moment;
  queue?: string;
  type?: string;
}

const HISTORY = { period: true, since: true, until: true, queue: true, type: true };

export class Statistics {
  constructor(private readonly requests: Requests) {}

  /**
   * How all queues get on, or one.
   * @throws {NotFoundError} when there is no queue of that name
   * @example
   * const { errorRate, oldestAvailableAt } = await tocsin.stats.get('mail');
   */
  async get(queue?: string): Promise<Stats> {
    return await this.requests.read<Stats>(`/admin/stats?${parametersFrom({ queue })}`, 'jobs', 'the numbers');
  }

  /** What happened, period by period, the oldest first: minutes for a day, hours for a month. */
  async history(conditions: HistoryQuery = {}): Promise<StatsPoint[]> {
    const { since, until, ...query } = checked(conditions, HISTORY);
    const times = { since: momentText(since, 'since'), until: momentText(until, 'until') };
    const path = `/admin/stats/history?${parametersFrom({ ...query, ...times })}`;
    return (await this.requests.read<{ dataPoints: StatsPoint[] }>(path, 'dataPoints', 'the history')).dataPoints;
  }

  /** What was counted of each job type, those with most jobs first. */
  async types(queue?: string): Promise<TypeStats[]> {
    const path = `/admin/stats/types?${parametersFrom({ queue })}`;
    return (await this.requests.read<{ items: TypeStats[] }>(path, 'items', 'the types')).items;
  }

  /** What each job type has cost, in rows written and their price. */
  async cost(queue?: string): Promise<Cost> {
    return await this.requests.read<Cost>(`/admin/stats/cost?${parametersFrom({ queue })}`, 'items', 'the cost');
  }
}
