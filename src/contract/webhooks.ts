/** Webhooks: subscriptions to events, and what was delivered to them. */

import type { SecretMembers } from '../access/secrets';
import type { WebhookRequest } from '../notifications/webhook/parse';
import type { DeliveryStatus, Disabled } from '../notifications/webhook/subscription';
import type { Also } from '../ojs/names';
import type { CursorQuery, Page, PageQuery, Spreading, Time, Warned } from './common';
import type { AnyEvent, WebhookTestEvent } from './event-messages';
import { del, get, patch, post, put } from './route';

export type { WebhookRequest };

interface FilterMembers {
  queues?: string[];
  /** Types of jobs; an entry may end in `*`. */
  types?: string[];
  /** Groups of jobs; an entry may end in `*`. */
  groups?: string[];
}

/** Which events a subscription wants, of those that it names. Absent members take all. */
export interface WebhookFilterInForce extends Also<'WebhookFilterInForce', FilterMembers> {}

/**
 * Members of a subscription that hold secrets. A URL may contain a token (that of an incoming webhook of Slack is one),
 * and so may a template. Keys without `data:reveal` see the origin of the URL.
 */
export const WEBHOOK_SECRETS = {
  url: 'url',
  secret: 'whole',
  routing_key: 'whole',
  format: 'inside',
} as const satisfies SecretMembers<WebhookRequest>;

/** A subscription, without its secret. */
export interface Webhook {
  id: string;
  /** For keys without `data:reveal` only its origin, followed by `/[redacted]`. */
  url: string;
  events: string[];
  filter?: WebhookFilterInForce;
  /** False: nothing is sent. */
  active: boolean;
  /** The name under which the code declares it. */
  declared?: string;
  metadata?: Record<string, unknown>;
  /** What is sent in the place of the event; absent: the event itself. A template is for keys with `data:reveal`. */
  format?: 'slack' | 'pagerduty' | { template: unknown };
  created_at: Time;
  updated_at: Time;
  /** When the last attempt to deliver was; null: none has been. */
  last_delivery_at: Time | null;
  /** What came of that attempt. */
  last_delivery_status: DeliveryStatus | null;
  success_count: number;
  /** Deliveries that were given up. */
  failure_count: number;
  pending_count: number;
  /** Since when every attempt has failed. */
  failing_since?: Time;
  /** Why nothing is sent any more: the receiver answered 410, or failed for days. */
  disabled_reason?: Disabled['reason'];
  disabled_at?: Time;
  /** Until when the last former secret signs, too. */
  former_secret_until?: Time;
}

/** A subscription: as a member, and flat for clients that read it so. */
export interface WebhookAnswer extends Webhook, Spreading {
  subscription: Webhook;
}

export interface WebhookChanged extends WebhookAnswer, Warned {}

/** A subscription with the secret that signs, which is not shown again. */
export interface WebhookCreated extends WebhookChanged {
  subscription: Webhook & { secret: string };
  secret: string;
}

export interface WebhookList extends Also<'WebhookList', Page<Webhook>> {}

/** Changes the members that are named; `null` removes one. */
export type WebhookChange = { [Name in keyof Omit<WebhookRequest, 'secret'>]?: WebhookRequest[Name] | null };

/** What a receiver answered to a test. */
export interface WebhookTest {
  success: boolean;
  /** The receiver's status; null: it did not answer. */
  status_code: number | null;
  /** The receiver's status; 0: it did not answer. */
  status: number;
  response_time_ms: number;
  error?: string;
  /** What the receiver answered, for keys with `data:reveal`. */
  response_body?: string;
}

/** What is sent to a receiver, unless its format is another one. */
export type WebhookMessage = AnyEvent | WebhookTestEvent;

/** One attempt to deliver. */
export interface DeliveryAttempt {
  at: Time;
  status_code?: number;
  error?: string;
  duration_ms: number;
}

