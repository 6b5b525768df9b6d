/**
 * Writes docs/reference/mcp.json, the tools for agents: the table of src/mcp/tools.ts, with the schemas and descriptions that the
 * document of the API has of their routes. Run .ci/openapi.mjs before.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { loadText } from '../test/docs/source.mjs';
import { root, written } from './contracts.mjs';

const DOCUMENT = join(root, 'docs/reference/mcp.json');
const SOURCE = `export { ROUTES } from './http/routes'; export { TOOLS } from './mcp/tools';`;

/** What a job is made of, whichever way it is shown. */
const JOBS = ['JobEnvelope', 'InspectedJob', 'JobSummary'];

const CURSOR = { type: 'string', description: '`next_cursor` of the page before.' };
const CONFIRM = {
  type: 'string',
  description: 'From the answer to the same call without it: does what that answer says.',
};

/** @returns {Promise<{ tools: object[], jobMembers: string[] }>} see src/mcp/built.d.ts */
export async function makeTools() {
  const { paths, components } = JSON.parse(readFileSync(join(root, 'docs/reference/openapi.json'), 'utf8'));
  const { ROUTES, TOOLS } = await loadText(SOURCE);
  const schemaOf = ({ $ref }) => components.schemas[$ref.slice($ref.lastIndexOf('/') + 1)];
  const whole = (value) => {
    if (Array.isArray(value)) return value.map(whole);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref, ...beside } = value;
    if ($ref) return whole({ ...schemaOf(value), ...beside });
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, whole(member)]));
  };

  const mounted = ({ contract }) => ROUTES.find((route) => route.contract === contract);
  const operationOf = ({ method, path }) => paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()];

  const parametersOf = (operation, names) => {
    const found = operation.parameters.filter(({ name }) => names.includes(name));
    return found.map(({ name, description, schema }) => [
      name,
      { ...whole(schema), ...(description && { description }) },
    ]);
  };

  /** The arguments that a use of a route takes, and which of them it must have. */
  const argumentsOf = (use) => {
    const route = mounted(use);
    const operation = operationOf(route);
    const { query = [], body = [], filter = [] } = use;
    const inPath = [...route.path.matchAll(/([\w-]+)\/:(\w+)/g)].map(([, many, name]) => {
      return [name, { type: 'string', description: `${name} of the ${many.replace(/s$/, '')}` }];
    });
    const schema = body.length > 0 && whole(Object.values(operation.requestBody.content)[0].schema);
    const { properties = {}, required = [] } = schema || {};
    const filters = ROUTES.find(({ method, path }) => method === 'GET' && path === '/ojs/v1/jobs');
    const pages = route.method === 'GET' && operation.parameters?.some(({ name }) => name === 'cursor');
    return {
      route,
      properties: Object.fromEntries([
        ...inPath,
        ...parametersOf({ parameters: [], ...operation }, query),
        ...body.map((name) => [name, properties[name] ?? {}]),
        ...parametersOf(operationOf(filters), filter),
        ...(pages ? [['cursor', CURSOR]] : []),
        ...(route.method === 'GET' ? [] : [['confirm', CONFIRM]]),
      ]),
      required: [...inPath.map(([name]) => name), ...required.filter((name) => body.includes(name))],
    };
  };

  const tools = Object.entries(TOOLS).map(([name, uses]) => {
    const parts = uses.map(argumentsOf);
    const routes = parts.map(({ route }) => route);
    const properties = Object.assign({}, ...parts.map((part) => part.properties));
    const texts = routes
      .map(operationOf)
      .flatMap(({ summary, description }) => [`${summary}.`, description ?? []].flat());
    const isRead = routes.every(({ method }) => method === 'GET');
    const tool = {
      name,
      description: [...new Set(texts)].join(' '),
      inputSchema: {
        type: 'object',
        properties,
        required: Object.keys(properties).filter((member) => parts.every(({ required }) => required.includes(member))),
      },
      annotations: {
        readOnlyHint: isRead,
        // What producers write is new; operators change what is there.
        destructiveHint: !isRead && routes.some(({ audit, scope }) => audit !== 'none' || scope === 'admin:purge'),
        openWorldHint: false,
      },
    };
    return {
      tool,
      scope: routes[0].scope,
      bound: routes.every(({ bound }) => bound !== undefined),
      paths: routes.map(({ path }) => path),
      looks: uses.map(({ look }) => (look ? mounted(look).path : null)),
    };
  });
  const members = JOBS.flatMap((name) => Object.keys(components.schemas[name].properties));
  return { tools, jobMembers: [...new Set(members)] };
}

/** The tools as they are written. */
export const textOfTools = async () => written(await makeTools());

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  writeFileSync(DOCUMENT, await textOfTools());
}
