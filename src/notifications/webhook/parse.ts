import {
  defined,
  isObject,
  optional,
  type Reader,
  readBoolean,
  readName,
  readObject,
  readQueueName,
  readSome,
  readText,
  withinBytes,
} from '../../job/envelope/fields';
import { notMember, nullable, readMembers } from '../../job/envelope/members';
import { isDeeperThan } from '../../job/envelope/nesting';
import { invalidRequest } from '../../job/errors';
import { MAX_GROUP_LENGTH } from '../../job/group';
import { own } from '../../job/own';
import { quote } from '../../job/text';
import { orThrow } from '../../job/thrown';
import { type UnknownMembers, withoutEffect } from '../../job/unknown-members';
import { also, nameGiven } from '../../ojs/names';
import { EVENT_MEMBERS, pathsIn, type WebhookForm } from './form';
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

const readFilterMembers = readMembers(
  also('WebhookFilterInForce', {
    queues: readSome(MAX_FILTERED, readQueueName),
    types: readSome(MAX_FILTERED, readJobType),
    groups: readSome(MAX_FILTERED, readName(MAX_GROUP_LENGTH)),
  }),
  (path) => notMember(path, ['queues', 'types', 'groups']),
);

/** Null: a filter without members takes everything. */
const readFilter: Reader<WebhookFilter | null> = (value, field) => {
  const members = readFilterMembers(value, field);
  const { queues, groups } = members;
  const types = members[nameGiven('WebhookFilterInForce', 'types', members)];
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

const MAX_TEMPLATE_BYTES = 16 * 1024;
const MAX_PLACEHOLDERS = 100;
const MAX_DEPTH = 20;

const RULE = 'must be "slack", "pagerduty" or {"template": …}';

const readKey = readText(
  (text) => /^[\x21-\x7e]{1,64}$/.test(text),
  'must be a key of 1 to 64 visible ASCII characters',
);

/** The form that a body names; null removes it, undefined keeps it. @throws {ApiError} 400, 413 */
export function readForm(body: Record<string, unknown>): WebhookForm | null | undefined {
  const { format } = body;
  const key = optional(body, 'routing_key', readKey);
  if (format === 'pagerduty') {
    if (key === undefined) throw invalidRequest('routing_key', 'routing_key is required with the format "pagerduty".');
    return { routing_key: key };
  }
  if (key !== undefined) throw invalidRequest('routing_key', 'routing_key is only for the format "pagerduty".');
  if (format === undefined || format === null || format === 'slack') return format;
  if (!isObject(format) || !('template' in format)) throw invalidRequest('format', `format ${RULE}.`);
  const unknown = Object.keys(format).find((name) => name !== 'template');
  if (unknown !== undefined) {
    throw invalidRequest(`format.${unknown}`, `format.${quote(unknown)} is not known; there is template.`);
  }
  return { template: readTemplate(format.template, 'format.template') };
}

function readTemplate(given: unknown, field: string): unknown {
  const notJson = () => invalidRequest(field, `${field} must be JSON. ${HOW_TO_QUOTE}`);
  const template: unknown = typeof given === 'string' ? orThrow(() => JSON.parse(given), notJson) : given;
  if (typeof template !== 'object' || template === null) {
    throw invalidRequest(field, `${field} must be a JSON object or array, or the text of one.`);
  }
  if (isDeeperThan(template, MAX_DEPTH)) throw invalidRequest(field, `${field} must nest no deeper than ${MAX_DEPTH}.`);
  const paths = pathsIn(withinBytes(JSON.stringify(template), MAX_TEMPLATE_BYTES, field));
  if (paths.length > MAX_PLACEHOLDERS) {
    throw invalidRequest(field, `${field} must have at most ${MAX_PLACEHOLDERS} placeholders.`);
  }
  for (const path of paths) {
    const [first = '', ...rest] = path.split('.');
    if (EVENT_MEMBERS.includes(first) && rest.every((name) => name !== '')) continue;
    const known = `A path starts with ${EVENT_MEMBERS.join(', ')}, as in {{data.job_id}}.`;
    throw invalidRequest(field, `${field} has a placeholder {{${quote(path)}}}, which is not in events. ${known}`);
  }
  return template;
}

const HOW_TO_QUOTE = 'Write placeholders within quotes: a string that is only a placeholder becomes the value itself.';
