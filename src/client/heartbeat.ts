import type * as contract from '../contract/pull';
import type { Named } from '../producer/names';

export type HeartbeatAnswer = Omit<Named<contract.HeartbeatAnswer>, 'acknowledged'>;
