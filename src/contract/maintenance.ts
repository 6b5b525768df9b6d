/** Maintenance: no queue hands out jobs and no schedule fires until it ends; whatever is enqueued waits. */
import type { Duration } from '../job/wire';
import type { Also } from '../ojs/names';
import type { Spreading, Time } from './common';
import { get, post } from './route';

interface Maintenance {
  enabled: boolean;
  reason: string | null;
  started_at: Time | null;
  /** Null: until an operator ends it. */
  ends_at: Time | null;
}

/** Whether it holds. */
export interface MaintenanceState extends Also<'MaintenanceState', Maintenance> {}

export interface MaintenanceChanged extends MaintenanceState, Spreading {}

interface Notice {
  enabled: boolean;
  /** It ends automatically after this time. Default: when an operator ends it. */
  duration?: Duration;
  /** At most 1000 characters. */
  reason?: string;
}

/** Begins maintenance, changes its reason and end, or ends it. */
export interface MaintenanceNotice extends Also<'MaintenanceNotice', Notice> {}

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
