/**
 * Holds answers against the document of the API, and messages against that of the messages: whatever a test is sent is as the
 * documents say, with no member that they do not name. They leave their objects open, for clients that meet a later server; here
 * they are closed.
 */
import { dereference, type Schema, validate } from '@cfworker/json-schema';
import messageDocument from '../../docs/reference/asyncapi.json?raw';
import { documentText } from '../../src/http/openapi/routes';

interface Operation {
  method: string;
  /** Of the path. */
  pattern: RegExp;
  /** By status: the schema of the body; null: an error, or nothing that can be compared. None: the route has no contract. */
  answers: ReadonlyMap<number, Schema | null>;
  /** As the document writes it. */
  path: string;
  /** The parameters of the query. */
  query: ReadonlySet<string>;
  /** The members of the request's body; undefined where it takes any. */
  body: ReadonlySet<string> | undefined;
}

/** Any request may be refused so. */
const USUAL = new Set([400, 401, 403, 408, 413, 415, 422, 429, 500, 503]);

/** Longer answers have many entries that are alike: they are looked at a few times for each route and status. */
const MAX_LENGTH = 20_000;
const LONG_ONES = 3;

/** Differences that are told of one answer. */
const MAX_TOLD = 8;

const MEDIA_TYPE = 'application/openjobspec+json';

interface Known {
  operations: readonly Operation[];
  lookup: Record<string, Schema | boolean>;
  error: Schema;
}

let known: Known | undefined;
const long = new Map<string, number>();

/** What a request to this route may say; undefined: no contract says it. @param path as the server mounts it */
export function requestOf(method: string, path: string): Pick<Operation, 'query' | 'body'> | undefined {
  known ??= readDocument();
  const written = path.replace(/:(\w+)/g, '{$1}').replace('*', '{path}');
  const found = known.operations.find((one) => one.method === method && one.path === written);
  return found && found.answers.size > 0 ? found : undefined;
}

/**
 * What is wrong with an answer; undefined: nothing, or no contract says what it is to be.
 * @param text the body
 */
export function differenceOf(method: string, path: string, status: number, text: string): string | undefined {
  known ??= readDocument();
  const operation = known.operations.find((one) => one.method === method && one.pattern.test(path));
  if (!operation || operation.answers.size === 0) return undefined;
  const promised = operation.answers.get(status);
  if (promised === undefined && !USUAL.has(status)) return `${method} ${path} does not promise ${status}`;
  const schema = promised ?? (status < 400 ? undefined : known.error);
  if (!schema || isLongAgain(operation, status, text)) return undefined;
  return differs(known, schema, text) ?? differenceOfEvents(operation, status, text);
}

/** Of a list of events. */
function differenceOfEvents({ method, path }: Operation, status: number, text: string): string | undefined {
  if (method !== 'GET' || !path.endsWith('/ojs/v1/events') || status !== 200) return undefined;
  const { events } = JSON.parse(text) as { events: object[] };
  return events.map((event) => differenceOfMessage(['webhooks.events'], JSON.stringify(event))).find(Boolean);
}

/** A message as the document of the messages has it. */
interface KnownMessage {
  /** What distinguishes it: its `type`, or its `event`. Absent: nothing does. */
  name: string | undefined;
  schema: Schema;
}

interface KnownMessages {
  byChannel: ReadonlyMap<string, readonly KnownMessage[]>;
  lookup: Record<string, Schema | boolean>;
}

let messages: KnownMessages | undefined;

/**
 * What is wrong with a message of the server; undefined: nothing.
 * @param channels of the document, one of which it came over
 */
export function differenceOfMessage(channels: readonly string[], text: string): string | undefined {
  messages ??= readMessages();
  const { byChannel, lookup } = messages;
  const { type, event } = JSON.parse(text) as { type?: unknown; event?: unknown };
  const all = channels.flatMap((channel) => byChannel.get(channel) ?? []);
  const named = all.filter(({ name }) => name !== undefined && (name === event || name === type));
  const possible = named.length > 0 ? named : all.filter(({ name }) => name === undefined);
  const differences = possible.map(({ schema }) => differs({ lookup }, schema, text));
  if (differences.includes(undefined)) return undefined;
  return differences.join('\n') || `no message of ${channels} is like ${text.slice(0, 500)}`;
}

/** Messages of one connection that are looked at, and long ones among them: the others are like them. */
const LOOKED_AT = 200;

/** Looks at what comes over a connection. */
export class MessageWatch {
  /** What is wrong with a message, if anything. */
  difference: string | undefined;
  private count = 0;
  private longCount = 0;

  /** @param channels of the document, one of which it is */
  constructor(private readonly channels: readonly string[]) {}

  look(text: string): void {
    if (++this.count > LOOKED_AT || (text.length > MAX_LENGTH && ++this.longCount > LONG_ONES)) return;
    this.difference ??= differenceOfMessage(this.channels, text);
  }
}

interface MessageDocument {
  operations: Record<string, { action: 'send' | 'receive'; channel: { $ref: string }; messages: { $ref: string }[] }>;
  components: { messages: Record<string, { name?: string }>; schemas: Record<string, Schema> };
}

