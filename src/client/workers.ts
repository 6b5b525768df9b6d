import type * as contract from '../contract/workers';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { byCursor, type ListOptions } from './pages';
import { checked, pathTo, type Requests } from './requests';

/** What a worker must do: continue; finish and take no more; finish and end. */
export type Directive = contract.Directive;

export type WorkerStatus = Named<contract.WorkerStatus>;

export type LeasedJob = Named<contract.LeasedJob>;

export type WorkerDetail = Named<contract.WorkerDetail>;

/** Is a worker at work? */
export type WorkerHealth = Named<contract.WorkerHealth>;

/** The number of workers in each state. */
export type WorkerCounts = Named<contract.WorkerCounts>;

/** Workers that pull, as `tocsin.workers`. Most calls need `admin:read` or `admin:write`. */
export interface Workers {
  /** Every worker that has sent a heartbeat, read page by page. */
  list(options?: ListOptions): AsyncGenerator<WorkerStatus>;
  /** The number of workers in each state. */
  counts(): Promise<WorkerCounts>;
  /** A worker with its leased jobs. @throws {NotFoundError} */
  get(id: string): Promise<WorkerDetail>;
  /** Is it at work? A worker that is not is returned too, not thrown as an error. @throws {NotFoundError} */
  health(id: string): Promise<WorkerHealth>;
  /** Tells a worker to finish its jobs; it gets no more. @throws {NotFoundError} */
  quiet(id: string): Promise<WorkerStatus>;
  /**
   * Gives a worker, or all of them, a directive. @param only the id of one; absent: all @returns how many were
   * notified
   * @throws {NotFoundError} {@link InvalidJobError} for an id that is undefined
   * @example
   * await tocsin.workers.direct('terminate'); // before a deploy
   */
  direct(directive: Directive, ...only: [id?: string]): Promise<number>;
  /** Forgets a stale worker, and frees its jobs. @throws {ConflictError} it is not stale; {@link NotFoundError} */
  remove(id: string): Promise<void>;
}

export const createWorkers = ({ safely, ask, read, remove }: Requests): Workers => ({
  list: (options = {}) => byCursor(safely, { path: '/admin/workers', member: 'items' }, options),
  counts: async () =>
    (await read<{ summary: WorkerCounts }>('/admin/workers?limit=1', 'summary', 'the counts')).summary,
  get: async (id) => read(pathTo`/admin/workers/${id}`, 'jobs', 'the worker'),
  health: async (id) =>
    ask('GET', pathTo`/workers/${id}/health`, 'healthy', 'the worker', undefined, { answers: [503] }),
  quiet: async (id) => ask('POST', pathTo`/admin/workers/${id}/quiet`, 'id', 'the worker'),
  direct: async (directive, ...only) => {
    const chosen = only.length === 0 ? {} : checked({ workerId: only[0] }, { workerId: true });
    const [path, body] = ['/admin/workers/directive', jsonOf({ directive, ...chosen })];
    return (await ask<{ updated: number }>('POST', path, 'updated', 'the outcome', body)).updated;
  },
  remove: async (id) => await remove(pathTo`/admin/workers/${id}`),
});
