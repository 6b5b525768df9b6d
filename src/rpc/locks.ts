/** What a lock object answers over RPC, and which one belongs to a fingerprint. */
import type { Outcome } from '../job/errors';

/** Name of the object that knows which lock objects are in use. */
export const REGISTER = 'register';

/** The lock object of a fingerprint: one of 256, so that unrelated jobs hardly ever share one. */
export const shardOf = (fingerprint: string): string => fingerprint.slice(0, 2);

/** A fingerprint that an enqueue must reserve for a job in `queue`. */
export interface Wanted {
  fingerprint: string;
  queue: string;
}

export interface ReserveRequest {
  /** UUIDv7 of this enqueue; also the id of its batch. */
  ticket: string;
  /** The queue that knows whether the enqueue happened. */
  coordinator: string;
  wanted: Wanted[];
  /** The reservation expires after this time, ms; at most {@link MAX_RESERVATION_MS}. */
  ttl_ms: number;
  /** Stop waiting after this time, ms. */
  wait_ms: number;
  /** If it must wait, return without a reservation when the one before has ended: its job may be the answer already. */
  peek: boolean;
}

/** An enqueue that may still be on its way to `queue`. */
export interface OpenTicket extends Wanted {
  ticket: string;
  coordinator: string;
}

export interface Reservation {
  /** False after a peek: nothing is reserved. */
  granted: boolean;
  /** Queues that may have a job with one of the fingerprints already. */
  holders: Wanted[];
  /** Must be decided (`batchDecision` of the coordinator) before the rows of the queues allow a conclusion. */
  open: OpenTicket[];
}

export interface ReleaseRequest {
  ticket: string;
  /** Is the outcome of the enqueue known? If not, the next enqueue has it decided. */
  known: boolean;
  /** Tickets that were decided on the way. */
  decided: string[];
  /** Queues that turned out to have no such job. */
  vacant: Wanted[];
}

export const MAX_RESERVATION_MS = 30_000;

export interface UniqueLockApi {
  /** Reserves all fingerprints, or waits until they are free; 503 when the wait is over. */
  reserve(request: ReserveRequest): Promise<Outcome<Reservation>>;
  /** Ends a reservation. Ending it twice does no harm. */
  release(request: ReleaseRequest): Promise<void>;
  /** Register only: records a lock object in use. */
  register(name: string): Promise<void>;
  /** Register only: the lock object is empty again. */
  unregister(name: string): Promise<void>;
  /** Register only: names of the lock objects in use. */
  shards(): Promise<string[]>;
  /** Empties the object. Only reachable with `TEST_HOOKS`. */
  reset(): Promise<void>;
}
