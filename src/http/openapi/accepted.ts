/** The names that the contract of a route has for its query and its body, from the document of the API. */
import { paths, schemas } from './built';
import { type CompactSchema, parametersIn, schemaIn } from './document';

/** KnownMembers by name: may they be null? */
export type KnownMembers = ReadonlyMap<string, boolean>;

export interface Accepted {
  query: ReadonlySet<string>;
  /** Undefined: the contract has no JSON body. */
  body?: KnownMembers;
  /** The body has members of any name besides these, or is not JSON. */
  isOpen: boolean;
}

let operations: Map<string, string[]> | undefined;
let named: Map<string, string> | undefined;

/** @param path of the route, in Hono's syntax; undefined: the document has no such route */
export function acceptedBy(method: string, path: string): Accepted | undefined {
  operations ??= operationsIn(paths);
  const [, , query, body = ''] =
    operations.get(`${method.toLowerCase()} ${path.replace(/:(\w+)/g, '{$1}').replace('*', '{path}')}`) ?? [];
  if (query === undefined) return undefined;
  const [schema = ''] = body.split(';');
  const members = new Map<string, boolean>();
  const isOpen = schema === '' ? body !== '' : collect(schemaIn(schema), members);
  return { query: new Set(query === '' ? [] : parametersIn(query)), ...(schema !== '' && { body: members }), isOpen };
}

/** The parts of each operation: its id, scope, query, body and answers. */
function operationsIn(lines: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  let path = '';
  for (const line of lines.split('\n')) {
    if (line.startsWith('/')) path = line;
    else {
      const [method = '', ...parts] = line.split(' ');
      found.set(`${method} ${path}`, parts);
    }
  }
  return found;
}

/** Adds the members of a schema, and those of its parts. @returns whether it takes any others too */
function collect(given: CompactSchema, members: Map<string, boolean>): boolean {
  const schema = resolved(given);
  const parts = [schema.anyOf, schema.allOf].flatMap((list) => (list as CompactSchema[] | undefined) ?? []);
  for (const [name, member] of Object.entries((schema.properties as Record<string, CompactSchema> | undefined) ?? {})) {
    members.set(name, isNullable(member));
  }
  const isOpen = parts.map((part) => collect(part, members)).some(Boolean);
  return isOpen || 'additionalProperties' in schema;
}

function isNullable(given: CompactSchema): boolean {
  const schema = resolved(given);
  const {
    type,
    anyOf,
    enum: words,
  } = schema as { type?: string | string[]; anyOf?: CompactSchema[]; enum?: unknown[] };
  if (type === undefined && anyOf === undefined && words === undefined) return !('const' in schema);
  if (words?.includes(null) || [type].flat().includes('null')) return true;
  return anyOf?.some(isNullable) === true;
}

function resolved(schema: CompactSchema): CompactSchema {
  const { $ref: reference } = schema as { $ref?: string };
  if (reference === undefined) return schema;
  named ??= new Map(schemas.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line]));
  const line = named.get(reference.slice(reference.lastIndexOf('/') + 1)) ?? ':';
  return resolved(schemaIn(line.slice(line.indexOf(':') + 1)));
}
