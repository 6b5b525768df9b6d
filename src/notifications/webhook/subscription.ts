/** Subscriptions: which events are sent to which URL. */
import { conflict } from '../../job/errors';
import { EVENT_TYPES, eventTypesNamed, STATE_CHANGED } from '../../job/event-types';
import { getOrInsert } from '../../job/get-or-insert';
import type { WebhookForm } from './form';

/** Which events of the types that it names a subscription wants. Absent members take all. */
export interface WebhookFilter {
  queues?: string[];
  /** Job types; an entry may end in `*`. */
  types?: string[];
  /** Groups of jobs; an entry may end in `*`. */
  groups?: string[];
}

/** What a queue knows of a subscription: enough to see whether an event is for it. */
export interface WebhookRoute extends WebhookFilter {
  id: string;
  /** As a client wrote them: types, `job.*` for a kind, or `*`. */
  events: string[];
}

/** `failed`: the receiver does not want it. `dead`: it was tried often enough, or there was no room for it. */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'dead'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Why nothing is sent any more: the receiver said that it is gone (410), or failed for days. */
export interface Disabled {
  reason: 'gone' | 'failing';
  /** Epoch ms. */
  at: number;
}

interface FormerSecret {
  secret: string;
  /** It signs too until then, epoch ms. */
  until: number;
}

/** A subscription. Times in epoch ms. */
export interface Webhook {
  /** `wh_` + UUIDv7. */
  id: string;
  url: string;
  events: string[];
  filter?: WebhookFilter;
  active: boolean;
  /** The name under which the code declares it. */
  declared?: string;
  /** Whatever the client wants to remember with it. */
  metadata?: Record<string, unknown>;
  /** The format of what is sent; absent: the event itself. */
  format?: WebhookForm;
  secret: string;
  /** The secret before. */
  former?: FormerSecret;
  /** Those before `former`, the newest first: of rotations within the grace period of each other. */
  earlier?: FormerSecret[];
  created_at: number;
  updated_at: number;
  version: number;
  disabled?: Disabled;
}

export type WebhookMembers = Pick<Webhook, 'url' | 'events' | 'filter' | 'active' | 'metadata' | 'format'>;

/** {@link WebhookMembers} with the name under which the code declares it. */
export type DeclarableWebhook = WebhookMembers & Pick<Webhook, 'declared'>;

/** After a rotation the former secret signs for this time, ms. */
const FORMER_SECRET_MS = 86_400_000;

/** Former secrets that sign at the same time: each is a signature in a header. */
const MAX_FORMER = 10;

/** Types that recur while a job runs, sent only to subscriptions that name them. */
const FREQUENT: ReadonlySet<string> = new Set([
  ...['job.heartbeat', 'job.progress', 'job.log', 'job.step', 'job.run', 'job.signal', 'worker.heartbeat'],
]);

export const WEBHOOK_EVENTS: readonly string[] = EVENT_TYPES.filter((type) => type !== STATE_CHANGED);

/** The types that a name in `events` stands for. None: it is unknown. */
export function typesSubscribed(name: string): readonly string[] {
  const types = eventTypesNamed(name).filter((type) => type !== STATE_CHANGED);
  return name.endsWith('*') ? types.filter((type) => !FREQUENT.has(type)) : types;
}

const subscribed = new Map<string, ReadonlySet<string>>();

const isNamed = (name: string, type: string): boolean =>
  getOrInsert(subscribed, name, () => new Set(typesSubscribed(name))).has(type);

/** What of an event decides which subscriptions get it. */
export interface Notable {
  type: string;
  /** Empty: of no queue. */
  queue: string;
  data: Record<string, unknown>;
}

/** Is this event for this subscription? One that names its receiver is for no other. */
export function isFor({ id, events, queues, types, groups }: WebhookRoute, { type, queue, data }: Notable): boolean {
  if (typeof data.subscription_id === 'string') return data.subscription_id === id;
  if (!events.some((name) => isNamed(name, type))) return false;
  if (queues && !queues.includes(queue)) return false;
  return (!types || fitsAny(types, data.job_type)) && (!groups || fitsAny(groups, data.group));
}

function fitsAny(wanted: readonly string[], name: unknown): boolean {
  if (typeof name !== 'string') return false;
  return wanted.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));
}

/** What a queue must know of a subscription; undefined when it is not to know any. @param queue absent: any */
export function routeFor({ id, events, filter, active }: Webhook, queue?: string): WebhookRoute | undefined {
  if (!active || (queue !== undefined && filter?.queues && !filter.queues.includes(queue))) return undefined;
  return { id, events, ...filter };
}

type Secrets = Pick<Webhook, 'secret' | 'former' | 'earlier'>;

/** The secrets that sign at `now` (epoch ms), the current one first. */
export function secretsAt(webhook: Secrets, now: number): string[] {
  return [webhook.secret, ...formerAt(webhook, now).map(({ secret }) => secret)];
}

/** The secrets after a rotation at `now`, epoch ms; former ones sign for a while. @throws {ApiError} 409: too many */
export function rotated(before: Secrets, secret: string, now: number): Secrets {
  if (secret === before.secret) return before;
  const replaced = { secret: before.secret, until: now + FORMER_SECRET_MS };
  const kept = formerAt(before, now).filter((one) => one.secret !== secret);
  if (kept.length >= MAX_FORMER) {
    const until = new Date(Math.min(...kept.map((one) => one.until))).toISOString();
    throw conflict(`${MAX_FORMER} former secrets of this subscription still sign. Rotate again after ${until}.`, {
      max_former_secrets: MAX_FORMER,
      retry_at: until,
    });
  }
  return { secret, former: replaced, earlier: kept };
}

const formerAt = ({ former, earlier = [] }: Secrets, now: number): FormerSecret[] =>
  former ? [former, ...earlier].filter(({ until }) => until > now) : [];
