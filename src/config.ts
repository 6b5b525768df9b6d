/**
 * Bindings and variables, read once into one validated {@link Config}. A mistake is an `invalid_configuration` error
 * that names the variable, answered to every request that would need it; the probes keep working.
 *
 * | variable | value | default |
 * |---|---|---|
 * | `API_KEYS` | secret: JSON array of `{key, role?, scopes?, name?}`, or a list of keys (all scopes) | none |
 * | `REDACT` | list of rules for what a key without `data:reveal` is not shown (`access/redaction`) | none |
 * | `ALLOW_LOCALHOST` | `true`: without keys, localhost may call and be called; for development only | off |
 * | `LOCALHOST_SECRET` | set by `npm start` and `tocsin dev`: marks requests that came through these | none |
 * | `ALLOWED_ORIGINS` | list of origins whose pages may call while there is no key | none |
 * | `HANDLERS` | table of `[queue/]type-pattern` → binding, URL, or options (`dispatch/config`) | none: pull only |
 * | `TARGET_SECRET` | secret that signs calls to URLs; while it is replaced the new and the old one | none |
 * | `TARGET_SIGNATURE` | how calls to URLs are signed: `standard`, `ojs`, `qstash` | `standard ojs` |
 * | `ALLOWED_TARGET_HOSTS` | hosts, `*.` for all below one, that a job may name in `target_url` | none |
 * | `DEFAULT_RETRY_LIMIT`, `DEFAULT_BACKOFF_BASE` | the deployment's retry layer | unset |
 * | `DEFAULT_BACKOFF_EXPONENT`, `DEFAULT_BACKOFF_JITTER` | the same | unset |
 * | `MAX_HANDLER_PAUSE_MS` | longest pause of a handler that does not take its calls, ms | 60000; 1000 in development |
 * | `MAX_NEW_QUEUES` | queues that a key without `admin:write` may create in a day | 1000 |
 * | `MAX_STORAGE_BYTES` | the size from which a queue takes no more jobs, about | 9500000000 |
 * | `DATA_LOCATION` | where all data is kept, for ever: `eu`, `us`, `fedramp`, `fedramp-high` | anywhere |
 * | `TOKEN_SECRET` | secret that signs tokens and signal URLs; while it is replaced the new and the old one | none |
 * | `PUBLIC_URL` | where people reach this deployment, for signal URLs | none |
 * | `LOGIN` | JSON: the identity provider, and what its people may do (`access/login`) | none |
 * | `LOGIN_SECRET` | secret of this deployment at the identity provider | none |
 * | `TEST_HOOKS` | `true` opens `POST /admin/reset` and test directives | off |
 *
 * A list is separated by commas or spaces, secrets by a space.
 */
import { type ApiKey, readApiKeys } from './access/access';
import { type LoginSettings, readLoginSettings } from './access/login';
import { pseudonyms, type Redactor, readRedactionRules, redactor } from './access/redaction';
import { readTokenSettings, type TokenSettings } from './access/token';
import { declaration } from './declaration';
import { readTargets, type TargetConfig } from './dispatch/config';
import { STOP_FOR_MS } from './dispatch/health';
import { readHostTargets, targetReader } from './dispatch/hosts';
import { ownTarget } from './dispatch/own';
import { type Allows, parseTargetUrl, TARGET_URL_RULE } from './dispatch/target-url';
import { defined, type Reader, reader } from './job/envelope/fields';
import { invalidConfiguration } from './job/errors';
import { getOrInsert } from './job/get-or-insert';
import { readListVariable } from './job/list-variable';
import { own } from './job/own';
import { RETRY_VARIABLES, variablesLayer } from './job/retry/variables';
import { STORAGE_BOUNDS } from './settings';

/** Version announced in the manifest and by `/health`. */
export const VERSION = '0.2.0';

/** The bindings of the Worker that the queue reads. Objects need none: `rpc/stubs` reaches them. */
export interface Env {
  QUEUES?: DurableObjectNamespace;
  DIRECTORY?: DurableObjectNamespace;
  UNIQUE_LOCKS?: DurableObjectNamespace;
  WORKFLOWS?: DurableObjectNamespace;
  /** What happens to jobs is written there too, if it is bound. */
  ANALYTICS?: AnalyticsEngineDataset;
  API_KEYS?: string;
  REDACT?: unknown;
  ALLOW_LOCALHOST?: unknown;
  LOCALHOST_SECRET?: string;
  ALLOWED_ORIGINS?: unknown;
  HANDLERS?: unknown;
  TARGET_SECRET?: string;
  TARGET_SIGNATURE?: string;
  ALLOWED_TARGET_HOSTS?: string;
  TEST_HOOKS?: unknown;
  DEFAULT_RETRY_LIMIT?: string;
  DEFAULT_BACKOFF_BASE?: string;
  DEFAULT_BACKOFF_EXPONENT?: string;
  DEFAULT_BACKOFF_JITTER?: string;
  MAX_HANDLER_PAUSE_MS?: string | number;
  MAX_STORAGE_BYTES?: string | number;
  MAX_NEW_QUEUES?: string | number;
  DATA_LOCATION?: unknown;
  TOKEN_SECRET?: unknown;
  PUBLIC_URL?: unknown;
  LOGIN?: unknown;
  LOGIN_SECRET?: unknown;
}

