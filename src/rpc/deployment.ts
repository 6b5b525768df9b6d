/** What the code of a deployment declares, as the directory keeps it. */
import type { LimitOverrides } from '../job/limits/overrides';
import type { QueueConfig } from '../settings';

/** Webhooks and alert rules that the code declares, by name: each as it was put into effect, as text. */
export interface Observers {
  webhooks?: Record<string, string | null>;
  alerts?: Record<string, string | null>;
  /** What could not be put into effect, and why. It is tried again. */
  problems?: string[];
}

/** What was put into effect last. */
export interface StoredDeclaration extends Observers {
  /** Names the whole declaration: another name means that the code says something else. */
  digest: string;
  /** Epoch ms. */
  applied_at: number;
  queues: Record<string, QueueConfig>;
  limits: LimitOverrides;
  /** Schedules by name, as applied (JSON): one that differs or is gone is an operator's. null: the name was taken. */
  crons: Record<string, string | null>;
}
