/** Manifest and probes; for operators, reset and the retry calculator. */
import { type ApiKey, roleOf } from '../../access/access';
import { resetAll } from '../../across/objects';
import { ping } from '../../across/statistics';
import { type Config, type Env, readAccess, readConfig, VERSION } from '../../config';
import type {
  ConfiguredTarget,
  DeploymentConfig,
  MiddlewareStep,
  ServerLimits,
  ShownVariable,
} from '../../contract/system';
import * as contract from '../../contract/system';
import { dailyLimitUsedUp } from '../../durable/platform-errors';
import { defined } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE, MAX_ENVELOPE_BYTES, MAX_META_BYTES, MAX_RESULT_BYTES } from '../../job/envelope/names';
import { apiErrorData, notFound } from '../../job/errors';
import { own } from '../../job/own';
import { previewRetry } from '../../job/retry/preview';
import { RETRY_VARIABLES, variablesLayer } from '../../job/retry/variables';
import type { DirectoryHealth } from '../../rpc/directory';
import { directoryObject } from '../../rpc/stubs';
import { withBuiltIns } from '../../settings';
import { type AppContext, json } from '../context';
import { listDeadLetters } from '../dead-letter/routes';
import { renderQueueConfig } from '../queues/config';
import { listQueues } from '../queues/routes';
import { readBody } from '../request/body';
import { mountPrefix } from '../request/path';
import { serve } from '../route';
import { listWorkers } from '../workers/routes';
import { uptime } from './uptime';

/** Variables whose values anyone with admin:read may see. */
const SHOWN = [
  'ALLOW_LOCALHOST',
  'ALLOWED_ORIGINS',
  'ALLOWED_TARGET_HOSTS',
  'TARGET_SIGNATURE',
  ...RETRY_VARIABLES,
  'MAX_HANDLER_PAUSE_MS',
  'MAX_STORAGE_BYTES',
  'MAX_NEW_QUEUES',
  'DATA_LOCATION',
  'PUBLIC_URL',
  'REDACT',
  'TEST_HOOKS',
] as const;

/** For these only whether they are set. `HANDLERS` may hold secrets; its mappings are shown as targets. */
const HIDDEN = ['API_KEYS', 'HANDLERS', 'TARGET_SECRET', 'TOKEN_SECRET', 'LOGIN', 'LOGIN_SECRET'] as const;

async function showConfiguration(c: AppContext) {
  const { env } = c;
  const config = readConfig(env);
  const { apiKeys, localhost, origins } = readAccess(env);
  const defaults = (await directoryObject(env).queueDefaults())?.config ?? {};
  return json(c, {
    version: config.version,
    access: {
      open_to_localhost: localhost && apiKeys.length === 0 && !config.login,
      allowed_origins: [...origins],
      keys: apiKeys.map(renderKey),
    },
    targets: config.targets.map(renderTarget),
    limits: LIMITS,
    queue_defaults: { config: renderQueueConfig(defaults), effective: renderQueueConfig(withBuiltIns(defaults)) },
    retry: variablesLayer(config.retryVariables),
    test_hooks: config.testHooks,
    variables: variablesOf(env),
  });
}

/** The public part of a key: never the key. */
const renderKey = ({ name, scopes }: ApiKey): DeploymentConfig['access']['keys'][number] => ({
  name: name ?? null,
  role: roleOf(scopes),
  scopes,
});

function renderTarget({ binding: _, takesUrl, patterns, ...target }: Config['targets'][number]): ConfiguredTarget {
  const { id, name, isRemote = false, payload, batchSize, timeoutMs, maxConcurrency, mayEnqueue, chunk } = target;
  const kind: ConfiguredTarget['kind'] = takesUrl ? 'host' : isRemote ? 'url' : 'binding';
  return defined({
    id,
    name,
    kind,
    patterns: patterns.map(({ queue, type }) => (queue === undefined ? type : `${queue}/${type}`)),
    payload,
    batch_size: batchSize,
    batch: chunk,
    timeout_ms: timeoutMs,
    max_concurrency: maxConcurrency,
    may_enqueue: mayEnqueue,
  });
}

function variablesOf(env: Env): Record<string, ShownVariable> {
  const values = env as unknown as Record<string, unknown>;
  const isSet = (name: string) => own(values, name) !== undefined && own(values, name) !== '';
  const shown = SHOWN.map((name) => [
    name,
    isSet(name) ? { set: true, value: String(own(values, name)) } : { set: false },
  ]);
  return Object.fromEntries([...shown, ...HIDDEN.map((name) => [name, { set: isSet(name) }])]);
}

/** The limits of the server, for the manifest and the configuration. */
const LIMITS: ServerLimits = {
  max_envelope_bytes: MAX_ENVELOPE_BYTES,
  max_meta_bytes: MAX_META_BYTES,
  max_result_bytes: MAX_RESULT_BYTES,
  max_batch_size: MAX_BATCH_SIZE,
};

const MANIFEST = {
  specversion: '1.0',
  ojs_version: '1.0',
  conformance_level: 4,
  protocols: ['http'],
  backend: 'durable-objects',
  implementation: { name: 'tocsin', version: VERSION, language: 'typescript' },
  extensions: [
    'dead-letter',
    'retry-preview',
    'progress',
    'results',
    'durable',
    'shutdown',
    'cron-groups',
    'bulk',
    'priority',
    'queue-config',
    'schema-registry',
    'fair-scheduling',
    'rate-limiting',
    'backpressure',
    'realtime',
    'webhooks',
    'events',
    'admin-api',
  ],
  capabilities: {
    retries: true,
    dead_letter: true,
    delayed_jobs: true,
    priorities: true,
    priority_queues: true,
    job_ttl: true,
    batch_enqueue: true,
    bulk_operations: true,
    idempotency_keys: true,
    job_updates: true,
    pause: true,
    pause_resume: true,
    heartbeat: true,
    worker_registry: true,
    progress: true,
    results: true,
    checkpoints: true,
    cron: true,
    cron_jobs: true,
    workflows: true,
    unique_jobs: true,
    // A version is kept with its job and decides the schema, but does not choose a worker.
    job_versioning: false,
    fair_scheduling: true,
    schemas: true,
    schema_validation: true,
    rate_limiting: true,
    backpressure: true,
    events: true,
    realtime: true,
    webhooks: true,
    multi_tenancy: false,
  },
  limits: LIMITS,
};

