import type * as contract from '../contract/maintenance';
import type { Duration } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import type { Requests } from './requests';

/** Whether it holds; `pendingQueues`: queues that were not reached yet, and are notified again. */
export type MaintenanceState = Named<contract.MaintenanceChanged>;

/** Maintenance, as `tocsin.maintenance`. Needs `admin:read`, and `admin:write` to change it. */
export class Maintenance {
  constructor(private readonly requests: Requests) {}

  async get(): Promise<MaintenanceState> {
    return await this.requests.read<MaintenanceState>('/admin/maintenance', 'enabled', 'the maintenance');
  }

  /**
   * Begins it, or changes its reason and end.
   * @param notice `duration`: after which it ends by itself
   * @example
   * await tocsin.maintenance.begin({ reason: 'The database moves.', duration: '20m' });
   */
  async begin({ reason, duration }: { reason?: string; duration?: Duration } = {}): Promise<MaintenanceState> {
    return await this.#set({ enabled: true, reason, duration });
  }

  /** Ends it. Without any it changes nothing. */
  async end(): Promise<MaintenanceState> {
    return await this.#set({ enabled: false });
  }

  async #set(body: Record<string, unknown>): Promise<MaintenanceState> {
    const answer = await this.requests.safely('POST', '/admin/maintenance', jsonOf(body, 'The notice'));
    return shaped<MaintenanceState>(answer, 'enabled', 'the maintenance');
  }
}
