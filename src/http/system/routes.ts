/** Manifest and probes; for operators, reset and the retry calculator. */
import { resetAll } from '../../across/reset';
import { ping } from '../../across/statistics';
import { readConfig, VERSION } from '../../config';
import { notFound } from '../../job/errors';
import { previewRetry } from '../../job/retry/preview';
import { type AppContext, json } from '../context';
import { listDeadLetters } from '../dead-letter/routes';
import { listQueues } from '../queues/routes';
import { readBody } from '../request/body';
import { mountPrefix } from '../request/path';
import { DATA, get, post, type Route } from '../route';
import { listWorkers } from '../workers/routes';
import { showConfiguration } from './configuration';
import { LIMITS } from './limits';
import { showMiddleware } from './middleware';
import { uptime } from './uptime';

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
    // A version is kept with its job and decides the schema, but no worker is chosen by it.
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
export const systemRoutes: readonly Route[] = [
  get('/ojs/manifest', showManifest),
  ...['/health', '/ready', '/ojs/v1/health', '/v1/health'].map((path) => get(path, health, { scope: 'public' })),
  get('/v1/queues', listQueues),
  get('/v1/dead-letter', (c) => listDeadLetters(c)),
  get('/v1/workers', (c) => listWorkers(c)),
];

function showManifest(c: AppContext): Response {
  const [manifest, health] = ['/ojs/manifest', '/ojs/v1/health'];
  const base = new URL(`${mountPrefix(c)}/ojs/v1`, c.req.url);
  return json(c, { ...MANIFEST, endpoints: { base_url: base.href, manifest, health } });
}

/** Routes below `/ojs/v1`. */
export const surroundingRoutes: readonly Route[] = [get('/middleware', showMiddleware)];

/** Routes below `/ojs/v1/admin`. */
export const adminSystemRoutes: readonly Route[] = [
  get('/system/config', showConfiguration),
  get('/config', showConfiguration),
  // A reset takes the log with it.
  post('/reset', reset, { ...DATA, scope: 'admin:purge' }),
  post('/retry/preview', preview, { ...DATA, scope: 'admin:read' }),
];

/** Needs no key, so it costs the same however often it is asked: {@link ping}. */
async function health(c: AppContext): Promise<Response> {
  const now = Date.now();
  const common = { version: VERSION, uptime_seconds: uptime(now) };
  const known = await ping(c.env, now, (error) => {
    console.error(`${c.get('requestId')} health check failed:`, error);
  });
  if (!known) {
    const backend = { type: 'durable-objects', status: 'unreachable' };
    return json(c, { status: 'unhealthy', ...common, backend }, 503, { 'Retry-After': '5' });
  }
  const { total, stale } = known.workers;
  return json(c, {
    status: 'ok',
    ...common,
    backend: { type: 'durable-objects', status: 'ok' },
    queues: known.queues,
    workers: { total, active: total - stale, stale },
  });
}

async function reset(c: AppContext): Promise<Response> {
  if (!readConfig(c.env).testHooks) throw notFound('route', c.req.path, 'TEST_HOOKS is not "true" here.');
  return json(c, { reset: true, queues: await resetAll(c.env) });
}

async function preview(c: AppContext): Promise<Response> {
  const body = await readBody(c);
  return json(c, { ...previewRetry(body, { now: Date.now(), variables: readConfig(c.env).retryVariables }) });
}