/** Routes from the root on: they are outside `/ojs/v1`, or aliases that old clients look for elsewhere. */
export const systemRoutes = serve(contract.system, {
  manifest: showManifest,
  health,
  ready,
  healthOfProtocol: health,
  healthOfOld: health,
  queues: listQueues,
  deadLetters: (c) => listDeadLetters(c),
  workers: (c) => listWorkers(c),
});

function showManifest(c: AppContext) {
  const [manifest, health] = ['/ojs/manifest', '/ojs/v1/health'];
  const base = new URL(`${mountPrefix(c)}/ojs/v1`, c.req.url);
  return json(c, { ...MANIFEST, endpoints: { base_url: base.href, manifest, health } });
}

export const surroundingRoutes = serve(contract.surroundings, { middleware: showMiddleware });

export const adminSystemRoutes = serve(contract.adminSystem, {
  config: showConfiguration,
  configHere: showConfiguration,
  // A reset clears the log too.
  reset,
  previewRetry: previewed,
});

/** Needs no key, so it costs the same however frequent it is: {@link ping}. */
async function health(c: AppContext) {
  const now = Date.now();
  const common = { version: VERSION, uptime_seconds: uptime(now) };
  const known = await ping(c.env, now, (error) => {
    console.error(`${c.get('requestId')} health check failed:`, error);
  });
  const trouble = known.ok ? (dailyLimitUsedUp(now) ?? known.value.trouble) : known.error;
  if (!known.ok || trouble) {
    const { code, message, headers } = trouble as NonNullable<DirectoryHealth['trouble']>;
    const status = known.ok ? ('limited' as const) : ('unreachable' as const);
    const backend = { type: 'durable-objects', status, reason: { code, message } };
    return json(c, { status: 'unhealthy' as const, ...common, backend }, 503, { 'Retry-After': '5', ...headers });
  }
  const { total, stale } = known.value.workers;
  return json(c, {
    status: 'ok' as const,
    ...common,
    backend: { type: 'durable-objects', status: 'ok' as const },
    queues: known.value.queues,
    workers: { total, active: total - stale, stale },
  });
}

/** As {@link health}, and 503 while the variables of the deployment are wrong: no request would be served. */
async function ready(c: AppContext) {
  try {
    readAccess(c.env);
    readConfig(c.env);
  } catch (error) {
    const problem = apiErrorData(error)?.message;
    if (problem === undefined) throw error;
    const uptime_seconds = uptime(Date.now());
    return json(c, { status: 'unhealthy' as const, version: VERSION, uptime_seconds, problem }, 503);
  }
  return await health(c);
}

async function reset(c: AppContext) {
  if (!readConfig(c.env).testHooks) throw notFound('route', c.req.path, 'TEST_HOOKS is not "true" in this deployment.');
  return json(c, { reset: true as const, queues: await resetAll(c.env) });
}

async function previewed(c: AppContext) {
  const body = await readBody(c);
  const preview = previewRetry(body, { now: Date.now(), variables: readConfig(c.env).retryVariables });
  return json(c, preview as contract.RetryPreview);
}

type ShownStep = Pick<MiddlewareStep, 'name' | 'description'>;

/** The server's own steps around a job: nothing can be registered. */
const ENQUEUE: readonly ShownStep[] = [
  { name: 'authentication', description: 'The key, and the scope that the route asks for.' },
  { name: 'body_limit', description: 'Size, encoding and nesting of the request.' },
  { name: 'envelope_validation', description: 'Each member of the job, against the rules of the envelope.' },
  { name: 'trace_context', description: 'A job without a traceparent joins the trace of its request.' },
  { name: 'schema_validation', description: 'The arguments, against the schema of the type; the queue may be strict.' },
  { name: 'idempotency', description: 'A request that is sent again under its Idempotency-Key gets the first answer.' },
  { name: 'unique_jobs', description: 'The unique policy of the job, in its queue or across queues.' },
  { name: 'backpressure', description: 'The bounds of the queue: jobs, bytes, storage, allowed types.' },
];

const EXECUTION: readonly ShownStep[] = [
  { name: 'rate_limits', description: 'Limits of the queue and of the key that the job counts under.' },
  { name: 'lease', description: 'The attempt is counted and leased before its runner sees the job.' },
  { name: 'execution_timeout', description: 'An attempt that takes too long ends as a failed one.' },
  { name: 'retry_policy', description: 'Decides what follows a failed attempt: retry, discard or dead letter.' },
];

const SIGNATURE: ShownStep = { name: 'signature', description: 'Calls to URLs are signed with TARGET_SECRET.' };

function showMiddleware(c: AppContext) {
  const isRemote = readConfig(c.env).targets.some((target) => target.isRemote);
  const execution = [...EXECUTION, ...(isRemote ? [SIGNATURE] : [])];
  return json(c, { enqueue: numbered('enqueue', ENQUEUE), execution: numbered('execution', execution) });
}

const numbered = (phase: MiddlewareStep['phase'], steps: readonly ShownStep[]): MiddlewareStep[] =>
  steps.map((step, index) => ({ ...step, phase, order: index + 1 }));
