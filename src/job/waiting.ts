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

export interface WaitingFor {
  reason: WaitingReason;
  /** When this began, as well as it can be known; epoch ms. */
  since: number;
  /** When it ends by itself, if that is known; epoch ms. */
  until?: number;
  /** A sentence or two for a human: what is in the way, and what to do. */
  detail: string;
  /** The handler that is down. */
  target?: string;
  /** Also the name of a run. */
  signal?: string;
  /** The job that it waits for: of its group, or of a run. */
  job_id?: string;
  /** The limit key that the detail names. */
  key?: string;
}

/** Why a job waits. @param since epoch ms @param until absent: unknown */
export function waiting(reason: WaitingReason, detail: string, since: number, until?: number | undefined): WaitingFor {
  return { reason, since, ...(until !== undefined && { until }), detail };
}

/** The key in the detail of a wait, marked by words, so that redacting a one-letter key replaces nothing else. */
export const namedKey = (key: string) => `the key ${key}`;
export const namedGroup = (group: string) => `the group ${JSON.stringify(quote(group))}`;
export const NAMED_GROUP = /the group ("(?:[^"\\]|\\.)*")/;

export const overridePath = (key: string) => `/rate-limits/${key}/override`;
