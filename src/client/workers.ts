/** The workers that pull, as operators see and direct them through the client. */
import { shaped } from './answers';
import { jsonOf } from './job';
import { byCursor, type ListOptions } from './pages';
import type { Requests } from './requests';

/** What a worker should do: go on; finish and take no more; finish and end. */
export type Directive = 'running' | 'quiet' | 'terminate';

/** A worker, known from its heartbeats. Times are RFC 3339. */
export interface WorkerStatus {
  id: string;
  /** `stale`: silent for longer than 60 s. */
  state: Directive | 'stale';
  /** What it says of itself. */
  reported_state: string;
  /** What it was told. */
  directive: Directive;
  active_jobs: number;
  hostname: string | null;
  pid: number | null;
  queues: string[];
  concurrency: number | null;
  version: string | null;
  started_at: string;
  last_heartbeat_at: string;
  metadata: { labels?: unknown };
}

/** A job that a worker holds. */
export interface HeldJob {
  id: string;
  type: string;
  queue: string;
  state: 'active';
  attempt: number;
  started_at: string;
  lease_expires_at: string;
}

/** A worker with the jobs it holds. */
export interface WorkerDetail extends WorkerStatus {
  jobs: HeldJob[];
}

/** Is a worker at work? */
export interface WorkerHealth extends Omit<WorkerStatus, 'id' | 'state'> {
  worker_id: string;
  state: WorkerStatus['state'] | 'draining' | 'shutting_down';
  /** Does it run, or finish what it has? */
  healthy: boolean;
}

/** How many workers there are of each state. */
export type WorkerCounts = Record<WorkerStatus['state'] | 'total', number>;

/** Workers that pull, as `tocsin.workers`. Most calls need `admin:read` or `admin:write`. */
export class Workers {
  readonly #requests: Requests;

  constructor(requests: Requests) {
    this.#requests = requests;
  }

  /** Every worker that has sent a heartbeat, read page by page. */
  async *list(options: ListOptions = {}): AsyncGenerator<WorkerStatus> {
    yield* byCursor<WorkerStatus>(this.#requests.safely, { path: '/admin/workers', member: 'items' }, options);
  }

  /** How many there are of each state. */
  async counts(): Promise<WorkerCounts> {
    const answer = await this.#requests.safely('GET', '/admin/workers?limit=1');
    return shaped<{ summary: WorkerCounts }>(answer, 'summary', 'the counts').summary;
  }

  /** A worker, and what it holds. @throws {NotFoundError} */
  async get(id: string): Promise<WorkerDetail> {
    return shaped<WorkerDetail>(await this.#requests.safely('GET', `/admin${pathOf(id)}`), 'jobs', 'the worker');
  }

  /** Is it at work? Also for one that is not: an answer is no error here. @throws {NotFoundError} */
  async health(id: string): Promise<WorkerHealth> {
    const answer = await this.#requests.safely('GET', `${pathOf(id)}/health`, undefined, { answers: [503] });
    return shaped<WorkerHealth>(answer, 'healthy', 'the worker');
  }

  /** Tells a worker to finish what it has; it gets no more jobs. @throws {NotFoundError} */
  async quiet(id: string): Promise<WorkerStatus> {
    return shaped<WorkerStatus>(await this.#requests.safely('POST', `/admin${pathOf(id)}/quiet`), 'id', 'the worker');
  }

  /**
   * Tells a worker, or all, what to do from now on.
   * @param id absent: all that are known
   * @returns how many were told
   * @throws {NotFoundError}
   * @example
   * await tocsin.workers.direct('terminate'); // before a deploy
   */
  async direct(directive: Directive, id?: string): Promise<number> {
    const body = jsonOf({ directive, worker_id: id });
    const answer = await this.#requests.safely('POST', '/admin/workers/directive', body);
    return shaped<{ updated: number }>(answer, 'updated', 'the outcome').updated;
  }

  /**
   * Forgets a worker that is gone; its jobs run elsewhere at once.
   * @throws {ConflictError} when it is not stale; {@link NotFoundError}
   */
  async remove(id: string): Promise<void> {
    await this.#requests.remove(`/admin${pathOf(id)}`);
  }
}

function pathOf(id: string): string {
  return `/workers/${encodeURIComponent(id)}`;
}
