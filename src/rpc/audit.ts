/** The log of what operators have changed: one entry for each write. Times in epoch ms. */
import type * as contract from '../contract/audit';

export interface AuditEntry extends Omit<contract.AuditEntry, 'id' | 'at'> {
  at: number;
  queue: string | null;
  job: string | null;
}

/** An entry with its number; numbers rise. */
export interface StoredAudit extends AuditEntry {
  id: number;
}

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
