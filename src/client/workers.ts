import type * as contract from '../contract/workers';
import { jsonOf } from '../producer/job';
import type { Named } from '../producer/names';
import { shaped } from './answers';
import { checked } from './conditions';
import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

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
export class Workers {
  constructor(private readonly requests: Requests) {}

  /** Every worker that has sent a heartbeat, read page by page. */
  async *list(options: ListOptions = {}): AsyncGenerator<WorkerStatus> {
    yield* byCursor<WorkerStatus>(this.requests.safely, { path: '/admin/workers', member: 'items' }, options);
  }

  /** The number of workers in each state. */
  async counts(): Promise<WorkerCounts> {
    const answer = await this.requests.read<{ summary: WorkerCounts }>(
      '/admin/workers?limit=1',
      'summary',
      'the counts',
    );
    return answer.summary;
  }

  /** A worker with its leased jobs. @throws {NotFoundError} */
  async get(id: string): Promise<WorkerDetail> {
    return await this.requests.read<WorkerDetail>(pathTo`/admin/workers/${id}`, 'jobs', 'the worker');
  }

  /** Is it at work? A worker that is not is returned too, not thrown as an error. @throws {NotFoundError} */
  async health(id: string): Promise<WorkerHealth> {
    const answer = await this.requests.safely('GET', pathTo`/workers/${id}/health`, undefined, { answers: [503] });
    return shaped<WorkerHealth>(answer, 'healthy', 'the worker');
  }

  /** Tells a worker to finish its jobs; it gets no more. @throws {NotFoundError} */
  async quiet(id: string): Promise<WorkerStatus> {
    return shaped<WorkerStatus>(
      await this.requests.safely('POST', pathTo`/admin/workers/${id}/quiet`),
      'id',
      'the worker',
    );
  }

  /**
   * Gives a worker, or all of them, a directive. @param only the id of one; absent: all @returns how many were
   * notified
   * @throws {NotFoundError} {@link InvalidJobError} for an id that is undefined
   * @example
   * await tocsin.workers.direct('terminate'); // before a deploy
   */
  async direct(directive: Directive, ...only: [id?: string]): Promise<number> {
    const chosen = only.length === 0 ? {} : checked({ workerId: only[0] }, { workerId: true });
    const body = jsonOf({ directive, ...chosen });
    const answer = await this.requests.safely('POST', '/admin/workers/directive', body);
    return shaped<{ updated: number }>(answer, 'updated', 'the outcome').updated;
  }

  /**
   * Forgets a worker that is gone, and frees its jobs.
   * @throws {ConflictError} when it is not stale; {@link NotFoundError}
   */
  async remove(id: string): Promise<void> {
    await this.requests.remove(pathTo`/admin/workers/${id}`);
  }
}
