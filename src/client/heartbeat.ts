/** The answer to a worker's heartbeat. */
import type * as contract from '../contract/pull';
import type { Named } from '../producer/names';

/** A heartbeat's answer. */
export type HeartbeatAnswer = Omit<Named<contract.HeartbeatAnswer>, 'acknowledged'>;