/** Who is let in. */
export interface Access {
  apiKeys: ApiKey[];
  /** Requests to `localhost` need no key. */
  localhost: boolean;
  /** What these requests must bring then, where something stands before the development server. */
  localhostSecret?: string;
  /** Origins whose pages may call although no key is configured, as `https://host:port`. */
  origins: ReadonlySet<string>;
}

export interface Config {
  testHooks: boolean;
  /** The deployment's retry variables, as written; they can be read. */
  retryVariables: Record<string, string | undefined>;
  targets: TargetConfig[];
  /** Leaves out of an answer what not everybody may see; absent: there is nothing of the kind. */
  redact?: Redactor;
  /** The longest time until a handler that refuses calls is tried again, ms; absent: as in production. */
  longestPauseMs?: number;
  /** How large each queue's object may become, where its settings do not say. */
  maxStorageBytes?: number;
  /** Where all data is kept; absent: anywhere. */
  location?: DataLocation;
  /** Queues that a key without `admin:write` may create in a day. */
  maxNewQueues: number;
  tokens: TokenSettings;
  login?: LoginSettings;
  version: string;
}

/** The places in which Cloudflare keeps objects and what they store. */
const LOCATIONS = ['eu', 'us', 'fedramp', 'fedramp-high'] as const;
export type DataLocation = (typeof LOCATIONS)[number];

/** Computes a value once for each environment. A mistake is found again by every call. */
function once<T>(read: (env: Env) => T): (env: Env) => T {
  const known = new WeakMap<Env, { value: T }>();
  const add = (env: Env) => ({ value: read(env) });
  return (env) => getOrInsert(known, env, add).value;
}

/** Who is let in; read once per isolate. @throws {ApiError} 500 `invalid_configuration` */
export const readAccess = once(
  (env): Access => ({
    apiKeys: readApiKeys(env.API_KEYS),
    localhost: isOn(env.ALLOW_LOCALHOST),
    ...(env.LOCALHOST_SECRET && { localhostSecret: env.LOCALHOST_SECRET }),
    origins: readOrigins(env.ALLOWED_ORIGINS),
  }),
);

/** The validated configuration of this deployment, read once per isolate. @throws {ApiError} 500 */
export const readConfig = once(
  (env): Config => ({
    testHooks: hasTestHooks(env),
    ...defined({ location: locationOf(env), login: readLogin(env) }),
    retryVariables: readRetryVariables(env),
    // Of two patterns that fit a job alike, that of the variable counts: it can be changed without a change of code.
    targets: [
      ...readTargets(env.HANDLERS, valuesOf(env), allowsOf(env)),
      ...ownTargets(),
      ...readHostTargets(valuesOf(env), allowsOf(env)),
    ],
    ...readRedaction(env),
    ...defined({ longestPauseMs: readLongestPause(env), maxStorageBytes: readStorageBound(env) }),
    maxNewQueues: readNumber(env, 'MAX_NEW_QUEUES', 0, Number.POSITIVE_INFINITY, '') ?? MAX_NEW_QUEUES,
    tokens: readTokens(env),
    version: VERSION,
  }),
);

/** @throws {ApiError} 500 `invalid_configuration` */
export const readTokens = once(
  ({ TOKEN_SECRET: secrets, PUBLIC_URL: url }): TokenSettings =>
    readTokenSettings(readListVariable('TOKEN_SECRET', secrets), url),
);

/** How people log in; undefined: with keys alone. @throws {ApiError} 500 `invalid_configuration` */
export const readLogin = once((env): LoginSettings | undefined => {
  const login = readLoginSettings(env.LOGIN, env.LOGIN_SECRET ?? undefined);
  if (!login?.client || readTokens(env).secrets.length > 0) return login;
  throw invalidConfiguration('LOGIN.client_id needs TOKEN_SECRET, which signs sessions.', { variable: 'TOKEN_SECRET' });
});

/** What signs sessions. Backends that sign tokens have one half of it. @throws {ApiError} 500 */
export const readSessions = once((env): TokenSettings => {
  const own = readLogin(env)?.client?.secret;
  return { secrets: own === undefined ? [] : readTokens(env).secrets.map((secret) => `${secret}\n${own}`) };
});

const readLocation = once(({ DATA_LOCATION: given = '' }): DataLocation | undefined => {
  if (given === '') return undefined;
  const found = LOCATIONS.find((location) => location === given);
  if (found) return found;
  const message = `DATA_LOCATION must be one of ${LOCATIONS.join(', ')}, or empty.`;
  throw invalidConfiguration(message, { variable: 'DATA_LOCATION' });
});

let isAnywhere = false;

/** For tests of Workers, whose runtime has no places: the variable counts as empty. */
export function ignoreLocation(): void {
  isAnywhere = true;
}

