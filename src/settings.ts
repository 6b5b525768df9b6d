/** Settings in layers: the queue, the deployment, the built-in ones; `retention` and `dead_letter` by their members. */
import { MAX_DURATION_MS } from './job/duration';
import type { GroupSettings } from './job/group';
import type { LimitOverrides } from './job/limits/overrides';
import type { Limits } from './job/limits/policy';
import type { Maintenance } from './job/maintenance';
import { own } from './job/own';
import type { RetryInput, SchemaStamp } from './job/record';
import { ANY_NUMBER, type End, keepsDiscarded } from './job/retention';
import type { AlertRule } from './notifications/alert/rule';
import type { WebhookRoute } from './notifications/webhook/subscription';
import type { SchemaMode } from './schemas/misfit';

export interface QueueConfig {
  /** How many pushed jobs may run at once, 1 … 10000. Default 10. */
  concurrency?: number;
  /** Lease length in ms. Default 30 minutes. */
  visibility_timeout_ms?: number;
  default_timeout_ms?: number;
  /** The queue layer of the retry policy. */
  default_retry?: RetryInput;
  /** Retention in ms of each terminal state; see {@link boundOf} for no bound. */
  retention?: { completed?: number; discarded?: number; cancelled?: number };
  dead_letter?: { max_age?: number; max_count?: number };
  /** Limits of all its jobs together: attempts at once, starts in a period. */
  rate_limit?: Pick<Limits, 'concurrency' | 'rate'>;
  /** How its groups are served. Absent: as if there were none. */
  groups?: GroupSettings;
  /** Jobs that have not ended, at most. */
  max_depth?: number;
  /** Bytes of their bodies, at most. */
  max_bytes?: number;
  /** Bytes of the queue's object: near this, the oldest ended jobs are removed and new jobs refused. */
  max_storage_bytes?: number;
  /** What happens to a job for which there is no room. Default `reject`. */
  overflow?: 'reject' | 'drop_oldest';
  /** From this part of `max_depth` on producers are warned, 0 … 1. Default 0.8. */
  warning_threshold?: number;
  /** Types that the queue accepts; an entry may end in `*`. Default: all. */
  allowed_job_types?: string[];
  /** What becomes of jobs that do not fit the schema of their type. Default `warn`. */
  schemas?: SchemaMode;
}

const DAY_MS = 86_400_000;

/** What is built in, in ms where they are times. */
export const DEFAULTS = {
  concurrency: 10,
  visibilityMs: 30 * 60_000,
  timeoutMs: 30 * 60_000,
  retention: { completed: 7 * DAY_MS, discarded: 30 * DAY_MS, cancelled: 7 * DAY_MS },
  deadLetter: { maxAge: 180 * DAY_MS, maxCount: 10_000 },
  /** An object holds 10 GB. */
  maxStorageBytes: 9_500_000_000,
} as const;

/** What `max_storage_bytes` may be: a queue without jobs has some 200 kB, and an object holds 10 GB. */
export const STORAGE_BOUNDS = { min: 1_000_000, max: 9_500_000_000 } as const;

/** `paused`: takes jobs and gives none out. `draining`: gives out those it has and takes none. */
export type QueueMode = 'active' | 'paused' | 'draining';

export function modeOf({ paused, draining }: { paused: boolean; draining?: boolean }): QueueMode {
  return paused ? 'paused' : draining ? 'draining' : 'active';
}

/** A change of settings; `null` members return to the layer below. */
export type SettingsChange = { [K in keyof QueueConfig]?: QueueConfig[K] | null };

