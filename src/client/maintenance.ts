import type * as contract from '../contract/maintenance';
import type { Duration } from '../producer/envelope';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import type { Requests } from './requests';

/** Whether it holds; `pendingQueues`: queues that were not reached yet, and are notified again. */
export type MaintenanceState = Named<contract.MaintenanceChanged>;

/** Maintenance, as `tocsin.maintenance`. Needs `admin:read`, and `admin:write` to change it. */
export interface Maintenance {
  get(): Promise<MaintenanceState>;
  /**
   * Begins it, or changes its reason and end.
   * @param notice `duration`: after which it ends by itself
   * @example
   * await tocsin.maintenance.begin({ reason: 'The database moves.', duration: '20m' });
   */
  begin(notice?: { reason?: string; duration?: Duration }): Promise<MaintenanceState>;
  /** Ends it. Without any it changes nothing. */
  end(): Promise<MaintenanceState>;
}

export function createMaintenance({ ask, read }: Requests): Maintenance {
  const set = async (body: Record<string, unknown>): Promise<MaintenanceState> =>
    ask('POST', '/admin/maintenance', 'enabled', 'the maintenance', jsonOf(body, 'The notice'));
  return {
    get: () => read('/admin/maintenance', 'enabled', 'the maintenance'),
    begin: async ({ reason, duration } = {}) => set({ enabled: true, reason, duration }),
    end: () => set({ enabled: false }),
  };
}
