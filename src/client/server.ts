import type * as deployment from '../contract/deployment';
import type * as system from '../contract/system';
import { jsonOf, type Moment, momentText } from '../producer/job';
import type { Named } from '../producer/names';
import type { Requests } from './requests';

export type Health = Named<system.Healthy> | Named<system.Unhealthy>;

export type Manifest = Named<system.Manifest>;

type PreviewRequest = Named<system.RetryPreviewRequest>;

export type RetryPreviewRequest = Omit<PreviewRequest, 'failure'> & {
  /** A failure of run `from` to decide about. */
  failure?: Omit<NonNullable<PreviewRequest['failure']>, 'retryAt'> & { retryAt?: Moment };
};

export type RetryPreview = Named<system.RetryPreview>;

/** Declared things to reset, whatever an operator changed: names, or all. */
export type Reset = Named<deployment.DeploymentReset>;

/** Members that a server of an earlier version does not know. */
type Later = 'webhooks' | 'alerts' | 'problems' | 'digest';

type Applied = Named<deployment.DeploymentApplied>;

/** What the code of the deployment declares, and what of it holds. */
export type Deployment = Omit<Applied, Later> & Partial<Pick<Applied, Later>>;

export interface Server {
  /** The deployment's health, also when unhealthy. Needs no key. @throws {UnavailableError} without an answer */
  health(): Promise<Health>;
  /** What it offers: conformance level, extensions, limits. */
  manifest(): Promise<Manifest>;
  /** What the code declares, what of it holds, and what operators changed. */
  deployment(): Promise<Deployment>;
  /** Applies what the code declares, as the first event after a deploy does. @param reset to declared values */
  applyDeployment(reset?: Reset): Promise<Deployment>;
  /**
   * Shows the effect of a retry policy, without a job.
   * @throws {InvalidJobError} for a policy that is none
   * @example
   * const { delays } = await tocsin.server.previewRetry({ policy: { preset: 'sidekiq' }, attempts: 25 });
   */
  previewRetry(request: RetryPreviewRequest): Promise<RetryPreview>;
}

export const createServer = ({ ask, read }: Requests): Server => ({
  health: () => ask('GET', '/health', 'status', 'the health', undefined, { answers: [503] }),
  manifest: () => read('/ojs/manifest', 'capabilities', 'the manifest'),
  deployment: () => read('/admin/deployment', 'inEffect', 'the deployment'),
  applyDeployment: async (reset = {}) =>
    ask('POST', '/admin/deployment/apply', 'inEffect', 'the deployment', jsonOf(reset, 'The request')),
  previewRetry: async (request) => {
    const { failure } = request;
    const retryAt = momentText(failure?.retryAt, 'failure.retryAt');
    const body = jsonOf({ ...request, failure: failure && { ...failure, retryAt } }, 'The policy');
    return await ask('POST', '/admin/retry/preview', 'delays', 'the preview', body);
  },
});
