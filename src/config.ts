/**
 * Bindings and variables, read once into one validated {@link Config}. A mistake is an `invalid_configuration` error
 * that names the variable, answered to every request that would need it; the probes keep working.
 *
 * | variable | value | default |
 * |---|---|---|
 * | `API_KEYS` | secret: JSON array of `{key, scopes, name?}`, or keys separated by commas or spaces (all scopes) | none: loopback only |
 * | `HANDLERS` | table of `[queue/]type-pattern` → binding, or `{binding, batch_size, timeout_ms, max_concurrency, payload}` | none: pull only |
 * | `DEFAULT_RETRY_LIMIT`, `DEFAULT_BACKOFF_BASE`, `DEFAULT_BACKOFF_EXPONENT`, `DEFAULT_BACKOFF_JITTER` | the deployment's retry layer | unset |
 * | `TEST_HOOKS` | `true` opens `POST /admin/reset` and test directives | off |
 */
import { readTargets, type TargetConfig } from './dispatch/config';
import { invalidConfiguration } from './job/errors';

/** Version announced in the manifest and by `/health`. */
export const VERSION = '0.1.0';

/** What the Worker is bound to. The objects are reached through `rpc/stubs`, which knows what each answers. */
export interface Env {
  QUEUES: DurableObjectNamespace;
  DIRECTORY: DurableObjectNamespace;
  UNIQUE_LOCKS: DurableObjectNamespace;
  WORKFLOWS: DurableObjectNamespace;
  API_KEYS?: string;
  HANDLERS?: unknown;
  TEST_HOOKS?: unknown;
  DEFAULT_RETRY_LIMIT?: string;
  DEFAULT_BACKOFF_BASE?: string;
  DEFAULT_BACKOFF_EXPONENT?: string;
  DEFAULT_BACKOFF_JITTER?: string;
}

/** What a key may do. */
export const SCOPES = ['data:read', 'data:write', 'admin:read', 'admin:write', 'admin:purge'] as const;
export type Scope = (typeof SCOPES)[number];

export interface ApiKey {
  key: string;
  scopes: readonly Scope[];
  name?: string;
}

export interface Config {
  apiKeys: ApiKey[];
  testHooks: boolean;
  /** The deployment's retry variables, as written. */
  retryVariables: Record<string, string | undefined>;
  targets: TargetConfig[];
  version: string;
}

const RETRY_VARIABLES = [
  'DEFAULT_RETRY_LIMIT',
  'DEFAULT_BACKOFF_BASE',
  'DEFAULT_BACKOFF_EXPONENT',
  'DEFAULT_BACKOFF_JITTER',
] as const;

const known = new WeakMap<Env, Config>();

/**
 * The validated configuration of this deployment; read once per isolate.
 * @throws {ApiError} 500 `invalid_configuration`
 */
export function readConfig(env: Env): Config {
  let config = known.get(env);
  if (!config) {
    config = {
      apiKeys: readApiKeys(env.API_KEYS),
      testHooks: env.TEST_HOOKS === true || env.TEST_HOOKS === 'true',
      retryVariables: Object.fromEntries(
        RETRY_VARIABLES.map((name) => [name, env[name] === undefined ? undefined : String(env[name])]),
      ),
      targets: readTargets(env.HANDLERS, env as unknown as Record<string, unknown>),
      version: VERSION,
    };
    known.set(env, config);
  }
  return config;
}

function readApiKeys(text: unknown): ApiKey[] {
  if (text === undefined || text === null || text === '') return [];
  const wrong = (why: string) => invalidConfiguration(`API_KEYS: ${why}`, { variable: 'API_KEYS' });
  if (typeof text === 'string' && !text.trimStart().startsWith('[')) {
    return text
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((key) => ({ key, scopes: SCOPES }));
  }
  let list: unknown = text;
  if (typeof text === 'string') {
    try {
      list = JSON.parse(text);
    } catch {
      throw wrong('is not valid JSON');
    }
  }
  if (!Array.isArray(list)) throw wrong('must be a JSON array or a list of keys');
  return list.map((entry: unknown, index) => {
    if (typeof entry !== 'object' || entry === null) throw wrong(`entry ${index} must be an object`);
    const { key, scopes, name } = entry as Record<string, unknown>;
    if (typeof key !== 'string' || key === '') throw wrong(`entry ${index} has no key`);
    if (scopes !== undefined && !Array.isArray(scopes)) throw wrong(`entry ${index}: scopes must be an array`);
    const unknown = ((scopes ?? []) as unknown[]).find((scope) => !SCOPES.includes(scope as Scope));
    if (unknown !== undefined) throw wrong(`entry ${index}: unknown scope ${JSON.stringify(unknown)}`);
    return {
      key,
      scopes: (scopes as Scope[] | undefined) ?? SCOPES,
      ...(typeof name === 'string' && { name }),
    };
  });
}
