/** Webhooks over RPC: listed by the directory, each with an object that sends, so no receiver delays another. */
import type * as contract from '../contract/webhooks';
import type { DeliveryStatus, Webhook, WebhookMembers } from '../notifications/webhook/subscription';

/** An event on its way to a subscription: its body as it is sent, written once. */
export interface Notice {
  id: string;
  type: string;
  /** JSON text. */
  body: string;
}

export interface DeliveryAttempt extends Omit<contract.DeliveryAttempt, 'at'> {
  /** Epoch ms. */
  at: number;
}

type Shown = 'id' | 'subscription_id' | 'event_id' | 'event_type' | 'job_id' | 'status' | 'response_body';

/** A delivery. Times in epoch ms. */
export interface Delivery extends Pick<contract.WebhookDelivery, Shown> {
  /** Attempts in its present life; the last attempts of all are in `attempts`. */
  tries: number;
  attempts: DeliveryAttempt[];
  next_attempt_at?: number;
  created_at: number;
}

/** How a subscription fares. Times in epoch ms. */
export interface WebhookStats extends Pick<contract.Webhook, 'success_count' | 'failure_count' | 'pending_count'> {
  last_delivery_at?: number;
  /** What came of that attempt. */
  last_delivery_status?: DeliveryStatus;
  /** Since when every attempt has failed. */
  failing_since?: number;
}

/** Which deliveries are asked for, newest first. */
export interface DeliveriesRequest {
  statuses?: DeliveryStatus[];
  offset: number;
  limit: number;
}

export interface DeliveryPage {
  deliveries: Delivery[];
  /** How many match in all. */
  total: number;
}

export interface TestAnswer extends Pick<contract.WebhookTest, 'success' | 'error' | 'response_time_ms'> {
  status_code?: number;
  response_body: string;
}

/** A webhook, and how many objects have not received its change yet. */
export interface ChangedWebhook {
  webhook: Webhook;
  untold: number;
}

/** A change of what a client may say of a subscription. */
export type WebhookChange = { [K in keyof WebhookMembers]?: WebhookMembers[K] | null };
