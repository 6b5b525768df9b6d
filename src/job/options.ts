/** The options of a job and their properties; no other file lists them. Types are in {@link JobOptions}. */
import type { JobOptions } from './wire';

/** Queue of a job that names none. */
export const DEFAULT_QUEUE = 'default';

/** What becomes of an option. What is not said is not so. */
export interface OptionFacts {
  stored?: true;
  shown?: true;
  /** It may change while the job waits; `itself`: by its own code. `plain`: replaced as a whole, removed by null. */
  patch?: 'plain' | 'itself';
  /** It is a point in time: stored as epoch ms, and not for a job that is made of this one. */
  moment?: true;
  /** What the server makes of it is not what was sent: the briefest answer to an enqueue says it. */
  receipt?: true;
  /** It is valid next to `options` only. */
  beside?: true;
  /** The client has no such option: it is another name, or another protocol's. */
  foreign?: true;
}

/** In the order in which they are read: what an option depends on stands before it. */
export const JOB_OPTIONS = {
  queue: {},
  priority: { patch: 'itself' },
  pending: {},
  scheduled_at: { stored: true, moment: true, receipt: true, patch: 'itself', foreign: true },
  // Another name of the same.
  delay_until: { moment: true, patch: 'itself' },
  expires_at: { stored: true, moment: true, receipt: true, patch: 'itself' },
  timeout_ms: { stored: true, shown: true, patch: 'plain' },
  visibility_timeout_ms: { stored: true, shown: true },
  // Shown with the policy that they make with those of the queue and the deployment.
  retry: { stored: true, patch: 'itself' },
  max_attempts: { stored: true, patch: 'itself' },
  // Every job has it.
  meta: {},
  tags: { stored: true, shown: true, patch: 'plain' },
  retention: { stored: true, shown: true, receipt: true, patch: 'itself' },
  target_url: { stored: true, shown: true },
  unique: { stored: true, shown: true },
  rate_limit: { stored: true, shown: true },
  group: { stored: true, shown: true },
  schema: { stored: true, shown: true, beside: true },
  version: { stored: true, shown: true, beside: true },
  metadata: { stored: true, shown: true, foreign: true },
} as const satisfies Record<keyof JobOptions, OptionFacts>;

export type OptionName = keyof typeof JOB_OPTIONS;

export type OptionsThat<Fact extends keyof OptionFacts, Value = unknown> = {
  [Name in OptionName]: (typeof JOB_OPTIONS)[Name] extends { [F in Fact]: Value } ? Name : never;
}[OptionName];

export const OPTION_NAMES = Object.keys(JOB_OPTIONS) as OptionName[];

export const factsOf = (name: OptionName): OptionFacts => JOB_OPTIONS[name];

/** The options of which this is so, or of which it is this value, in the order of the table. */
export function optionsThat<Fact extends keyof OptionFacts, Value extends OptionFacts[Fact]>(
  fact: Fact,
  value?: Value,
): OptionsThat<Fact, Value>[] {
  const isSo = (name: OptionName) => (value === undefined ? fact in factsOf(name) : factsOf(name)[fact] === value);
  return OPTION_NAMES.filter(isSo) as OptionsThat<Fact, Value>[];
}
