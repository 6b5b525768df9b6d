/** Alert rules over RPC: the directory has the rules and hears from the queues how they stand. */
import type { AlertMembers } from '../job/alert/parse';
import type { AlertState, StoredAlert } from '../job/alert/rule';
import type { Outcome } from '../job/errors';

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

export interface AlertsApi {
  alerts(): Promise<AlertView[]>;
  alert(id: string): Promise<AlertView | null>;
  /** 409 when there are too many; 400 when the subscription does not exist. */
  createAlert(members: AlertMembers): Promise<Outcome<ChangedAlert>>;
  /** 404, 400. */
  changeAlert(id: string, members: AlertMembers): Promise<Outcome<ChangedAlert>>;
  /** @returns whether there was one */
  deleteAlert(id: string): Promise<boolean>;
  /** A queue tells how a rule stands there. */
  noteAlert(id: string, queue: string, state: AlertState): Promise<void>;
}
