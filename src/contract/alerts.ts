/** Alert rules: numbers of queues that are watched. */
import type { AlertMetric } from '../job/event-data';
import type { Duration } from '../job/wire';
import type { Also } from '../ojs/names';
import type { CursorQuery, IsoDuration, Page, Spreading, Time } from './common';
import { del, get, patch, post } from './route';

export type { AlertMetric };

/** How a rule stands in a queue. */
export interface AlertInQueue {
  queue: string;
  state: 'ok' | 'firing';
  since: Time;
  /** The number when the state changed. */
  last_value: number;
}

/** A rule. It fires where any queue does. */
export interface Alert {
  id: string;
  /** For humans. */
  name: string;
  /** Null: each queue for itself, also those to come. */
  queue: string | null;
  /**
   * What is watched: part of attempts that failed, age of the oldest job in s, jobs that have not ended, dead letters.
   */
  metric: AlertMetric;
  /** It fires above this: of `oldest_age` seconds, of `error_rate` a part of one. */
  above: number;
  /** The number must be above it for this long. */
  for: IsoDuration;
  /** The only webhook that is notified; null: all that subscribe to `alert.*`. */
  subscription_id: string | null;
  active: boolean;
  /** The name under which the code declares it. */
  declared?: string;
  state: 'ok' | 'firing';
  /** Null: it has never fired, as below. */
  since: Time | null;
  last_value: number | null;
  /** Where it has ever fired: those that fire first, then the last changed. */
  queues: AlertInQueue[];
  created_at: Time;
  updated_at: Time;
}

export interface AlertChanged extends Alert, Spreading {}

export interface AlertList extends Also<'AlertList', Page<Alert>> {}

/** What a rule says. */
export interface AlertRequest {
  /** For humans. */
  name: string;
  /** Null or absent: each queue for itself, also those to come. */
  queue?: string | null;
  /**
   * What is watched: part of attempts that failed, age of the oldest job in s, jobs that have not ended, dead letters.
   */
  metric: AlertMetric;
  /** It fires above this; of `oldest_age` seconds or a duration. */
  above: number | Duration;
  /** The number must be above it for this long. */
  for?: Duration | null;
  /** The only webhook that is notified. Default: all that subscribe to `alert.*`. */
  subscription_id?: string | null;
  active?: boolean;
}

/** Below `/ojs/v1/admin`. */
export const alerts = {
  /** Lists the alert rules. */
  list: get<{ query: CursorQuery; 200: AlertList }>('/alerts'),
  /** Creates an alert rule. */
  create: post<{ body: AlertRequest; 201: AlertChanged; errors: 409 }>('/alerts', { audit: 'alert.create' }),
  /** Shows an alert rule and its state in each queue. */
  show: get<{ 200: Alert; errors: 404 }>('/alerts/:id'),
  /** Changes the given members of an alert rule. */
  change: patch<{ body: Partial<AlertRequest>; 200: AlertChanged; errors: 404 }>('/alerts/:id', {
    audit: 'alert.change',
  }),
  /** Deletes an alert rule. */
  remove: del<{ 204: null; errors: 404 }>('/alerts/:id', { audit: 'alert.delete' }),
};
