/**
 * Writes docs/reference/asyncapi.json, the document of the messages, from what the code says: the sockets and streams as they are
 * mounted, the webhooks, and the types and comments of src/contract. The server sends what `action: send` names.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  aliasOf,
  CONTRACTS,
  commentOf,
  componentName,
  idOf,
  inDocument,
  mountedRoutes,
  namesIn,
  root,
  schemasOf,
  textOf,
  ts,
  written,
} from './contracts.mjs';

const DOCUMENT = join(root, 'docs/reference/asyncapi.json');
const EVENTS = join(root, 'src/job/event-data.ts');

/** What travels to where no route of the server is. */
const WEBHOOKS = {
  path: join(CONTRACTS, 'webhooks.ts'),
  alias: 'Webhooks',
  messages: new Map([['fromServer', 'WebhookMessage']]),
  resource: 'webhooks',
  name: 'events',
  text: 'Notifies a receiver of an event. This is the body of a POST to its URL, unless the subscription asks for another format.',
};

const ACTIONS = { fromClient: 'receive', fromServer: 'send' };

/** The document. */
async function makeDocument() {
  const { version, exchanges, routes } = await mountedRoutes();
  const schemas = schemasOf(new Map([...exchanges, ['webhooks', WEBHOOKS]]), 'messages', []);
  const made = { schemas, texts: textsOfEvents(), messages: {}, channels: {}, operations: {}, ids: new Set() };
  for (const { address, exchange } of routes) {
    if (exchange && exchange.messages.size > 0) add(made, address, exchange);
  }
  add(made, null, WEBHOOKS);
  const named = Object.entries(schemas).filter(([name]) => !/^(?:Exchange\d+|Webhooks)_/.test(name));
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Tocsin',
      version,
      description: 'The sockets, streams and webhooks of a durable job queue.',
      license: { name: 'MIT' },
    },
    defaultContentType: 'application/json',
    channels: made.channels,
    operations: made.operations,
    components: {
      messages: sorted(Object.entries(made.messages)),
      schemas: sorted(named.map(([name, schema]) => [componentName(name), inDocument(schema)])),
    },
  };
}

const sorted = (entries) => Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));

/** A channel, with what is sent in each direction. */
function add({ schemas, texts, messages, channels, operations, ids }, address, exchange) {
  const id = idOf(exchange, ids);
  const names = address === null ? [] : namesIn(address);
  const channel = {
    address,
    ...textOf(exchange.text),
    ...(names.length > 0 && { parameters: Object.fromEntries(names.map((name) => [name, {}])) }),
    messages: {},
    bindings: exchange.messages.has('fromClient') ? { ws: { method: 'GET' } } : {},
  };
  channels[id] = channel;
  for (const [side, action] of Object.entries(ACTIONS)) {
    if (!exchange.messages.has(side)) continue;
    const keys = leavesOf({ $ref: `#/definitions/${aliasOf(exchange.alias, side)}` }, schemas);
    for (const key of keys) {
      const component = componentName(key);
      channel.messages[component] = { $ref: `#/components/messages/${component}` };
      messages[component] ??= messageOf(key, schemas[key], texts);
    }
    operations[`${id}.${action}`] = {
      action,
      channel: { $ref: `#/channels/${id}` },
      messages: keys.map((key) => ({ $ref: `#/channels/${id}/messages/${componentName(key)}` })),
    };
  }
}

/** The names of the types that a union is made of. */
function leavesOf(schema, schemas) {
  if (schema.$ref) {
    const name = schema.$ref.replace('#/definitions/', '');
    const found = schemas[name];
    return found.anyOf || found.$ref ? leavesOf(found, schemas) : [name];
  }
  if (!schema.anyOf) throw new Error(`a message has no name: ${JSON.stringify(schema).slice(0, 200)}`);
  return [...new Set(schema.anyOf.flatMap((one) => leavesOf(one, schemas)))];
}

/** What distinguishes a message from others is a constant in it; the comment of an event is that of its data. */
function messageOf(key, { properties, description }, texts) {
  const word = ['action', 'event', 'type'].map((member) => properties[member]?.const).find(Boolean);
  const text = texts.get(word) ?? description;
  return {
    ...(word && { name: word }),
    ...(text && { summary: textOf(text.replace(/\s+/g, ' ')).summary }),
    payload: { $ref: `#/components/schemas/${componentName(key)}` },
  };
}

/** By type: what its data say of it. */
function textsOfEvents() {
  const source = ts.createSourceFile(EVENTS, readFileSync(EVENTS, 'utf8'), ts.ScriptTarget.Latest, true);
  const members = source.statements.filter(ts.isInterfaceDeclaration).flatMap((one) => [...one.members]);
  return new Map(members.map((member) => [member.name.text, commentOf(member)]));
}

/** The document as it is written. */
export const textOfDocument = async () => written(await makeDocument());

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(DOCUMENT, await textOfDocument());
}
