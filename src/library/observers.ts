import type { AlertOptions } from '../client/alerts';
import type { WebhookOptions } from '../client/webhooks';
import { readWebhookSecret, readWebhookUrl } from '../config';
import { optional, readName } from '../job/envelope/fields';
import { notKnown } from '../job/near-miss';
import { own } from '../job/own';
import { parseAlert } from '../notifications/alert/parse';
import { parseWebhook } from '../notifications/webhook/parse';

/** A variable or secret of the Worker: `{ env: 'SLACK_URL' }`. Unset: what needs it is left out and logged. */
export interface Variable {
  env: string;
}

/** A webhook as the code declares it: its name is the key. */
export interface DeclaredWebhook extends Omit<WebhookOptions, 'url' | 'routingKey'> {
  /** HTTPS. */
  url: string | Variable;
  /** Signs each request. Default: a new one, which `tocsin webhooks rotate` shows. */
  secret?: string | Variable;
  /** Of PagerDuty, beside the format `pagerduty`. */
  routingKey?: string | Variable;
}

/** An alert rule as the code declares it: its name is the key. */
export interface DeclaredAlert extends Omit<AlertOptions, 'name' | 'subscriptionId'> {
  /** The name of the only webhook of these to notify. Default: all that subscribed to `alert.*`. */
  webhook?: string;
}

const WEBHOOK_MEMBERS = ['url', 'events', 'filter', 'active', 'metadata', 'format', 'routingKey', 'secret'];

const readDeclaredName = readName(128);

/** Whether a receiver on this machine may be called is known once it takes effect. */
const readUrl = readWebhookUrl({ ALLOW_LOCALHOST: 'true' });

/** In the place of values that are not known yet. */
const STAND_INS = { url: 'https://receiver.example/', secret: 'x'.repeat(16), routing_key: 'x' };

/** @throws {ApiError | Error} naming the member that is wrong */
export function readDeclaredWebhook(name: string, declared: DeclaredWebhook): Record<string, unknown> {
  readDeclaredName(name, 'its name');
  const unknown = Object.keys(declared).find((member) => !WEBHOOK_MEMBERS.includes(member));
  if (unknown !== undefined) throw new Error(`${unknown} ${notKnown(unknown, WEBHOOK_MEMBERS)}`);
  const { routingKey: routing_key, ...rest } = declared;
  const entry = JSON.parse(JSON.stringify({ ...rest, routing_key })) as Record<string, unknown>;
  const known = { ...entry };
  for (const [member, standIn] of Object.entries(STAND_INS)) {
    if (isVariable(own(entry, member), member)) known[member] = standIn;
  }
  parseWebhook(known, readUrl);
  optional(known, 'secret', readWebhookSecret);
  return entry;
}

/** @throws {ApiError | Error} naming the member that is wrong */
export function readDeclaredAlert(
  name: string,
  { webhook, ...rule }: DeclaredAlert,
  webhooks: object,
): Record<string, unknown> {
  const entry = JSON.parse(JSON.stringify(rule)) as Record<string, unknown>;
  if ('name' in entry || 'subscription_id' in entry || 'subscriptionId' in entry) {
    throw new Error('its name is its key, and webhook names the only one to notify');
  }
  parseAlert({ ...entry, name });
  if (webhook === undefined) return entry;
  if (typeof webhook !== 'string' || !Object.hasOwn(webhooks, webhook)) {
    throw new Error('webhook must be the name of a declared webhook');
  }
  return { ...entry, webhook };
}

function isVariable(value: unknown, member: string): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { env, ...more } = value as Partial<Variable>;
  if (typeof env === 'string' && env !== '' && Object.keys(more).length === 0) return true;
  throw new Error(`${member} must be a string, or { env } with the name of a variable`);
}
