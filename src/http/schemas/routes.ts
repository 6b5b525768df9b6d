/** Schemas of jobs: below `/admin/schemas` by type and version, below `/schemas` by URI too, as OJS SDKs use them. */

import * as contract from '../../contract/schemas';
import { readPathName } from '../../job/envelope/fields';
import { isJobType, TYPE_RULE } from '../../job/envelope/names';
import { invalidRequest, notFound, unwrap } from '../../job/errors';
import { formatInstant } from '../../job/time';
import { also, nameGiven } from '../../ojs/names';
import { directoryObject } from '../../rpc/stubs';
import { checkSchema } from '../../schemas/check';
import { byVersion, type RegisteredSchema } from '../../schemas/registry';
import { type AppContext, json } from '../context';
import { pendingQueues } from '../queues/render';
import { type JsonObject, readBody } from '../request/body';
import { pageByName, readPaging } from '../request/pagination';
import { pathParam } from '../request/path';
import { serve } from '../route';

const HINT = 'GET /ojs/v1/admin/schemas lists the registered schemas.';
const MAX_VERSION = 64;

/** Routes below `/ojs/v1`. A key that changes what other producers may send needs more than the right to send jobs. */
export const schemaRoutes = serve(contract.schemas, {
  list,
  register: async (c) => {
    const { rendered, pending } = await register(c, {});
    return json(c, { schema: rendered, ...pending }, 201);
  },
  versions,
  removeVersion: remove,
  show: async (c) => json(c, { schema: render(await latest(c)) }),
  remove,
});

export const adminSchemaRoutes = serve(contract.adminSchemas, {
  list,
  versions,
  showVersion: async (c) => json(c, render(await named(c))),
  show: async (c) => json(c, render(await latest(c))),
  register: async (c) => {
    const { rendered, pending } = await register(c, { type: pathParam(c, 'name'), version: pathParam(c, 'version') });
    return json(c, { ...rendered, ...pending }, 201);
  },
  remove,
});

const known = async (c: AppContext): Promise<RegisteredSchema[]> =>
  (await directoryObject(c.env).schemas())?.schemas ?? [];

async function list(c: AppContext) {
  const nameOf = ({ type, version }: RegisteredSchema) => `${type} ${version}`;
  const sorted = (await known(c)).sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const page = pageByName(sorted, nameOf, readPaging(c));
  return json(c, also('SchemaList', { ...page, items: page.items.map(render) }));
}

async function versions(c: AppContext) {
  const found = await ofName(c);
  const type = (found[0] as RegisteredSchema).type;
  const listed = found.map(({ version, created_at }, index) => {
    return { version: shown(version), created_at: formatInstant(created_at), is_latest: index === 0 };
  });
  return json(c, { type, versions: listed });
}

/** The schemas named by the path, the latest first: a URI means one. @throws {ApiError} 404 */
async function ofName(c: AppContext): Promise<RegisteredSchema[]> {
  const name = pathParam(c, 'name');
  const all = await known(c);
  const byUri = all.filter(({ uri }) => uri === name);
  const found = byUri.length > 0 ? byUri : all.filter(({ type }) => type === name).sort(byVersion);
  if (found.length === 0) throw notFound('schema', name, HINT);
  return found;
}

const latest = async (c: AppContext): Promise<RegisteredSchema> => (await ofName(c))[0] as RegisteredSchema;

async function named(c: AppContext): Promise<RegisteredSchema> {
  const version = pathParam(c, 'version');
  const found = (await ofName(c)).find((each) => each.version === version);
  if (!found) throw notFound('schema', `${pathParam(c, 'name')} ${version}`, HINT);
  return found;
}

/** Removes the version in the path; without one, the schema of the URI or all schemas of the type that it names. */
async function remove(c: AppContext) {
  const name = pathParam(c, 'name');
  const version = c.req.param('version');
  const [first] = version === undefined ? await ofName(c) : [await named(c)];
  const { type, uri } = first as RegisteredSchema;
  const meant = uri === name ? (first as RegisteredSchema).version : version;
  const { removed, untold } = await directoryObject(c.env).removeSchemas(type, meant);
  if (removed === 0) throw notFound('schema', name, HINT);
  return json(c, { deleted: true as const, type, removed, ...pendingQueues(untold) });
}

/** @param path the version in the path; otherwise the body has it */
async function register(c: AppContext, path: { type?: string; version?: string }) {
  const given = await readBody(c);
  const type = path.type ?? given[nameGiven('NamedSchemaRequest', 'type', given)];
  if (typeof type !== 'string' || !isJobType(type)) throw invalidRequest('type', `type ${TYPE_RULE}.`);
  const version = readVersion(path.version ?? given.version);
  const uri = readUri(given, `urn:ojs:schema:${type}:${version}`);
  const member = nameGiven('SchemaRequest', 'schema', given);
  const schema = checkSchema(given[member], member);
  const { schema: stored, untold } = unwrap(await directoryObject(c.env).putSchema({ type, version, uri, schema }));
  return { rendered: render(stored), pending: pendingQueues(untold) };
}

function readVersion(value: unknown): string {
  const text = Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text === 'string' && /^[A-Za-z0-9][A-Za-z0-9.+_-]*$/.test(text) && text.length <= MAX_VERSION) return text;
  throw invalidRequest('version', `version must be an integer, or letters, digits and .+_- (at most ${MAX_VERSION}).`);
}

const readUri = ({ uri }: JsonObject, usual: string): string =>
  uri === undefined || uri === null ? usual : readPathName(2048)(uri, 'uri');

/** A whole number is shown as a number. */
const shown = (version: string) => (/^(0|[1-9]\d{0,14})$/.test(version) ? Number(version) : version);

const render = ({ type, version, uri, created_at, schema }: RegisteredSchema): contract.ArgsSchema =>
  also('ArgsSchema', { uri, type, version: shown(version), schema, created_at: formatInstant(created_at) });
