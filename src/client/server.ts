/** The deployment through the client: its health, what it offers, and a preview of retry policies. */
import type { Duration, RetryPolicy } from '../producer/envelope';
import { jsonOf, type Moment, momentText } from '../producer/job';
import { shaped } from './answers';
import type { QueueConfig } from './queue-config';
import type { LimitsInForce } from './rate-limits';
import type { Requests } from './requests';

/** The health of the deployment. */
export type Health =
  | {
      status: 'ok';
      version: string;
      uptimeSeconds: number;
      backend: { type: string; status: string };
      queues: { total: number; paused: number };
      workers: { total: number; active: number; stale: number };
    }
  | { status: 'unhealthy'; version: string; uptimeSeconds: number; backend: { type: string; status: string } };

/** What the deployment offers. */
export interface Manifest {
  specversion: string;
  ojsVersion: string;
  conformanceLevel: number;
  protocols: string[];
  backend: string;
  implementation: { name: string; version: string; language: string };
  extensions: string[];
  capabilities: Record<string, boolean>;
  limits: Record<string, number>;
}

/** A policy to try out. */
export interface RetryPreviewRequest {
  /** The job's own. */
  policy?: RetryPolicy;
  /** The layers below it. `variables` replaces the deployment's own. */
  layers?: { variables?: Record<string, string | number>; queue?: RetryPolicy; jobType?: RetryPolicy };
  /** Number of the failure in the first row. Default 1. */
  from?: number;
  /** Rows, 1 … 100. Default 10. */
  attempts?: number;
  /** The random number in [0, 1) for `delayMs`. Default 0.5. */
  random?: number;
  /** A failure of run `from` to decide about. */
  failure?: {
    code?: string;
    errorType?: string;
    errorClasses?: readonly string[];
    retryable?: boolean;
    kill?: boolean;
    retryIn?: Duration;
    retryAt?: Moment;
    crash?: boolean;
    visibilityExpired?: boolean;
    noHandler?: boolean;
  };
}

/** The effect of a policy. */
export interface RetryPreview {
  /** All layers merged, durations in ISO 8601. */
  effective: RetryPolicy;
  delays: { failedExecutions: number; delayMs: number; minMs: number; maxMs: number; cumulativeMs: number }[];
  /** What happens after the failure, if one was given. */
  decision?: { outcome: 'retry'; delayMs: number } | { outcome: 'discarded' | 'dead_letter'; reason: string };
}

/** A webhook or an alert rule that the code declares. */
export interface DeclaredObserver {
  name: string;
  state: 'declared' | 'changed' | 'deleted' | 'pending';
  id?: string;
  active?: boolean;
}

/** What is to be put back as it is declared, whatever an operator did to it: names, or all. */
export interface Reset {
  resetCrons?: readonly string[] | true;
  resetWebhooks?: readonly string[] | true;
  resetAlerts?: readonly string[] | true;
}

/** What the code of the deployment declares, and what of it holds. */
export interface Deployment {
  version: string;
  /** Is all of it in effect? */
  inEffect: boolean;
  appliedAt: string | null;
  /** Job types of the handlers in the Worker of the queue. */
  handlers: string[];
  /** `changed`: settings that an operator made; they go before those of the code. Names as on the wire. At most 200 queues. */
  queues: { name: string; declared: QueueConfig; operator: QueueConfig; changed: string[] }[];
  queuesTotal: number;
  limits: { key: string; declared: LimitsInForce; override?: LimitsInForce & { expiresAt?: string } }[];
  /** `changed`, `deleted`: by an operator; `pending`: not in effect yet. */
  crons: { name: string; state: 'declared' | 'changed' | 'deleted' | 'pending'; enabled?: boolean }[];
  /** As of schedules, with the ids under which they are found. Absent: a server that knows none. */
  webhooks?: DeclaredObserver[];
  alerts?: DeclaredObserver[];
  /** What could not be put into effect, and why; it is tried again. */
  problems?: string[];
  /** Queues that have not confirmed it yet; they are told again. */
  pendingQueues?: number;
}

/** The deployment, as `tocsin.server`. */
export class Server {
  constructor(private readonly requests: Requests) {}

  /**
   * The health of the deployment. Needs no key. An unhealthy answer is returned; only a missing one is an error.
   * @throws {UnavailableError}
   */
  async health(): Promise<Health> {
    const answer = await this.requests.safely('GET', '/health', undefined, { answers: [503] });
    return shaped<Health>(answer, 'status', 'the health');
  }

  /** What it offers: conformance level, extensions, limits. */
  async manifest(): Promise<Manifest> {
    return await this.requests.read<Manifest>('/ojs/manifest', 'capabilities', 'the manifest');
  }

  /** What the code declares, what of it holds, and what operators changed. */
  async deployment(): Promise<Deployment> {
    return await this.requests.read<Deployment>('/admin/deployment', 'inEffect', 'the deployment');
  }

  /**
   * Puts into effect what the code declares; the first event after a deploy does so too.
   * @param reset what is put back as it is declared
   */
  async applyDeployment(reset: Reset = {}): Promise<Deployment> {
    const body = jsonOf(reset, 'The request');
    const answer = await this.requests.safely('POST', '/admin/deployment/apply', body);
    return shaped<Deployment>(answer, 'inEffect', 'the deployment');
  }

  /**
   * Shows the effect of a retry policy, without a job.
   * @throws {InvalidJobError} for a policy that is none
   * @example
   * const { delays } = await tocsin.server.previewRetry({ policy: { preset: 'sidekiq' }, attempts: 25 });
   */
  async previewRetry(request: RetryPreviewRequest): Promise<RetryPreview> {
    const { failure } = request;
    const body = {
      ...request,
      failure: failure && { ...failure, retryAt: momentText(failure.retryAt, 'failure.retryAt') },
    };
    const answer = await this.requests.safely('POST', '/admin/retry/preview', jsonOf(body, 'The policy'));
    return shaped<RetryPreview>(answer, 'delays', 'the preview');
  }
}
