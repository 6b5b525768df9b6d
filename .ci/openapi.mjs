/**
 * Writes docs/reference/openapi.json, the document of the API, from what the code says: the routes and their rules as they are
 * mounted, and the types and comments of src/contract. A route without a contract stands there with its path and scope only.
 */
import { writeFileSync } from 'node:fs';
import { STATUS_CODES } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  aliasOf,
  componentName,
  idOf,
  inDocument,
  jsonIn,
  mountedRoutes,
  namesIn,
  root,
  schemasOf,
  textOf,
  written,
} from './contracts.mjs';

const DOCUMENT = join(root, 'docs/reference/openapi.json');

const MEDIA_TYPE = 'application/openjobspec+json';

/** The bodies, and parts of bodies, whose members are read as those of a job. */
const JOB_REQUESTS = ['NewJob', 'JobOptionsGiven', 'JobChange', 'RetriedJob'];

/** The document. */
export async function makeDocument() {
  const { version, accepted, exchanges, routes } = await mountedRoutes();
  const schemas = schemasOf(exchanges, 'types', ['ErrorAnswer']);
  const paths = {};
  const ids = new Set();
  for (const { route, address, exchange } of routes) {
    paths[address] ??= startOf(address);
    paths[address][route.method.toLowerCase()] = operation(route, exchange, schemas, ids);
  }
  const components = componentsOf(schemas);
  for (const name of JOB_REQUESTS) setBounds(components.schemas[name], accepted);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tocsin',
      version,
      description: 'A durable job queue: the Open Job Spec 1.0, and what operators need beside it.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths,
    components,
  };
}

/** The named schemas that something refers to, without those of whole exchanges. */
function componentsOf(definitions) {
  const named = Object.entries(definitions)
    .filter(([name]) => !/^Exchange\d+_/.test(name))
    .map(([name, schema]) => [componentName(name), inDocument(schema)])
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    schemas: Object.fromEntries(named),
    parameters: {
      IdempotencyKey: {
        name: 'Idempotency-Key',
        in: 'header',
        description: 'A request that repeats this key gets the first answer again.',
        schema: { type: 'string' },
      },
    },
    responses: {
      Error: {
        description: 'The request was refused.',
        content: jsonOf({ $ref: '#/components/schemas/ErrorAnswer' }),
      },
    },
    securitySchemes: {
      key: { type: 'http', scheme: 'bearer', description: 'A key of the deployment, which has the scope named.' },
    },
  };
}

/** Says of each member what its reader accepts, beside what its type says. What has a type of its own is left to that. */
function setBounds({ properties }, accepted) {
  for (const [name, property] of Object.entries(properties)) {
    const bounds = inDocument(accepted.get(name) ?? {});
    const branch = property.anyOf?.find(({ type }) => type !== 'null') ?? property;
    if (branch.$ref || Object.keys(bounds).length === 0) continue;
    const takesNull = branch.type?.includes('null');
    const { description = bounds.description } = branch;
    Object.assign(branch, bounds, description && { description });
    if (takesNull) branch.type = [bounds.type, 'null'].flat();
  }
}

const jsonOf = (schema) => ({ [MEDIA_TYPE]: { schema } });

// ---- operations ---------------------------------------------------------------------------------------------------------

/** What all operations of a path have in common. */
function startOf(path) {
  const parameters = namesIn(path).map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));
  return parameters.length === 0 ? {} : { parameters };
}

function operation(route, exchange, schemas, ids) {
  const { scope, takesIdempotencyKey } = route;
  const schemaOf = (member) => {
    const definition = schemas[aliasOf(exchange.alias, member)];
    return definition && inDocument(definition);
  };
  const contentOf = (member) => {
    const media = mediaIn(exchange.types.get(member));
    return media.length > 0 ? Object.fromEntries(media) : jsonOf(schemaOf(member));
  };
  const query = exchange?.types.has('query') ? queryOf(schemaOf('query'), schemas) : [];
  const header = takesIdempotencyKey ? [{ $ref: '#/components/parameters/IdempotencyKey' }] : [];
  const parameters = [...query, ...header];
  return {
    ...(exchange && { operationId: idOf(exchange, ids), ...textOf(exchange.text), tags: [exchange.resource] }),
    ...(scope === 'public' ? { security: [] } : { security: [{ key: scope === 'key' ? [] : [scope] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(exchange?.types.has('body') && { requestBody: { required: true, content: contentOf('body') } }),
    responses: exchange ? responsesOf(exchange, schemaOf) : { default: { description: 'Not described yet.' } },
  };
}

/** The parameters that an object type names; one that is referred to, or several together, are looked up. */
function queryOf(schema, definitions) {
  const { properties, required = [] } = resolved(schema, definitions);
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    name,
    in: 'query',
    ...(description && { description }),
    ...(required.includes(name) && { required: true }),
    schema: rest,
  }));
}

function resolved(schema, definitions) {
  if (!schema.$ref) return schema;
  const name = schema.$ref.replace('#/components/schemas/', '');
  const [, found] = Object.entries(definitions).find(([key]) => componentName(key) === name);
  return resolved(inDocument(found), definitions);
}

/** What travels that is not JSON. */
const mediaIn = (type) => Array.from(type.matchAll(/\bMedia<'([^']+)'>/g), ([, media]) => [media, {}]);

function responsesOf({ types, errors }, schemaOf) {
  const responses = {};
  for (const [status, type] of types) {
    if (!/^\d+$/.test(status)) continue;
    const others = mediaIn(type);
    const json = !['', 'null'].includes(jsonIn(type)) && jsonOf(schemaOf(status));
    const content = { ...json, ...Object.fromEntries(others) };
    responses[status] = {
      description: STATUS_CODES[status],
      ...(Object.keys(content).length > 0 && { content }),
    };
  }
  for (const status of errors) responses[status] = { $ref: '#/components/responses/Error' };
  responses.default = { $ref: '#/components/responses/Error' };
  return responses;
}

/** The document as it is written. */
export const textOfDocument = async () => written(await makeDocument());

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(DOCUMENT, await textOfDocument());
}