function readMessages(): KnownMessages {
  const { operations, components } = JSON.parse(
    messageDocument.replaceAll('#/components/schemas/', '#/$defs/'),
  ) as MessageDocument;
  const $defs = closed(components.schemas, true) as Record<string, Schema>;
  const byChannel = new Map<string, KnownMessage[]>();
  for (const { action, channel, messages } of Object.values(operations)) {
    if (action !== 'send') continue;
    const known = messages.map(({ $ref }) => {
      const name = $ref.slice($ref.lastIndexOf('/') + 1);
      return { name: components.messages[name]?.name, schema: $defs[name] as Schema };
    });
    byChannel.set(channel.$ref.slice(channel.$ref.lastIndexOf('/') + 1), known);
  }
  return { byChannel, lookup: dereference({ $defs }) };
}

function isLongAgain({ method, pattern }: Operation, status: number, text: string): boolean {
  if (text.length <= MAX_LENGTH) return false;
  const name = `${method} ${pattern.source} ${status}`;
  const count = (long.get(name) ?? 0) + 1;
  long.set(name, count);
  return count > LONG_ONES;
}

function differs({ lookup }: Pick<Known, 'lookup'>, schema: Schema, text: string): string | undefined {
  const { valid, errors } = validate(JSON.parse(text), schema, '2020-12', lookup, false);
  if (valid) return undefined;
  const told = errors.map(({ instanceLocation, error }) => `${instanceLocation} ${error}`);
  // What only passes on that something below it is wrong.
  const own = told.filter(
    (line) => !/does not match (?:any|all|schema)|A subschema had errors|additional properties/.test(line),
  );
  return [...new Set(own.length > 0 ? own : told)].slice(-MAX_TOLD).concat(text.slice(0, 2_000)).join('\n');
}

interface Described {
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content }>;
}
type Content = Record<string, { schema?: Schema }>;

interface Document {
  paths: Record<string, Record<string, Described | undefined>>;
  components: { schemas: Record<string, Schema> };
}

function readDocument(): Known {
  const { paths, components } = JSON.parse(
    documentText('/').replaceAll('#/components/schemas/', '#/$defs/'),
  ) as Document;
  const $defs = closed(components.schemas, true) as Record<string, Schema>;
  const operations: Operation[] = [];
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, described] of Object.entries(methods)) {
      if (!described?.responses) continue;
      const answers = new Map<number, Schema | null>();
      for (const [status, { content }] of Object.entries(described.responses)) {
        if (status === 'default') continue;
        const schema = content?.[MEDIA_TYPE]?.schema;
        const name = `${method} ${path} ${status}`.replace(/\W+/g, '_');
        if (schema) $defs[name] = closed(schema) as Schema;
        answers.set(Number(status), $defs[name] ?? null);
      }
      const query = described.parameters?.filter((one) => one.in === 'query').map(({ name }) => name);
      const sent = described.requestBody?.content[MEDIA_TYPE]?.schema;
      const body = sent && membersOf(sent, components.schemas);
      operations.push({
        ...{ method: method.toUpperCase(), path, pattern: patternOf(path), answers },
        ...{ query: new Set(query), body: body && new Set(body) },
      });
    }
  }
  // A path as it is written goes before one with a parameter in the same place.
  operations.sort((a, b) => a.path.split('{').length - b.path.split('{').length);
  return { operations, lookup: dereference({ $defs }), error: $defs.ErrorAnswer as Schema };
}

/** The members that an object may have; undefined: any. */
function membersOf(schema: Schema, schemas: Record<string, Schema>): string[] | undefined {
  const name = schema.$ref?.replace('#/$defs/', '');
  if (name !== undefined) return membersOf(schemas[name] ?? {}, schemas);
  const several = schema.anyOf ?? schema.allOf;
  if (several) {
    const all = several.map((one: Schema) => membersOf(one, schemas));
    return all.some((one) => !one) ? undefined : all.flatMap((one) => one ?? []);
  }
  if (!schema.properties || schema.additionalProperties) return undefined;
  return Object.keys(schema.properties);
}

const patternOf = (path: string) =>
  new RegExp(
    `^${path
      .replaceAll('.', '\\.')
      .replace('{path}', '.*')
      .replace(/\{\w+\}/g, '[^/]+')}$`,
  );

/** A job has members that its application gave it, too. */
const isJob = (properties: unknown) => Object.hasOwn(properties as object, 'enqueued_at');

/** A policy is shown as it was written, also in the words of other systems. */
const isPolicy = (properties: unknown) => Object.hasOwn(properties as object, 'backoff_strategy');

/** The change of a job's state has the members of the event that says why, too. */
const isChange = (properties: unknown) =>
  Object.hasOwn(properties as object, 'job_type') && Object.hasOwn(properties as object, 'to');

/** @param isMap its members are schemas by names that somebody gave */
function closed(value: unknown, isMap = false): unknown {
  if (Array.isArray(value)) return value.map((entry) => closed(entry));
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, member]) => [
    name,
    closed(member, name === 'properties' && !isMap),
  ]);
  const isOpen =
    !isMap &&
    'properties' in value &&
    !('additionalProperties' in value) &&
    !isJob(value.properties) &&
    !isPolicy(value.properties) &&
    !isChange(value.properties);
  return { ...Object.fromEntries(members), ...(isOpen && { additionalProperties: false }) };
}
