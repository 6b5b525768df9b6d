/** The deployment: what it offers, whether it is well, its configuration; a reset and the calculator of retries. */
import type { Role, Scope } from '../access/access';
import type { ChunkSettings } from '../job/chunk';
import type { ErrorCode } from '../job/errors';
import type { PreviewRow } from '../job/retry/preview';
import type { Duration, RetryPolicy } from '../job/wire';
import type { CursorQuery } from './common';
import type { DeadLetterList, DeadLetterQuery } from './dead-letters';
import type { QueueConfig, QueueSummaryList } from './queues';
import { DATA, get, post } from './route';
import type { WorkerCounts, WorkerList } from './workers';

/** What the server takes at most. */
export interface ServerLimits {
  max_envelope_bytes: number;
  max_meta_bytes: number;
  max_result_bytes: number;
  max_batch_size: number;
}

/** What the deployment offers. */
export interface Manifest {
  specversion: string;
  ojs_version: string;
  conformance_level: number;
  protocols: string[];
  backend: string;
  implementation: { name: string; version: string; language: string };
  extensions: string[];
  capabilities: Record<string, boolean>;
  limits: ServerLimits;
  endpoints: { base_url: string; manifest: string; health: string };
}

interface HealthOfBackend<Status extends string, Backend extends string> {
  status: Status;
  version: string;
  uptime_seconds: number;
  backend: { type: string; status: Backend };
}

/** The deployment is well. */
export interface Healthy extends HealthOfBackend<'ok', 'ok'> {
  queues: { total: number; paused: number };
  workers: Pick<WorkerCounts, 'total' | 'stale'> & { active: number };
}

/** It does not reach what it stores in, cannot write there, or has used up a daily limit of the plan. */
export interface Unhealthy extends HealthOfBackend<'unhealthy', 'unreachable' | 'limited'> {
  backend: HealthOfBackend<'unhealthy', 'unreachable' | 'limited'>['backend'] & {
    /** As in the refusal of a request that fails for it. */
    reason: { code: ErrorCode; message: string };
  };
}

/** Its variables are wrong: every request that needs a key is refused. */
export interface Misconfigured {
  status: 'unhealthy';
  version: string;
  uptime_seconds: number;
  /** What is wrong, with the name of the variable. */
  problem: string;
}

/** A step that the server takes with each job. */
export interface MiddlewareStep {
  name: string;
  description: string;
  phase: 'enqueue' | 'execution';
  order: number;
}

/** What surrounds a job on its way in, and while it runs. */
export interface Middleware {
  enqueue: MiddlewareStep[];
  execution: MiddlewareStep[];
}

/** A target, as it is configured. */
export interface ConfiguredTarget {
  id: string;
  name: string;
  /** `host`: any URL of a host that is allowed. */
  kind: 'host' | 'url' | 'binding';
  /** What is mapped to it: types, or `queue/type`. */
  patterns: string[];
  /** In which form jobs are sent. */
  payload?: 'batch' | 'envelope' | 'job';
  batch_size: number;
  /** Its jobs run by the chunk. */
  batch?: ChunkSettings;
  timeout_ms: number;
  max_concurrency?: number;
  /** Queues that its handlers may enqueue to. */
  may_enqueue?: readonly string[];
}

/** A variable: whether it is set, and its value unless that is secret. */
export interface ShownVariable {
  set: boolean;
  value?: string;
}

/** The configuration in effect. Keys and secrets stay out. */
export interface DeploymentConfig {
  version: string;
  access: {
    open_to_localhost: boolean;
    allowed_origins: string[];
    /** All that is shown of a key: never the key. */
    keys: { name: string | null; role: Role; scopes: readonly Scope[] }[];
  };
  targets: ConfiguredTarget[];
  limits: ServerLimits;
  /** The settings of all queues: as they were made, and with what is built in. */
  queue_defaults: { config: QueueConfig; effective: QueueConfig };
  /** The layer of the retry policy that the variables make. */
  retry: Record<string, unknown>;
  test_hooks: boolean;
  variables: Record<string, ShownVariable>;
}