/** An event on its way to a subscription. */
export interface WebhookDelivery {
  id: string;
  subscription_id: string;
  event_id: string;
  event_type: string;
  job_id?: string;
  status: DeliveryStatus;
  /** How often it was tried. */
  attempt: number;
  /** The last attempts. */
  attempts: DeliveryAttempt[];
  /** When it is tried again; null: not again. */
  next_attempt_at: Time | null;
  created_at: Time;
  /** What the receiver answered, for keys with `data:reveal`. */
  response_body?: string;
}

/** A delivery: as a member, and flat for clients that read it so. */
export interface DeliveryAnswer extends WebhookDelivery {
  delivery: WebhookDelivery;
}

export interface DeliveryList extends Also<'DeliveryList', Page<WebhookDelivery>> {}

/** Which secret signs from now on. */
export interface SecretRequest {
  /** Default: a new one. */
  secret?: string;
}

interface NewSecret extends Spreading {
  secret: string;
  subscription: Webhook;
}

/** The new secret, which is not shown again. */
export interface SecretRotated extends Also<'SecretRotated', NewSecret> {}

interface DeliveryConditions extends PageQuery {
  /** Only those of this subscription. */
  subscription?: string;
  /** Only those in these states, separated by commas: `pending`, `delivered`, `failed`, `dead`. */
  status?: string;
}

interface DeliveryQuery extends Also<'DeliveryQuery', DeliveryConditions> {}

const LIST = '/webhooks/subscriptions';
const DELIVERIES = '/webhooks/deliveries';
const READ = { scope: 'admin:read' } as const;
const write = (verb: string) => ({ scope: 'admin:write', audit: `webhook.${verb}`, secrets: WEBHOOK_SECRETS }) as const;
const CHANGE = { ...write('change'), judgesMembers: true } as const;

/** Below `/ojs/v1`: they are the operators', wherever their paths are. */
export const webhooks = {
  /** Subscribes a URL to events. The secret that signs is in this answer, and never again. */
  create: post<{ body: WebhookRequest; 201: WebhookCreated; errors: 409 }>(LIST, {
    ...write('create'),
    judgesMembers: true,
  }),
  /** Lists the subscriptions. */
  list: get<{ query: CursorQuery; 200: WebhookList }>(LIST, READ),
  /** Shows a subscription. */
  show: get<{ 200: WebhookAnswer; errors: 404 }>(`${LIST}/:id`, READ),
  /** Changes the given members of a subscription. */
  change: patch<{ body: WebhookChange; 200: WebhookChanged; errors: 404 | 409 }>(`${LIST}/:id`, CHANGE),
  /** Changes the given members of a subscription, like PATCH. */
  put: put<{ body: WebhookChange; 200: WebhookChanged; errors: 404 | 409 }>(`${LIST}/:id`, CHANGE),
  /** Deletes a subscription with its pending deliveries. */
  remove: del<{ 204: null; errors: 404 | 409 }>(`${LIST}/:id`, write('delete')),
  /** Sends a test event to a subscription, even if it is inactive. */
  test: post<{ 200: WebhookTest; errors: 404 }>(`${LIST}/:id/test`, write('test')),
  /** Replaces the secret of a subscription. Each former one signs as well for a day after it was replaced. */
  rotate: post<{ body: SecretRequest; 200: SecretRotated; errors: 404 | 409 }>(
    `${LIST}/:id/rotate-secret`,
    write('rotate'),
  ),
  /** Lists deliveries, newest first. */
  deliveries: get<{ query: DeliveryQuery; 200: DeliveryList; errors: 404 }>(DELIVERIES, READ),
  /** Shows a delivery with its last attempts. */
  delivery: get<{ 200: DeliveryAnswer; errors: 404 }>(`${DELIVERIES}/:id`, READ),
  /** Repeats a delivery now. */
  retry: post<{ 202: DeliveryAnswer; errors: 404 }>(`${DELIVERIES}/:id/retry`, write('redeliver')),
};
