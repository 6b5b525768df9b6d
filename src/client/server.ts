/** The deployment through the client: its health, what it offers, and a preview of retry policies. */
import type { Duration, RetryPolicy } from '../job/wire';
import { shaped } from './answers';
import { jsonOf, type Moment, momentText } from './job';
import type { Requests } from './requests';

/** The health of the deployment. */
export type Health =
  | {
      status: 'ok';
      version: string;
      uptime_seconds: number;
      backend: { type: string; status: string };
      queues: { total: number; paused: number };
      workers: { total: number; active: number; stale: number };
    }
  | { status: 'unhealthy'; version: string; uptime_seconds: number; backend: { type: string; status: string } };

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
  limits: Record<string, number>;
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
    retry_at?: Moment;
    crash?: boolean;
    visibility_expired?: boolean;
    no_handler?: boolean;
  };
}

/** The effect of a policy. */
export interface RetryPreview {
  /** All layers merged, durations in ISO 8601. */
  effective: RetryPolicy;
  delays: { failed_executions: number; delay_ms: number; min_ms: number; max_ms: number; cumulative_ms: number }[];
  /** What happens after the failure, if one was given. */
  decision?: { outcome: 'retry'; delay_ms: number } | { outcome: 'discarded' | 'dead_letter'; reason: string };
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
      failure: failure && { ...failure, retry_at: momentText(failure.retry_at, 'failure.retry_at') },
    };
    const answer = await this.requests.safely('POST', '/admin/retry/preview', jsonOf(body, 'The policy'));
    return shaped<RetryPreview>(answer, 'delays', 'the preview');
  }
}
