/** Maintenance: no queue hands out jobs and no schedule fires until it ends; whatever is enqueued waits. */
import type { Duration } from '../job/wire';
import type { Spreading, Time } from './common';
import { get, post } from './route';

/** Whether it holds. */
export interface MaintenanceState {
  enabled: boolean;
  /** The same as `enabled`. */
  maintenance: boolean;
  reason: string | null;
  started_at: Time | null;
  /** Null: until an operator ends it. */
  ends_at: Time | null;
  /** The same as `started_at`. */
  enabled_at: Time | null;
  /** The same as `ends_at`. */
  estimated_end: Time | null;
}

export interface MaintenanceChanged extends MaintenanceState, Spreading {}

/** Begins maintenance, changes its reason and end, or ends it. */
export interface MaintenanceNotice {
  enabled: boolean;
  /** It ends automatically after this time. Default: when an operator ends it. */
  duration?: Duration;
  /** The same as `duration`. */
  estimated_duration?: Duration;
  /** At most 1000 characters. */
  reason?: string;
}

/** Below `/ojs/v1/admin`. */
export const maintenance = {
  /** Shows whether maintenance is on. */
  show: get<{ 200: MaintenanceState }>('/system/maintenance'),
  /** Starts or ends maintenance. */
  change: post<{ body: MaintenanceNotice; 200: MaintenanceChanged }>('/system/maintenance', {
    audit: 'maintenance.set',
  }),
  /** Shows whether maintenance is on, under another path. */
  showHere: get<{ 200: MaintenanceState }>('/maintenance'),
  /** Starts or ends maintenance, under another path. */
  changeHere: post<{ body: MaintenanceNotice; 200: MaintenanceChanged }>('/maintenance', { audit: 'maintenance.set' }),
};
