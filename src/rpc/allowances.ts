/** Allowances: the limits of a key over all queues, leased in parts by its desk, a lock object of its name. */
import type { LeasedToQueue } from '../contract/rate-limits';
import type { LimitOverride, Limits } from '../job/limits/policy';

/** Before the key, in the name of its desk. No other lock object has a space in its name. */
export const DESK_PREFIX = 'allowance ';

/** What replaces the limits that jobs name, as a queue or a desk received it. */
export interface KeySettings {
  /** That of the settings of all queues: the later one holds. */
  version: number;
  /** An operator's override; it may have ended. */
  override?: LimitOverride;
  /** What the deployment's code declares. */
  declared?: LimitOverride;
}

export interface DeclaredLimits {
  limits: Limits;
  /** When, epoch ms: the later ones hold. */
  at: number;
}

/** What a queue asks of a desk, and what it gives back. */
export interface LeaseRequest {
  queue: string;
  /** As the desk called it. Absent: the queue remembers nothing of what it holds. */
  session?: number;
  /** Rises with each request of a session. An earlier one that arrives late changes nothing. */
  number: number;
  declared?: DeclaredLimits;
  settings: KeySettings;
  /** Attempts that run now. */
  running: number;
  /** The queue no longer has these: slots; starts that leases left unused; the turn of a throttle. */
  back: { slots: number; starts: [lease: number, count: number][]; turn: boolean };
  wants: { slots: boolean; starts: boolean };
  /** Leases in a row of which nothing was used before they ended: the next ones last longer. */
  unused: number;
}

export interface Lease {
  session: number;
  /** All slots that it holds. */
  slots: number;
  /** Starts, beside those of earlier leases. */
  starts: number;
  /** It alone may start jobs of a throttle. */
  turn: boolean;
  /** How long starts and turn last from the sending of the request, ms. */
  lasts_ms: number;
  /** Not everything that it wants is there. When to ask again if the desk does not call before, ms from now. */
  again_ms?: number;
  /** Other queues wait: it must give back slots that are not in use beyond this number. */
  most?: number;
  /** What jobs named last, in any queue. */
  declared?: DeclaredLimits;
  settings: KeySettings;
}

/** `stale`: another session, or a request with a later number, was there before. */
export type LeaseAnswer = Lease | { stale: true };

export interface AllowanceView {
  limits: Limits;
  leased: LeasedToQueue[];
  /** When starts that are leased count no more, epoch ms; absent: none is leased. */
  resets_at?: number;
}

export interface AllowanceApi {
  lease(request: LeaseRequest): Promise<LeaseAnswer>;
  /** Null: no queue has anything of it. */
  allowance(): Promise<AllowanceView | null>;
}
