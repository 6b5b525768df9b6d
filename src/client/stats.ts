import type * as contract from '../contract/stats';
import type { Moment } from '../producer/job';
import type { Named } from '../producer/names';
import { parametersFrom } from './pages';
import { checked, type Requests } from './requests';

export type Throughput = Named<contract.Throughput>;

/** In ms; null: nothing was measured. */
export type Percentiles = Named<contract.Percentiles>;

export type Stats = Named<contract.Stats>;

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

export interface Statistics {
  /**
   * The numbers of all queues, or of one.
   * @throws {NotFoundError} when there is no queue of that name
   * @example
   * const { errorRate, oldestAvailableAt } = await tocsin.stats.get('mail');
   */
  get(queue?: string): Promise<Stats>;
  /** What happened, period by period, the oldest first: minutes for a day, hours for a month. */
  history(query?: HistoryQuery): Promise<StatsPoint[]>;
  /** What was counted of each job type, those with most jobs first. */
  types(queue?: string): Promise<TypeStats[]>;
  /** What each job type has cost, in rows written and their price. */
  cost(queue?: string): Promise<Cost>;
}

export const createStatistics = ({ read }: Requests): Statistics => ({
  get: (queue) => read(`/admin/stats?${parametersFrom({ queue })}`, 'jobs', 'the numbers'),
  history: async (query = {}) => {
    const path = `/admin/stats/history?${parametersFrom({ ...checked(query, HISTORY) })}`;
    return (await read<{ dataPoints: StatsPoint[] }>(path, 'dataPoints', 'the history')).dataPoints;
  },
  types: async (queue) => {
    const path = `/admin/stats/types?${parametersFrom({ queue })}`;
    return (await read<{ items: TypeStats[] }>(path, 'items', 'the types')).items;
  },
  cost: (queue) => read(`/admin/stats/cost?${parametersFrom({ queue })}`, 'items', 'the cost'),
});
