/** What the code of a deployment declares, as the directory keeps it. */
import type { LimitOverrides } from '../job/limits/overrides';
import type { QueueConfig } from '../job/settings';

/** What was put into effect last. */
export interface StoredDeclaration {
  /** Names the whole declaration: another name means that the code says something else. */
  digest: string;
  /** Epoch ms. */
  applied_at: number;
  queues: Record<string, QueueConfig>;
  limits: LimitOverrides;
  /**
   * Schedules by name: each as it was put into effect, as JSON. An entry that is other than that, or gone, was changed by an
   * operator. null: there was one of the same name already.
   */
  crons: Record<string, string | null>;
}