/** Where all objects must lie; undefined: anywhere. @throws {ApiError} 500 `invalid_configuration` */
export function locationOf(env: Env): DataLocation | undefined {
  return isAnywhere ? undefined : readLocation(env);
}

export function hasTestHooks(env: Env): boolean {
  return isOn(env.TEST_HOOKS);
}

/**
 * What of the configuration can be used. With a mistake in it no job is handed out; attempts that run come to their
 * end, under the deployment's retry variables if these can be read, else under the defaults.
 */
export const usableConfig = once(
  (
    env,
  ): Pick<Config, 'retryVariables' | 'targets' | 'maxStorageBytes' | 'longestPauseMs'> &
    Partial<Pick<Config, 'tokens'>> => {
    try {
      return readConfig(env);
    } catch (error) {
      console.error('tocsin: invalid configuration', error);
    }
    try {
      return { retryVariables: readRetryVariables(env), targets: [] };
    } catch {
      return { retryVariables: {}, targets: [] };
    }
  },
);

/** Reads the URL that a job names as its target, as far as this deployment allows any. */
export const readTargetUrl = once((env) => targetReader(readConfig(env).targets, allowsOf(env)));

const valuesOf = (env: Env) => env as unknown as Record<string, unknown>;

export { newWebhookSecret, readWebhookSecret } from './dispatch/webhook-secret';

export const readWebhookUrl = (env: Pick<Env, 'ALLOW_LOCALHOST'>): Reader<string> =>
  reader(
    (value) => (typeof value === 'string' ? parseTargetUrl(value, allowsOf(env))?.href : undefined),
    TARGET_URL_RULE,
  );

/** What URLs may lead to beyond the public Internet. */
export const allowsOf = (env: Pick<Env, 'ALLOW_LOCALHOST'>): Allows => ({ loopback: isOn(env.ALLOW_LOCALHOST) });

/** The handlers that the code of this deployment brings along. */
function ownTargets(): TargetConfig[] {
  const { handlers } = declaration();
  return handlers ? [ownTarget(handlers)] : [];
}

function isOn(value: unknown): boolean {
  return value === true || value === 'true';
}

function readRetryVariables(env: Env): Record<string, string | undefined> {
  const values = env as unknown as Record<string, unknown>;
  const variables = Object.fromEntries(
    RETRY_VARIABLES.map((name) => [name, own(values, name) === undefined ? undefined : String(own(values, name))]),
  );
  variablesLayer(variables);
  return variables;
}

/** Pseudonyms are made with the keys, which their readers do not know; they change with the keys. */
function readRedaction({ REDACT: text, API_KEYS: keys }: Env): Pick<Config, 'redact'> {
  const given = readListVariable('REDACT', text);
  try {
    const rules = readRedactionRules([...given, ...(declaration().redact ?? [])]);
    if (rules.length === 0) return {};
    const secret = typeof keys === 'string' ? keys : JSON.stringify(keys ?? '');
    return { redact: redactor(rules, pseudonyms(secret)) };
  } catch (error) {
    throw invalidConfiguration(`REDACT: ${(error as Error).message}.`, { variable: 'REDACT' });
  }
}

function readOrigins(text: unknown): ReadonlySet<string> {
  const given = readListVariable('ALLOWED_ORIGINS', text);
  for (const origin of given) {
    if (URL.canParse(origin) && new URL(origin).origin === origin) continue;
    const message = 'ALLOWED_ORIGINS: each must be an origin such as https://app.example:8443';
    throw invalidConfiguration(message, { variable: 'ALLOWED_ORIGINS', origin });
  }
  return new Set(given);
}

/** A whole number in a variable; undefined: it is not set. @param rule what it must be, for the message */
function readNumber(env: Env, name: keyof Env, min: number, max: number, rule: string): number | undefined {
  const value = env[name];
  if (value === undefined || value === '') return undefined;
  const number = Number(value);
  if (Number.isInteger(number) && number >= min && number <= max) return number;
  throw invalidConfiguration(`${name} must be a whole number${rule}.`, { variable: name });
}

/** Queues that a key may create in a day where nothing is said. */
const MAX_NEW_QUEUES = 1_000;

/** On a developer's machine a handler that is started again is found within this time, ms. */
const DEVELOPMENT_PAUSE_MS = 1_000;

function readLongestPause(env: Env): number | undefined {
  // Without keys only localhost is served, so this is not a deployment for others.
  const isDevelopment = isOn(env.ALLOW_LOCALHOST) && (env.API_KEYS ?? '') === '';
  const ms = readNumber(env, 'MAX_HANDLER_PAUSE_MS', 100, STOP_FOR_MS, ` of ms from 100 to ${STOP_FOR_MS}`);
  return ms ?? (isDevelopment ? DEVELOPMENT_PAUSE_MS : undefined);
}

function readStorageBound(env: Env): number | undefined {
  const { min, max } = STORAGE_BOUNDS;
  return readNumber(env, 'MAX_STORAGE_BYTES', min, max, ` of bytes from ${min} to ${max}`);
}
