import {
  defined,
  type Reader,
  readBoolean,
  readName,
  readObject,
  readQueueName,
  readSome,
  readText,
  withinBytes,
} from '../envelope/fields';
import { notMember, nullable, readMembers } from '../envelope/members';
import { invalidRequest } from '../errors';
import { MAX_GROUP_LENGTH } from '../group';
import { own } from '../own';
import { quote } from '../text';
import { type UnknownMembers, withoutEffect } from '../unknown-members';
import { readForm } from './read-form';
import { typesSubscribed, WEBHOOK_EVENTS, type WebhookFilter, type WebhookMembers } from './subscription';

/** What a subscription says. */
export interface WebhookRequest {
  /** Where events are sent: HTTPS. */
  url: string;
  /** Types of events, such as `job.discarded`; `job.*` for a kind, `*` for all. */
  events: readonly string[];
  /** Only events of these queues, and of jobs of these types and groups. Default: all. */
  filter?: {
    queues?: readonly string[];
    /** An entry may end in `*`. */
    types?: readonly string[];
    /** Alias of `types`. */
    job_types?: readonly string[];
    /** An entry may end in `*`. */
    groups?: readonly string[];
  } | null;
  /** False: nothing is sent. Default true. */
  active?: boolean;
  /**
   * What is sent instead of the event: a message for an incoming webhook of Slack, or an event for PagerDuty's Events
   * API v2. It can also be JSON of your own with placeholders such as `{{data.job_id}}`, as a value or as its text.
   * Default: the event.
   */
  format?: WebhookFormat | null;
  /** Of PagerDuty, required beside the format `pagerduty`. It is not shown again. */
  routing_key?: string;
  /** Any data of the client's. */
  metadata?: Readonly<Record<string, unknown>> | null;
  /** The secret that signs what is sent. Default: a new one. */
  secret?: string;
}

/** In which form a subscription is notified. */
export type WebhookFormat =
  | 'slack'
  | 'pagerduty'
  | { template: string | Readonly<Record<string, unknown>> | readonly unknown[] };

/** Each is read, or it would not be listed. */
const MEMBERS = Object.keys({
  ...{ url: true, events: true, filter: true, active: true, metadata: true },
  ...{ secret: true, format: true, routing_key: true },
} satisfies Record<keyof WebhookRequest, true>);
/** Clients send back what they have read. */
const ANSWERED = [
  ...['id', 'created_at', 'updated_at', 'last_delivery_at', 'last_delivery_status', 'success_count', 'failure_count'],
  ...['pending_count', 'failing_since', 'disabled_reason', 'disabled_at', 'former_secret_until'],
];
const KNOWN: ReadonlySet<string> = new Set([...MEMBERS, ...ANSWERED]);
const aboutMember = withoutEffect(MEMBERS);

/** Notes the members that no subscription has. */
export function noteUnknownMembers(unknown: UnknownMembers, body: Body): void {
  unknown.note(body, KNOWN, '', aboutMember);
}

const MAX_EVENTS = 50;
const MAX_FILTERED = 100;
const MAX_METADATA_BYTES = 4096;

const TYPE = /^(?:\*|[a-z][a-z0-9_-]*(?:\.[a-z][a-z0-9_-]*)*(?:\.\*)?)$/;

const readEvent: Reader<string> = (value, field) => {
  if (typeof value === 'string' && typesSubscribed(value).length > 0) return value;
  const shown = typeof value === 'string' ? `"${quote(value)}"` : 'that';
  throw invalidRequest(
    field,
    `${field} has no ${shown}; use ${WEBHOOK_EVENTS.join(', ')}, job.* for a kind, or * for all.`,
  );
};

const readJobType = readText(
  (text) => text.length <= 255 && TYPE.test(text),
  'must be a job type, or a prefix such as "email.*"',
);

const readEvents = readSome(MAX_EVENTS, readEvent);

const readTypes = readSome(MAX_FILTERED, readJobType);
const readFilterMembers = readMembers(
  {
    queues: readSome(MAX_FILTERED, readQueueName),
    types: readTypes,
    job_types: readTypes,
    groups: readSome(MAX_FILTERED, readName(MAX_GROUP_LENGTH)),
  },
  (path) => notMember(path, ['queues', 'types', 'groups']),
);

/** Null: a filter without members takes everything. */
const readFilter: Reader<WebhookFilter | null> = (value, field) => {
  const { queues, job_types, types = job_types, groups } = readFilterMembers(value, field);
  return queues || types || groups ? defined({ queues, types, groups }) : null;
};

const readMetadata: Reader<Record<string, unknown>> = (value, field) => {
  const given = readObject(value, field);
  withinBytes(JSON.stringify(given), MAX_METADATA_BYTES, field);
  return given;
};

type Body = Record<string, unknown>;

/** The members that a body names; null removes one. @param readUrl may it be called? @throws {ApiError} 400, 413 */
export function parseWebhookChange(body: Body, readUrl: Reader<string>) {
  const read = readMembers({
    url: readUrl,
    events: readEvents,
    active: readBoolean,
    filter: nullable(readFilter),
    metadata: nullable(readMetadata),
  })(body, '');
  return defined({ ...read, format: readForm(body) }) satisfies {
    [K in keyof WebhookMembers]?: WebhookMembers[K] | null;
  };
}

/** A new subscription. @throws {ApiError} as {@link parseWebhookChange} */
export function parseWebhook(body: Body, readUrl: Reader<string>): WebhookMembers {
  for (const name of ['url', 'events']) {
    if ((own(body, name) ?? null) === null) throw invalidRequest(name, `${name} is required.`);
  }
  const { filter, metadata, format, ...rest } = parseWebhookChange(body, readUrl);
  return {
    ...(rest as Pick<WebhookMembers, 'url' | 'events'>),
    active: rest.active ?? true,
    ...(filter && { filter }),
    ...(metadata && { metadata }),
    ...(format && { format }),
  };
}
