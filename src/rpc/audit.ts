/** The log of what operators have changed: one entry for each write. Times in epoch ms. */

/** Who it was: the key that was presented. */
export interface AuditActor {
  name: string | null;
  role: string;
  /** Tells keys without a name apart; null: none was asked for. */
  key_hint: string | null;
}

/** A write by an operator. */
export interface AuditEntry {
  at: number;
  actor: AuditActor;
  /** Such as `queue.pause`; the routes name theirs. */
  action: string;
  /** What it was done to: the name of a queue, a schedule or a worker, the id of a job or a workflow. */
  target: string | null;
  queue: string | null;
  job: string | null;
  /** Which jobs were meant, where the request said so by conditions or by a list. */
  filter: unknown;
  /** The changes that the request wanted, without its filter. */
  change: unknown;
  /** How many jobs, workers or schedules were changed by the time of the answer. */
  count: number | null;
  /** The operation that continues after the answer. */
  operation_id: string | null;
  /** HTTP status of the answer. */
  status: number;
  request_id: string;
  /** What the operator gave as the reason. */
  reason: string | null;
}

/** An entry with its number; numbers rise. */
export interface StoredAudit extends AuditEntry {
  id: number;
}

/** Asks for entries, the newest first. */
export interface AuditRequest {
  /** The name of a key, or its hint. */
  actor?: string;
  /** Each whole, or its beginning followed by `*`. */
  actions?: string[];
  queue?: string;
  job?: string;
  since?: number;
  until?: number;
  offset: number;
  limit: number;
}

export interface AuditPage {
  entries: StoredAudit[];
  /** How many match in all. */
  total: number;
}
