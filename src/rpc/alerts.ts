/** Alert rules over RPC: the directory has the rules and hears from the queues how they stand. */
import type { AlertState, StoredAlert } from '../notifications/alert/rule';

/** How a rule stands in one queue. */
export interface AlertInQueue extends AlertState {
  queue: string;
}

/** A rule and how it stands where it has ever fired. */
export interface AlertView {
  rule: StoredAlert;
  /** Those that fire first, then the last changed; the first two hundred. */
  queues: AlertInQueue[];
}

/** A rule, and how many queues have not received its change yet. */
export interface ChangedAlert extends AlertView {
  untold: number;
}
