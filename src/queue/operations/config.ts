/**
 * Settings in layers: what a queue says itself, over what the deployment says for all its queues, over what is built in.
 * A layer is compared member by member; only the members of `retention` and `dead_letter` count one by one.
 */
import type { LimitOverrides } from '../../job/limits/overrides';
import type { QueueConfig } from '../api';

/** A change of settings; `null` members return to the layer below. */
export type SettingsChange = { [K in keyof QueueConfig]?: QueueConfig[K] | null };

/** What the deployment says for all queues, and what operators say for the keys that limit jobs in them. */
export interface QueueDefaults {
  /** Rises with each change, so that a queue knows which of two is the later one. */
  version: number;
  config: QueueConfig;
  /** What holds in the place of the limits of keys; some of it may have ended. */
  overrides?: LimitOverrides;
}

/** One layer after a change: what the change does not name stays. */
export function changed(config: QueueConfig, change: SettingsChange): QueueConfig {
  const merged: Record<string, unknown> = { ...config };
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete merged[name];
    else if (isNested(name)) merged[name] = Object.assign({}, merged[name], value);
    else if (value !== undefined) merged[name] = value;
  }
  return merged as QueueConfig;
}

/** What holds where `own` lies over `lower`. */
export function over(own: QueueConfig, lower: QueueConfig | undefined): QueueConfig {
  return lower ? changed(lower, own) : own;
}

function isNested(name: string): boolean {
  return name === 'retention' || name === 'dead_letter';
}
