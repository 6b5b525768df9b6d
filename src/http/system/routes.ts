/** Manifest and probes. */
import { Hono } from 'hono';
import { type Env, VERSION } from '../../config';
import { inParallel } from '../../durable/parallel';
import { MAX_BATCH_SIZE, MAX_ENVELOPE_BYTES, MAX_META_BYTES, MAX_RESULT_BYTES } from '../../job/envelope/names';
import { directoryObject, queueObject } from '../../rpc/stubs';
import type { AppContext, AppEnv } from '../context';
import { deadLetterPage } from '../dead-letter/routes';
import { listQueues } from '../queues/routes';
import { json } from '../respond';
import { listWorkers } from '../workers/routes';

/** Queues looked at for the number of paused ones, and for how long the number is reused (ms). */
const PROBED_QUEUES = 100;
const PROBE_AGE_MS = 30_000;

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
    'rate-limiting',
    'backpressure',
  ],
  capabilities: {
    retries: true,
    dead_letter: true,
    delayed_jobs: true,
    priorities: true,
    batch_enqueue: true,
    bulk_operations: true,
    idempotency_keys: true,
    job_updates: true,
    pause: true,
    heartbeat: true,
    worker_registry: true,
    progress: true,
    results: true,
    checkpoints: true,
    cron: true,
    workflows: true,
    unique_jobs: true,
    rate_limiting: true,
    backpressure: true,
  },
  limits: {
    max_envelope_bytes: MAX_ENVELOPE_BYTES,
    max_meta_bytes: MAX_META_BYTES,
    max_result_bytes: MAX_RESULT_BYTES,
    max_batch_size: MAX_BATCH_SIZE,
  },
};

/** Routes from the root on: they are outside `/ojs/v1`, or aliases that old clients look for elsewhere. */
export function systemRoutes(): Hono<AppEnv> {
  const routes = new Hono<AppEnv>();
  routes.get('/ojs/manifest', (c) => json(c, MANIFEST));
  for (const path of ['/health', '/ready', '/ojs/v1/health', '/v1/health']) routes.get(path, health);
  routes.get('/v1/queues', listQueues);
  routes.get('/v1/dead-letter', (c) => deadLetterPage(c));
  routes.get('/v1/workers', (c) => listWorkers(c));
  return routes;
}

let startedAt: number | undefined;

async function health(c: AppContext): Promise<Response> {
  const now = Date.now();
  startedAt ??= now;
  const common = { version: VERSION, uptime_seconds: Math.floor((now - startedAt) / 1000) };
  try {
    const [queues, { summary }] = await Promise.all([
      countQueues(c.env, now),
      directoryObject(c.env).workers({ offset: 0, limit: 0 }),
    ]);
    return json(c, {
      status: 'ok',
      ...common,
      backend: { type: 'durable-objects', status: 'ok' },
      queues,
      workers: { total: summary.total, active: summary.total - summary.stale, stale: summary.stale },
    });
  } catch (error) {
    console.error(`${c.get('requestId')} health check failed:`, error);
    const backend = { type: 'durable-objects', status: 'unreachable' };
    return json(c, { status: 'unhealthy', ...common, backend }, 503, { 'Retry-After': '5' });
  }
}

let paused: { count: number; at: number } | undefined;

/** How many queues there are, and how many of them were paused when last looked at: a probe must not keep them awake. */
async function countQueues(env: Env, now: number): Promise<{ total: number; paused: number }> {
  const known = await directoryObject(env).list();
  if (paused === undefined || now - paused.at > PROBE_AGE_MS) {
    const stats = await inParallel(known.slice(0, PROBED_QUEUES), ({ name }) => queueObject(env, name).stats());
    paused = { count: stats.filter((outcome) => outcome.ok && outcome.value.paused).length, at: now };
  }
  return { total: known.length, paused: Math.min(paused.count, known.length) };
}
