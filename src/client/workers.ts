/** The workers that pull, as operators see and direct them through the client. */

import { jsonOf } from '../producer/job';
import { shaped } from './answers';
import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** What a worker must do: go on; finish and take no more; finish and end. */
export type Directive = 'running' | 'quiet' | 'terminate';

/** A worker, known from its heartbeats. Times are RFC 3339. */
export interface WorkerStatus {
  id: string;
  /** `stale`: no heartbeat for 60 s. */
  state: Directive | 'stale';
  /** Its state as it reported it. */
  reportedState: string;
  /** The directive that it was given. */
  directive: Directive;
  activeJobs: number;
  hostname: string | null;
  pid: number | null;
  queues: string[];
  concurrency: number | null;
  version: string | null;
  startedAt: string;
  lastHeartbeatAt: string;
  metadata: { labels?: unknown };
}

/** A job that a worker has leased. */
export interface LeasedJob {
  id: string;
  type: string;
  queue: string;
  state: 'active';
  attempt: number;
  startedAt: string;
  leaseExpiresAt: string;
}

/** A worker with its leased jobs. */
export interface WorkerDetail extends WorkerStatus {
  jobs: LeasedJob[];
}

/** Is a worker at work? */
export interface WorkerHealth extends Omit<WorkerStatus, 'id' | 'state'> {
  workerId: string;
  state: WorkerStatus['state'] | 'draining' | 'shutting_down';
  /** Does it run, or finish its jobs? */
  healthy: boolean;
}

/** The number of workers in each state. */
export type WorkerCounts = Record<WorkerStatus['state'] | 'total', number>;

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
   * Gives a worker, or all of them, a directive.
   * @param id absent: all that are known
   * @returns how many were told
   * @throws {NotFoundError}
   * @example
   * await tocsin.workers.direct('terminate'); // before a deploy
   */
  async direct(directive: Directive, id?: string): Promise<number> {
    const body = jsonOf({ directive, workerId: id });
    const answer = await this.requests.safely('POST', '/admin/workers/directive', body);
    return shaped<{ updated: number }>(answer, 'updated', 'the outcome').updated;
  }

  /**
   * Forgets a worker that is gone; its jobs run elsewhere at once.
   * @throws {ConflictError} when it is not stale; {@link NotFoundError}
   */
  async remove(id: string): Promise<void> {
    await this.requests.remove(pathTo`/admin/workers/${id}`);
  }
}
