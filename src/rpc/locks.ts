/** What a lock object answers over RPC. As with queues, every method takes the object's name first. */
import type { Outcome } from '../job/errors';

/** A fingerprint that an enqueue wants for a job in `queue`. */
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
  /** The reservation is over after so long, ms; at most {@link MAX_RESERVATION_MS}. */
  ttl_ms: number;
  /** Give up waiting after so long, ms. */
  wait_ms: number;
  /** If it has to wait, be told when the one before is done, without a reservation: its job may settle the matter. */
  peek: boolean;
}

/** An enqueue of which nobody knows whether it is still on its way to `queue`. */
export interface Doubt extends Wanted {
  ticket: string;
  coordinator: string;
}

export interface Reservation {
  /** False after a peek: nothing is reserved. */
  granted: boolean;
  /** Queues that may have a job with one of the fingerprints already. */
  holders: Wanted[];
  /** To be decided (`batchDecision` of the coordinator) before anything is concluded from what the queues hold. */
  doubts: Doubt[];
}

export interface ReleaseRequest {
  ticket: string;
  /** Is it known what became of the enqueue? If not, whoever comes next has it decided. */
  settled: boolean;
  /** Tickets that were decided on the way. */
  decided: string[];
  /** Holders that turned out to have no such job. */
  vacant: Wanted[];
}

export const MAX_RESERVATION_MS = 30_000;

export interface UniqueLockApi {
  /** Reserves all fingerprints, or waits until they are free; 503 when the wait is over. */
  reserve(request: ReserveRequest): Promise<Outcome<Reservation>>;
  /** Ends a reservation. One that is over already is ended again without harm. */
  release(request: ReleaseRequest): Promise<void>;
  /** Register only: notes a lock object in use. */
  register(name: string): Promise<void>;
  /** Register only: names of the lock objects in use. */
  shards(): Promise<string[]>;
  /** Empties the object. Only reachable with `TEST_HOOKS`. */
  reset(): Promise<void>;
}
