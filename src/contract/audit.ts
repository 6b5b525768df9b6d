/** The log of what operators have changed. */
import type { Page, PageQuery, Time } from './common';
import { get } from './route';

/** How the actor was known: `key_id` of a key made at run time, `subject` of a login. */
interface AuditVia {
  via?: 'key' | 'login' | 'mcp';
  key_id?: string;
  subject?: string;
}

/** A write of an operator. */
export interface AuditEntry {
  id: string;
  at: Time;
  /** Whose key it was. `key_hint` tells keys without a name apart; null: none was asked for. */
  actor: { name: string | null; role: string; key_hint: string | null } & AuditVia;
  /** Such as `queue.pause`. */
  action: string;
  /** What was changed: the name of a queue, the id of a job, … */
  target: string | null;
  /** Which jobs were meant, where the request said so by conditions or by a list. */
  filter: unknown;
  /** What the request wanted changed. */
  change: unknown;
  /** How many were changed, where that was known. */
  count: number | null;
  /** The operation that continues after the answer. */
  operation_id: string | null;
  /** HTTP status of the answer. */
  status: number;
  request_id: string;
  /** An agent's tool made it; absent: a request of its own. */
  via?: 'mcp';
  /** The header `X-Audit-Reason` of the request. */
  reason: string | null;
}

export type AuditList = Page<AuditEntry>;

interface AuditQuery extends PageQuery {
  /** Name of the key, or its hint. */
  actor?: string;
  /** `queue.pause`, or `queue.*`; several are separated by commas. */
  action?: string;
  queue?: string;
  /** The id of a job. */
  job?: string;
  /** A time, or how long ago that was. */
  since?: string;
  until?: string;
}

/** Below `/ojs/v1/admin`. */
export const audit = {
  /** Lists changes made by operators, newest first. */
  list: get<{ query: AuditQuery; 200: AuditList }>('/audit'),
};
