/** Why a waiting job does not run (`docs/operate/why-waiting.md`). Never rename a reason: clients branch on them. */

import { quote } from './text';

/** Every reason, in the order of the checks: the first that applies is shown. */
export const WAITING_REASONS = [
  'batch_undecided',
  'pending',
  'snoozed',
  'signal',
  'run',
  'delayed',
  'retry',
  'queue_paused',
  'maintenance',
  'group_paused',
  'group',
  'key_limit',
  'no_handler',
  'handler_down',
  'chunk',
  'behind',
  'concurrency',
  'queue_limit',
  'starting',
  'no_worker',
] as const;

export type WaitingReason = (typeof WAITING_REASONS)[number];

/** What is in the way of a job, with times as they are written there. */
export interface Waiting<Time> {
  reason: WaitingReason;
  /** When this began, as well as the queue knows. */
  since: Time;
  /** When it ends by itself, if that is known. */
  until?: Time;
  /** What is in the way and what to do, for a human. */
  detail: string;
  /** With `handler_down`: the name of the target. */
  target?: string;
  /** With `signal`: the name of the signal. With `run`: that of the run. */
  signal?: string;
  /** With `group`: the job of the same group that has to end first. With `run`: the job that must end. */
  job_id?: string;
  /** The limit key that `detail` names: that which is used up. */
  key?: string;
  /** The group that `detail` names. */
  group?: string;
}

/** Times in epoch ms. */
export interface WaitingFor extends Waiting<number> {}

/** Why a job waits. @param since epoch ms @param until absent: unknown */
export function waiting(reason: WaitingReason, detail: string, since: number, until?: number | undefined): WaitingFor {
  return { reason, since, ...(until !== undefined && { until }), detail };
}

/** The names in the detail of a wait, marked by words, so that redacting those of one letter replaces nothing else. */
export const namedKey = (key: string) => `the key ${key}`;
export const namedGroup = (group: string) => `the group ${JSON.stringify(quote(group))}`;
export const overridePath = (key: string) => `/rate-limits/${key}/override`;
