/** The handler Workers that jobs are pushed to, through the client. */
import type * as contract from '../contract/targets';
import type { Named } from '../producer/names';
import { checked, pathTo, type Requests } from './requests';

/** Does a handler take its calls? `paused`: tried again within seconds; `stopped`: within a minute. */
export type TargetState = contract.TargetState;

/** A target over all queues: in the worst state that any of them sees. */
export type TargetStatus = Named<contract.TargetStatus>;

export type TargetInQueue = Named<contract.TargetInQueue>;

/** A target, queue by queue. `nextCursor`: there are queues that were not asked. */
export type TargetDetail = Named<contract.TargetDetail>;

export type TargetResumed = Named<contract.TargetResumed>;

/** Which queues to ask. Default: the first 200. */
export interface TargetQuery {
  queues?: readonly string[];
}

export interface Targets {
  /** Every target of the deployment. */
  list(query?: TargetQuery): Promise<TargetStatus[]>;
  /** A target, queue by queue. @throws {NotFoundError} */
  get(name: string, query?: TargetQuery): Promise<TargetDetail>;
  /**
   * Tries a target now in every queue that has paused or stopped it, e.g. after a deploy.
   * @throws {NotFoundError}
   * @example
   * const { resumed, tried } = await tocsin.targets.resume('EMAIL');
   */
  resume(name: string, query?: TargetQuery): Promise<TargetResumed>;
}

export const createTargets = ({ ask, read }: Requests): Targets => ({
  list: async (query = {}) =>
    (await read<{ targets: TargetStatus[] }>(`/targets${search(query)}`, 'targets', 'the targets')).targets,
  get: async (name, query = {}) => read(pathTo`/targets/${name}` + search(query), 'queues', 'the target'),
  resume: async (name, query = {}) =>
    ask('POST', pathTo`/targets/${name}/resume` + search(query), 'tried', 'the outcome'),
});

function search(query: TargetQuery): string {
  const { queues } = checked(query, { queues: true });
  return queues === undefined ? '' : `?${new URLSearchParams({ queue: queues.join(',') })}`;
}
