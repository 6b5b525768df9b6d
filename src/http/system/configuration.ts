/** The effective configuration of the deployment: callers, handlers, limits, variables. Keys and secrets stay out. */

import { type Config, type Env, readAccess, readConfig } from '../../config';
import type { ConfiguredTarget, DeploymentConfig, ServerLimits, ShownVariable } from '../../contract/system';
import { type ApiKey, roleOf } from '../../job/access';
import { defined } from '../../job/envelope/fields';
import { MAX_BATCH_SIZE, MAX_ENVELOPE_BYTES, MAX_META_BYTES, MAX_RESULT_BYTES } from '../../job/envelope/names';
import { own } from '../../job/own';
import { RETRY_VARIABLES, variablesLayer } from '../../job/retry/variables';
import { withBuiltIns } from '../../job/settings';
import { directoryObject } from '../../rpc/stubs';
import { type AppContext, json } from '../context';
import { renderQueueConfig } from '../queues/config';

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
const HIDDEN = ['API_KEYS', 'HANDLERS', 'TARGET_SECRET', 'TOKEN_SECRET'] as const;

export async function showConfiguration(c: AppContext) {
  const { env } = c;
  const config = readConfig(env);
  const { apiKeys, localhost, origins } = readAccess(env);
  const defaults = (await directoryObject(env).queueDefaults())?.config ?? {};
  return json(c, {
    version: config.version,
    access: {
      open_to_localhost: localhost && apiKeys.length === 0,
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
function renderKey({ name, scopes }: ApiKey): DeploymentConfig['access']['keys'][number] {
  return { name: name ?? null, role: roleOf(scopes), scopes };
}

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
export const LIMITS: ServerLimits = {
  max_envelope_bytes: MAX_ENVELOPE_BYTES,
  max_meta_bytes: MAX_META_BYTES,
  max_result_bytes: MAX_RESULT_BYTES,
  max_batch_size: MAX_BATCH_SIZE,
};
