/** What a key may do: scopes, the roles that are named sets of them, and the keys as `API_KEYS` writes them. */
import { BOUNDS, type Bounds, readBounds } from '../job/bounds';
import { apiErrorData, invalidConfiguration } from '../job/errors';
import { didYouMean } from '../job/near-miss';
import { orThrow } from '../job/thrown';

/**
 * Scopes of API keys. Keys without `data:reveal` see redacted payloads (`redaction.ts`). `metrics:read`: for scrapers.
 * `admin:keys`: makes and revokes keys (`keys.ts`).
 */
export const SCOPES = [
  'data:read',
  'data:write',
  'admin:read',
  'admin:write',
  'admin:purge',
  'admin:export',
  'admin:keys',
  'metrics:read',
  'data:reveal',
] as const;
export type Scope = (typeof SCOPES)[number];

const VIEWER: readonly Scope[] = ['data:read', 'admin:read', 'metrics:read'];

export const ROLES = {
  viewer: VIEWER,
  operator: [...VIEWER, 'data:write', 'admin:write'],
  admin: SCOPES,
} as const satisfies Record<string, readonly Scope[]>;

/** `custom`: a set of scopes other than the roles. */
export type Role = keyof typeof ROLES | 'custom';

export interface ApiKey {
  key: string;
  scopes: readonly Scope[];
  name?: string;
  /** Absent: everything. */
  bounds?: Bounds;
}

export function roleOf(scopes: readonly Scope[]): Role {
  const names = Object.keys(ROLES) as (keyof typeof ROLES)[];
  const isSame = (role: readonly Scope[]) => role.length === scopes.length && role.every((it) => scopes.includes(it));
  return names.find((name) => isSame(ROLES[name])) ?? 'custom';
}

const MEMBERS = ['key', 'role', 'scopes', 'name', 'queues', 'types', 'groups'];

/** What no key separated by commas contains: such text was meant as JSON, and lost its brackets. */
const JSON_SIGNS = /[{}":]/;

/** A member meant as one, `role=viewer`: it would be a key that anybody can guess. */
const ASSIGNMENT = /^(?:key|name|role|scopes?)=/i;

/** What a script writes in place of a key that is not set. */
const UNSET = ['undefined', 'null'];

/**
 * Reads `API_KEYS`: a JSON array of `{key, role?, scopes?, name?, queues?, types?, groups?}`, or keys separated by
 * commas or spaces. A key with neither role nor scopes may do everything. Unknown members are refused; no message
 * quotes the text.
 * @throws {ApiError} 500 `invalid_configuration`
 */
export function readApiKeys(text: unknown): ApiKey[] {
  if (text === undefined || text === null || text === '') return [];
  const isPlain = typeof text === 'string' && !text.trimStart().startsWith('[');
  const keys = isPlain ? readPlain(text) : readList(text);
  if (keys.length === 0) throw wrong('must name at least one key; leave it unset to have none');
  const first = new Map<string, number>();
  for (const [index, { key }] of keys.entries()) {
    if (UNSET.includes(key)) throw wrong(`entry ${index}: the key is a word that stands for a missing value`);
    const known = first.get(key);
    if (known !== undefined) throw wrong(`entries ${known} and ${index} have the same key`);
    first.set(key, index);
  }
  return keys;
}

function readPlain(text: string): ApiKey[] {
  const keys = text.split(/[\s,]+/).filter(Boolean);
  const torn = keys.findIndex((key) => JSON_SIGNS.test(key));
  if (torn !== -1) {
    throw wrong(`entry ${torn} contains one of { } " : which a list of keys must not; write JSON within [ ]`);
  }
  const assigned = keys.findIndex((key) => ASSIGNMENT.test(key));
  if (assigned !== -1) throw wrong(`entry ${assigned} gives a member a value; write JSON within [ ]`);
  return keys.map((key) => ({ key, scopes: SCOPES }));
}

function readList(text: unknown): ApiKey[] {
  const notJson = () => wrong('is not valid JSON');
  const list: unknown = typeof text === 'string' ? orThrow(() => JSON.parse(text), notJson) : text;
  if (!Array.isArray(list)) throw wrong('must be a JSON array or a list of keys');
  return list.map(readKey);
}

function readKey(entry: unknown, index: number): ApiKey {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) {
    throw wrong(`entry ${index} must be an object`);
  }
  const unknown = Object.keys(entry).find((member) => !MEMBERS.includes(member));
  if (unknown !== undefined) {
    throw wrong(`entry ${index} has an unknown member; use ${MEMBERS.join(', ')}.${didYouMean(unknown, MEMBERS)}`);
  }
  const { key, scopes, role, name } = entry as Record<string, unknown>;
  if (typeof key !== 'string' || key === '') throw wrong(`entry ${index} has no key`);
  if (/[\s\p{Cc}]/u.test(key)) throw wrong(`entry ${index}: key must not contain blanks; no request could send it`);
  if (name !== undefined && (typeof name !== 'string' || name.trim() === '')) {
    throw wrong(`entry ${index}: name must be text that is not empty`);
  }
  const roles = Object.keys(ROLES);
  if (role !== undefined && !roles.includes(role as string)) {
    throw wrong(`entry ${index}: role must be ${roles.join(', ')}.${suggested(role, roles)}`);
  }
  const ofRole = role === undefined ? [] : ROLES[role as keyof typeof ROLES];
  const given = role === undefined && scopes === undefined ? SCOPES : [...ofRole, ...readScopes(scopes, index)];
  const bounds = boundsOf(entry as Record<string, unknown>, index);
  return {
    key,
    scopes: completed(given),
    ...(name !== undefined && { name: name as string }),
    ...(bounds && { bounds }),
  };
}

function boundsOf(entry: Record<string, unknown>, index: number): Bounds | undefined {
  const empty = BOUNDS.find((kind) => entry[kind] === null);
  if (empty) throw wrong(`entry ${index}: ${empty} must be a list of patterns; leave it out for no bound`);
  try {
    return readBounds(entry);
  } catch (error) {
    throw wrong(`entry ${index}: ${apiErrorData(error)?.message}`);
  }
}

function readScopes(scopes: unknown, index: number): readonly Scope[] {
  if (scopes === undefined) return [];
  if (!Array.isArray(scopes) || scopes.length === 0) throw wrong(`entry ${index}: scopes must be a list of scopes`);
  const unknown: unknown = scopes.find((scope) => !SCOPES.includes(scope as Scope));
  if (unknown === undefined) return scopes as Scope[];
  throw wrong(`entry ${index}: scopes has an unknown scope; use ${SCOPES.join(', ')}.${suggested(unknown, SCOPES)}`);
}

const suggested = (value: unknown, known: readonly string[]) =>
  typeof value === 'string' ? didYouMean(value, known) : '';

/** In the order of {@link SCOPES}, with those that others include. */
export function completed(scopes: readonly Scope[]): Scope[] {
  const all = new Set(scopes);
  if (all.has('admin:read')) all.add('metrics:read');
  return SCOPES.filter((scope) => all.has(scope));
}

const wrong = (why: string) => invalidConfiguration(`API_KEYS: ${why}`, { variable: 'API_KEYS' });