/** The deployment's settings for all queues, and the operators' overrides of limit keys in them. */
export interface QueueDefaults {
  /** Rises with each change, so that a queue knows which of two is later. */
  version: number;
  config: QueueConfig;
  /** Overrides of limit keys; some may have ended. */
  overrides?: LimitOverrides;
  /** What the deployment's code declares for this queue. */
  declared?: QueueConfig;
  /** What it declares for limit keys. An override that holds goes before it. */
  limits?: LimitOverrides;
  /** The webhooks of events in this queue. */
  webhooks?: WebhookRoute[];
  /** Which of its numbers must be watched. */
  alerts?: AlertRule[];
  /** The stamp of the last change to the schemas of jobs; absent: there was none. */
  schemas?: SchemaStamp;
  /** The last maintenance of the deployment; it may be over. */
  maintenance?: Maintenance;
}

/** A layer after a change: members that the change does not name stay. */
export function changed(config: QueueConfig, change: SettingsChange): QueueConfig {
  const merged: Record<string, unknown> = { ...config };
  for (const [name, value] of Object.entries(change)) {
    if (value === null) delete merged[name];
    else if (isNested(name)) merged[name] = without({ ...(own(merged, name) as object), ...(value as object) });
    else if (value !== undefined) merged[name] = value;
  }
  return merged as QueueConfig;
}

/** What holds in a queue that says nothing itself: what the code declares for it, over the settings of all queues. */
export function below(defaults: QueueDefaults | undefined): QueueConfig {
  return over(defaults?.declared ?? {}, defaults?.config);
}

export function over(own: QueueConfig, lower: QueueConfig | undefined): QueueConfig {
  return lower ? changed(lower, own) : own;
}

export const DEFAULT_WARNING = 0.8;

/** The settings over the built-in ones. Unset limits and retry policies stay absent. */
export function withBuiltIns(config: QueueConfig): QueueConfig {
  const { concurrency, visibilityMs } = DEFAULTS;
  return over(config, { concurrency, visibility_timeout_ms: visibilityMs, ...keptByDefault(config) });
}

/** How long ended jobs are kept, and how many, where no setting says so. */
function keptByDefault({ default_retry: queue }: QueueConfig): Pick<QueueConfig, 'retention' | 'dead_letter'> {
  const { retention, deadLetter } = DEFAULTS;
  if (queue && keepsDiscarded({ queue })) {
    return {
      retention: { ...retention, discarded: MAX_DURATION_MS },
      dead_letter: { max_age: MAX_DURATION_MS, max_count: ANY_NUMBER },
    };
  }
  return { retention: { ...retention }, dead_letter: { max_age: deadLetter.maxAge, max_count: deadLetter.maxCount } };
}

/** How long ended jobs are kept, and how many, in effect. Stored bounds. */
export function keptIn(config: QueueConfig): Record<Exclude<End, 'dead_letter'> | 'max_age' | 'max_count', number> {
  const { retention, dead_letter } = withBuiltIns(config);
  return { ...DEFAULTS.retention, max_age: 0, max_count: 0, ...retention, ...dead_letter };
}

/** The first setting that keeps ended jobs shorter, or fewer, after a change. @param storageBytes where none is set */
export function keepsLess(before: QueueConfig, after: QueueConfig, storageBytes?: number): string | undefined {
  const [were, are] = [keptBy(before, storageBytes), keptBy(after, storageBytes)];
  return Object.keys(are).find((name) => (are[name] as number) < (own(were, name) as number));
}

function keptBy(config: QueueConfig, storageBytes: number = DEFAULTS.maxStorageBytes): Record<string, number> {
  const { retention, dead_letter, max_storage_bytes = storageBytes } = withBuiltIns(config);
  const prefixed = (prefix: string, values: object) =>
    Object.entries(values).map(([name, value]) => [`${prefix}.${name}`, value]);
  return Object.fromEntries([
    ...prefixed('retention', retention ?? {}),
    ...prefixed('dead_letter.retention', dead_letter ?? {}),
    // The oldest go to stay below it.
    ['max_storage_bytes', max_storage_bytes],
  ]);
}

const without = (members: object): object =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== null));

const isNested = (name: string): boolean => name === 'retention' || name === 'dead_letter';
