/** What the code of the deployment declares, what of it is in effect, and what operators have changed. */
import type { Spreading, Time } from './common';
import type { QueueConfig } from './queues';
import type { OverrideInForce } from './rate-limits';
import { get, post } from './route';

/** As declared, `changed` or `deleted` by an operator, or `pending`: not in effect yet. */
export type DeclaredState = 'declared' | 'changed' | 'deleted' | 'pending';

/** A webhook or an alert rule that the code declares. */
export interface DeclaredObserver {
  name: string;
  state: DeclaredState;
  /** Under which it is found. */
  id?: string;
  active?: boolean;
}

/** A schedule that the code declares. */
export interface DeclaredCron {
  name: string;
  state: DeclaredState;
  enabled?: boolean;
}

/** A queue that the code declares. */
export interface DeclaredQueue {
  name: string;
  declared: QueueConfig;
  /** Settings that an operator made. */
  operator: QueueConfig;
  /** Those of them that go before those of the code, in the wire's names. */
  changed: string[];
}

/** Limits of a key that the code declares, and what an operator put in their place. */
export interface DeclaredLimit {
  key: string;
  declared: OverrideInForce;
  override?: OverrideInForce;
}

/** What the code declares, and what of it holds. */
export interface Deployment {
  version: string;
  /** Where its data lies: `eu`, `us`, `fedramp`, `fedramp-high`; null: anywhere. */
  data_location: string | null;
  /** Of all that is declared. */
  digest: string;
  /** Is all of it in effect? */
  in_effect: boolean;
  applied_at: Time | null;
  /** Job types of the handlers in the Worker of the queue. */
  handlers: string[];
  /** At most 200 queues. */
  queues: DeclaredQueue[];
  queues_total: number;
  limits: DeclaredLimit[];
  crons: DeclaredCron[];
  webhooks: DeclaredObserver[];
  alerts: DeclaredObserver[];
  /** What could not be put into effect, and why; it is tried again. */
  problems: string[];
}

export interface DeploymentApplied extends Deployment, Spreading {}

/** What is put back as it is declared, whatever an operator did to it: names, or all. */
export interface DeploymentReset {
  reset_crons?: readonly string[] | true;
  reset_webhooks?: readonly string[] | true;
  reset_alerts?: readonly string[] | true;
}

/** Below `/ojs/v1/admin`. */
export const deployments = {
  /** Shows what the code declares, what is in effect, and what operators changed. */
  show: get<{ 200: Deployment }>('/deployment', { asItIs: true }),
  /** Applies what the code declares. */
  apply: post<{ body: DeploymentReset; 200: DeploymentApplied }>('/deployment/apply', { audit: 'deployment.apply' }),
};