/** What a test wants gone. */
export interface ResetDone {
  reset: true;
  queues: number;
}

/** A policy to try out. */
export interface RetryPreviewRequest {
  /** The job's own. */
  policy?: RetryPolicy;
  /** The layers below it. `variables` replaces the deployment's own. */
  layers?: { variables?: Record<string, string | number>; queue?: RetryPolicy; job_type?: RetryPolicy };
  /** Number of the failure in the first row. Default 1. */
  from?: number;
  /** Rows, 1 … 100. Default 10. */
  attempts?: number;
  /** The random number in [0, 1) for `delay_ms`. Default 0.5. */
  random?: number;
  /** A failure of run `from` to decide about. */
  failure?: {
    code?: string;
    error_type?: string;
    error_classes?: readonly string[];
    retryable?: boolean;
    kill?: boolean;
    retry_in?: Duration;
    retry_at?: string;
    crash?: boolean;
    visibility_expired?: boolean;
    no_handler?: boolean;
  };
}

/** The effect of a policy. */
export interface RetryPreview {
  /** All layers merged, durations in ISO 8601. */
  effective: RetryPolicy;
  delays: PreviewRow[];
  /** What happens after the failure, if one was given. */
  decision?: { outcome: 'retry'; delay_ms: number } | { outcome: 'discarded' | 'dead_letter'; reason: string };
}

/** From the root on: outside `/ojs/v1`, or aliases that old clients look for elsewhere. */
export const system = {
  /** Lists the features of the deployment. */
  manifest: get<{ 200: Manifest }>('/ojs/manifest', { bound: 'any' }),
  /** Shows whether the deployment is healthy. */
  health: get<{ 200: Healthy; 503: Unhealthy }>('/health', { scope: 'public' }),
  /** Shows whether the deployment is ready: healthy, with valid variables. */
  ready: get<{ 200: Healthy; 503: Unhealthy | Misconfigured }>('/ready', { scope: 'public' }),
  /** Shows whether the deployment is healthy, under the path of the protocol. */
  healthOfProtocol: get<{ 200: Healthy; 503: Unhealthy }>('/ojs/v1/health', { scope: 'public' }),
  /** Shows whether the deployment is healthy, for old clients. */
  healthOfOld: get<{ 200: Healthy; 503: Unhealthy }>('/v1/health', { scope: 'public' }),
  /** Lists the queues, for old clients. */
  queues: get<{ query: CursorQuery; 200: QueueSummaryList }>('/v1/queues', { bound: 'queues' }),
  /** Lists dead letters, for old clients. */
  deadLetters: get<{ query: CursorQuery & DeadLetterQuery; 200: DeadLetterList }>('/v1/dead-letter', { bound: 'list' }),
  /** Lists the workers, for old clients. */
  workers: get<{ query: CursorQuery; 200: WorkerList }>('/v1/workers'),
};

/** Below `/ojs/v1`. */
export const surroundings = {
  /** Lists the steps around the enqueue and the run of a job. */
  middleware: get<{ 200: Middleware }>('/middleware', { bound: 'any' }),
};

/** Below `/ojs/v1/admin`. */
export const adminSystem = {
  /** Shows the configuration in effect. */
  config: get<{ 200: DeploymentConfig }>('/system/config'),
  /** Shows the configuration in effect, under another path. */
  configHere: get<{ 200: DeploymentConfig }>('/config'),
  /** Deletes everything, for tests: only if `TEST_HOOKS` is set. */
  reset: post<{ 200: ResetDone; errors: 404 }>('/reset', { ...DATA, scope: 'admin:purge' }),
  /** Previews a retry policy, without a job. */
  previewRetry: post<{ body: RetryPreviewRequest; 200: RetryPreview; errors: 422 }>('/retry/preview', {
    ...DATA,
    scope: 'admin:read',
  }),
};
