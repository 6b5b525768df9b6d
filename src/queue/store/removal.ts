/** The deletion of a queue as it is stored: a fact of `meta`. */
import type { RemovalRequest } from '../../rpc/operations';

export interface Removal extends RemovalRequest {
  /** Epoch ms. */
  at: number;
  jobs_affected: number;
  /** Steps of moving so far. */
  steps?: number;
  moving?: Moving;
}

export interface Moving {
  /** Names the step for the target. */
  name: string;
  keys: number[];
  /** How many of them wait to be activated. */
  pending: number[];
}
