/**
 * How full the object is. A full one cannot even settle jobs, so pruning and refusals leave room for what is under
 * way:
 *
 *     0 ───────────── prune down to here ── prune from here ───────── refuse new jobs ── bound
 *                            75 %                80 %                       95 %
 *
 * Pages in use count, without those freed by deletes.
 */
import type { StorageUse } from '../../contract/queues';
import { ApiError } from '../../job/errors';
import type { Configuration } from './configuration';

const PRUNE_TO = 0.75;
const PRUNE_FROM = 0.8;
const REFUSE_FROM = 0.95;

/** Seconds after which a refused producer may try again. */
const RETRY_AFTER_S = 5;

/** More than one transaction writes, in bytes. */
const MOST_AT_ONCE = 128 * 1024 * 1024;

/** The size of the object, checked once in a transaction if there may be little room. */
export class StorageGauge {
  bytes = 0;
  /** For this many transactions there is room enough below this bound, whatever they write. */
  private sparedFor: { transactions: number; bound: number } = { transactions: 0, bound: 0 };

  constructor(private readonly sql: Pick<SqlStorage, 'databaseSize'>) {}

  /** Checks the size unless it cannot matter yet: it takes as long as writing a small job. @param bound in bytes */
  watch(bound: number): void {
    if (this.sparedFor.bound === bound && this.sparedFor.transactions-- > 0) return;
    this.sparedFor = { transactions: Math.floor((bound - this.measure()) / MOST_AT_ONCE), bound };
  }

  measure(): number {
    this.bytes = this.sql.databaseSize;
    return this.bytes;
  }
}

interface Watched {
  readonly config: Pick<Configuration, 'maxStorageBytes'>;
  readonly store: { readonly storage: StorageGauge };
}

/** Must the archive be pruned though its retention is not over? Asked once in each transaction. */
export function mustPrune(q: Watched): boolean {
  q.store.storage.watch(PRUNE_FROM * q.config.maxStorageBytes);
  return needsPruning(q);
}

const needsPruning = (q: Watched): boolean => q.store.storage.bytes > PRUNE_FROM * q.config.maxStorageBytes;

export const isPruned = (q: Watched): boolean => q.store.storage.measure() <= PRUNE_TO * q.config.maxStorageBytes;

export function storageUse(q: Watched): StorageUse {
  const bytes = q.store.storage.measure();
  const max_bytes = q.config.maxStorageBytes;
  const state = isFull(q) ? 'full' : needsPruning(q) ? 'pruning' : 'ok';
  return { bytes, max_bytes, state };
}

const isFull = (q: Watched): boolean => q.store.storage.bytes > REFUSE_FROM * q.config.maxStorageBytes;

/** The code of the refusal: a client that must not lose the job sends it again. */
export const STORAGE_FULL = 'storage_full';

/** @throws {ApiError} 503 `storage_full` while there is room only for what is under way */
export function refuseWhenFull(q: Watched & { readonly name: string }): void {
  if (!isFull(q)) return;
  throw new ApiError({
    status: 503,
    code: STORAGE_FULL,
    message: `The storage of queue ${q.name} is full; nothing was enqueued.`,
    retryable: true,
    details: { queue: q.name, bytes: q.store.storage.bytes, max_bytes: q.config.maxStorageBytes },
    headers: { 'Retry-After': String(RETRY_AFTER_S) },
  });
}
