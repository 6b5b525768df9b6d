/** What a worker is told in answer to a heartbeat. */
import type { Directive } from './workers';

/** A heartbeat's answer. */
export interface HeartbeatAnswer {
  /** What the worker should do. */
  state: Directive;
  /** Jobs whose leases were extended. */
  jobsExtended: string[];
  /** Named jobs that were cancelled: the worker may stop them. */
  jobsCancelled: string[];
  /** Named jobs that it no longer holds for another reason: their reports would be refused. */
  jobsLost: string[];
  serverTime: string;
}
