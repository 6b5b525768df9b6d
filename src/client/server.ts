import type * as deployment from '../contract/deployment';
import type * as system from '../contract/system';
import { jsonOf, type Moment, momentText } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import type { Requests } from './requests';

/** The health of the deployment. */
export type Health = Named<system.Healthy> | Named<system.Unhealthy>;

/** What the deployment offers. */
export type Manifest = Named<system.Manifest>;

type PreviewRequest = Named<system.RetryPreviewRequest>;

export type RetryPreviewRequest = Omit<PreviewRequest, 'failure'> & {
  /** A failure of run `from` to decide about. */
  failure?: Omit<NonNullable<PreviewRequest['failure']>, 'retryAt'> & { retryAt?: Moment };
};

/** The effect of a policy. */
export type RetryPreview = Named<system.RetryPreview>;

/** Declared things to reset, whatever an operator changed: names, or all. */
export type Reset = Named<deployment.DeploymentReset>;

/** Members that a server of an earlier version does not know. */
type Later = 'webhooks' | 'alerts' | 'problems' | 'digest';

type Applied = Named<deployment.DeploymentApplied>;

/** What the code of the deployment declares, and what of it holds. */
export type Deployment = Omit<Applied, Later> & Partial<Pick<Applied, Later>>;

export class Server {
  constructor(private readonly requests: Requests) {}

  /** The deployment's health, also when unhealthy. Needs no key. @throws {UnavailableError} without an answer */
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
   * Puts into effect what the code declares; the first event after a deploy does so too. @param reset to declared
   * values
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
