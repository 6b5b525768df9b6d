/** What a key may do: scopes, the roles that are named sets of them, and the keys as `API_KEYS` writes them. */
import { invalidConfiguration } from './errors';

/**
 * `data:…` is for producers and workers, `admin:…` for operators; `admin:purge` removes what is kept, `admin:export`
 * reads and imports whole queues. `metrics:read` is for a scraper of numbers. Who lacks `data:reveal` sees payloads as
 * the deployment's rules redact them (`job/redaction`).
 */
export const SCOPES = [
  'data:read',
  'data:write',
  'admin:read',
  'admin:write',
  'admin:purge',
  'admin:export',
  'metrics:read',
  'data:reveal',
] as const;
export type Scope = (typeof SCOPES)[number];

const VIEWER: readonly Scope[] = ['data:read', 'admin:read', 'metrics:read'];

/** Named sets of scopes. */
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
}

/** The role that has exactly these scopes. */
export function roleOf(scopes: readonly Scope[]): Role {
  const names = Object.keys(ROLES) as (keyof typeof ROLES)[];
  const isSame = (role: readonly Scope[]) => role.length === scopes.length && role.every((it) => scopes.includes(it));
  return names.find((name) => isSame(ROLES[name])) ?? 'custom';
}

/**
 * Keys: a JSON array of `{key, role?, scopes?, name?}`, or keys separated by commas or spaces. A key with neither role
 * nor scopes may do everything; one with both may do what either says.
 * @throws {ApiError} 500 `invalid_configuration`
 */
export function readApiKeys(text: unknown): ApiKey[] {
  if (text === undefined || text === null || text === '') return [];
  if (typeof text === 'string' && !text.trimStart().startsWith('[')) {
    return text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((key) => ({ key, scopes: SCOPES }));
  }
  const list = parsed(text);
  if (!Array.isArray(list)) throw wrong('must be a JSON array or a list of keys');
  return list.map(readKey);
}

function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    throw wrong('is not valid JSON');
  }
}

function readKey(entry: unknown, index: number): ApiKey {
  if (typeof entry !== 'object' || entry === null) throw wrong(`entry ${index} must be an object`);
  const { key, scopes, role, name } = entry as Record<string, unknown>;
  if (typeof key !== 'string' || key === '') throw wrong(`entry ${index} has no key`);
  if (scopes !== undefined && !Array.isArray(scopes)) throw wrong(`entry ${index}: scopes must be an array`);
  const unknown = ((scopes ?? []) as unknown[]).find((scope) => !SCOPES.includes(scope as Scope));
  if (unknown !== undefined) throw wrong(`entry ${index}: unknown scope ${JSON.stringify(unknown)}`);
  if (role !== undefined && !(typeof role === 'string' && Object.hasOwn(ROLES, role))) {
    throw wrong(`entry ${index}: role must be ${Object.keys(ROLES).join(', ')}`);
  }
  const ofRole = role === undefined ? undefined : ROLES[role as keyof typeof ROLES];
  const given = ofRole || scopes ? [...(ofRole ?? []), ...((scopes as Scope[] | undefined) ?? [])] : SCOPES;
  return { key, scopes: completed(given), ...(typeof name === 'string' && { name }) };
}

/** Each scope once, with those that another one includes. */
function completed(scopes: readonly Scope[]): Scope[] {
  const all = new Set(scopes);
  if (all.has('admin:read')) all.add('metrics:read');
  return SCOPES.filter((scope) => all.has(scope));
}

const wrong = (why: string) => invalidConfiguration(`API_KEYS: ${why}`, { variable: 'API_KEYS' });
