/** The handler Workers that jobs are pushed to, through the client. */
import { shaped } from './answers';
import type { Requests } from './requests';
import { pathTo } from './transport';

/** Does a handler take its calls? `paused`: tried again within seconds; `stopped`: within a minute. */
export type TargetState = 'up' | 'paused' | 'stopped';

/** What is wrong with a target; nothing while it is up. Times are RFC 3339. */
interface Trouble {
  since?: string;
  lastTriedAt?: string;
  lastError?: string;
  /** When it is tried again by itself. */
  nextTryAt?: string;
}

/** A target over all queues: in the worst state that any of them sees. */
export interface TargetStatus extends Trouble {
  name: string;
  /** What is mapped to it, as in `HANDLERS`. */
  patterns: string[];
  state: TargetState;
  /** Types that it announced, as far as queues have asked. */
  types?: string[];
  /** How many queues see it in each state. */
  queueStates: Record<TargetState, number>;
}

/** A target as one queue sees it. */
export interface TargetInQueue extends Trouble {
  queue: string;
  state: TargetState;
  /** When it was asked last what it takes. */
  askedAt?: string;
  types?: string[];
}

/** A target with what each queue says of it. `nextCursor`: there are queues that were not asked. */
export interface TargetDetail extends TargetStatus {
  queues: TargetInQueue[];
  queuesAsked: number;
  nextCursor: string | null;
}

/** What became of trying a target. */
export interface TargetResumed {
  name: string;
  queuesAsked: number;
  /** Queues that had paused or stopped it, and tried it. */
  tried: number;
  /** Those of them in which it is up now. */
  resumed: number;
  queues: TargetInQueue[];
}

/** Which queues to ask. Default: the first 200. */
export interface TargetQuery {
  queues?: readonly string[];
}

/** The handler Workers of the deployment, as `tocsin.targets`. */
export class Targets {
  constructor(private readonly requests: Requests) {}

  /** Every target of the deployment. */
  async list(query: TargetQuery = {}): Promise<TargetStatus[]> {
    const path = `/targets${search(query)}`;
    return (await this.requests.read<{ targets: TargetStatus[] }>(path, 'targets', 'the targets')).targets;
  }

  /** A target, queue by queue. @throws {NotFoundError} */
  async get(name: string, query: TargetQuery = {}): Promise<TargetDetail> {
    const path = pathTo`/targets/${name}` + search(query);
    return await this.requests.read<TargetDetail>(path, 'queues', 'the target');
  }

  /**
   * Tries a target now in every queue that has paused or stopped it, e.g. after a deploy.
   * @throws {NotFoundError}
   * @example
   * const { resumed, tried } = await tocsin.targets.resume('EMAIL');
   */
  async resume(name: string, query: TargetQuery = {}): Promise<TargetResumed> {
    const path = pathTo`/targets/${name}/resume` + search(query);
    return shaped<TargetResumed>(await this.requests.safely('POST', path), 'tried', 'the outcome');
  }
}

function search({ queues }: TargetQuery): string {
  return queues === undefined ? '' : `?${new URLSearchParams({ queue: queues.join(',') })}`;
}
