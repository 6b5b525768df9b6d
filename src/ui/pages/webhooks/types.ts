import type { Page } from '../../../contract/common';
import type { Webhook, WebhookDelivery } from '../../../contract/webhooks';
import type { IconName } from '../../components/icon';
import type { Tone } from '../../components/text';
import { duration, number, percent } from '../../core/format';
import { segment } from '../../core/router';

export type List<T> = Pick<Page<T>, 'items' | 'total'>;

export const SUBSCRIPTIONS = 'webhooks/subscriptions';
export const DELIVERIES = 'webhooks/deliveries';
export const ALERTS = 'admin/alerts';

export const subscriptionPath = (id: string) => `${SUBSCRIPTIONS}/${segment(id)}`;
export const deliveryPath = (id: string) => `${DELIVERIES}/${segment(id)}`;
export const alertPath = (id: string) => `${ALERTS}/${segment(id)}`;

/** The name that the code declares, else the address. */
export const nameOf = ({ declared, url }: Webhook): string => declared ?? url;

export const formOf = ({ format }: Pick<Webhook, 'format'>): 'event' | 'slack' | 'pagerduty' | 'template' =>
  typeof format === 'object' ? 'template' : (format ?? 'event');

export const FORMS = { event: 'The event', slack: 'Slack', pagerduty: 'PagerDuty', template: 'Template' } as const;

type Look = readonly [Tone, IconName, string];

export function healthOf(one: Webhook): Look {
  if (one.disabled_reason === 'gone') return ['red', 'discarded', 'gone'];
  if (one.disabled_reason) return ['red', 'discarded', 'disabled'];
  if (!one.active) return ['neutral', 'pause', 'off'];
  if (one.failing_since) return ['amber', 'failures', 'failing'];
  if (one.last_delivery_at === null) return ['neutral', 'waiting', 'none yet'];
  return ['green', 'completed', 'well'];
}

export const DELIVERY_STATES: Readonly<Record<WebhookDelivery['status'], readonly [Tone, IconName]>> = {
  pending: ['amber', 'retry'],
  delivered: ['green', 'completed'],
  failed: ['red', 'discarded'],
  dead: ['red', 'failures'],
};

export const METRICS: Readonly<Record<string, string>> = {
  error_rate: 'Error rate',
  oldest_age: 'Age of the oldest job',
  depth: 'Jobs that have not ended',
  dead_letters: 'Dead letters',
};

/** A number of a metric as one reads it. */
export function shownAs(metric: string, value: number): string {
  if (metric === 'error_rate') return percent(value);
  return metric === 'oldest_age' ? duration(value * 1000) : number(value);
}
