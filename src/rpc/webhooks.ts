/** Webhooks over RPC: listed by the directory, each with an object that sends, so no receiver delays another. */
import type { DeliveryStatus, Webhook, WebhookMembers } from '../job/webhook/subscription';

/** An event on its way to a subscription: its body as it is sent, written once. */
export interface Notice {
  /** Of the event. */
  id: string;
  type: string;
  /** JSON text. */
  body: string;
}

export interface DeliveryAttempt {
  /** Epoch ms. */
  at: number;
  status_code?: number;
  error?: string;
  duration_ms: number;
}

/** A delivery. Times in epoch ms. */
export interface Delivery {
  id: string;
  subscription_id: string;
  event_id: string;
  event_type: string;
  job_id?: string;
  status: DeliveryStatus;
  /** Attempts in its present life; the last attempts of all are in `attempts`. */
  tries: number;
  attempts: DeliveryAttempt[];
  next_attempt_at?: number;
  created_at: number;
  /** The beginning of the last answer. */
  response_body?: string;
}

/** How a subscription fares. Times in epoch ms. */
export interface WebhookStats {
  success_count: number;
  /** Deliveries that were given up. */
  failure_count: number;
  pending_count: number;
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

export interface TestAnswer {
  success: boolean;
  status_code?: number;
  error?: string;
  response_time_ms: number;
  response_body: string;
}

/** A webhook, and how many objects have not received its change yet. */
export interface ChangedWebhook {
  webhook: Webhook;
  untold: number;
}

/** A change of what a client may say of a subscription. */
export type WebhookChange = { [K in keyof WebhookMembers]?: WebhookMembers[K] | null };
