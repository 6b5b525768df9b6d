/** The handler Workers that jobs are pushed to, as the queues see them. */
import type { Also } from '../ojs/names';
import type { CursorQuery, Time } from './common';
import { get, operates, post } from './route';

/** Does a handler take its calls? `paused`: tried again within seconds; `stopped`: within a minute. */
export type TargetState = 'up' | 'paused' | 'stopped';

/** What is wrong with a target; nothing while it is up. */
export interface Trouble {
  /** When it began. */
  since?: Time;
  last_tried_at?: Time;
  last_error?: string;
  /** When it is tried again by itself. */
  next_try_at?: Time;
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
  queue_states: Record<TargetState, number>;
}

/** A target as one queue sees it. */
export interface TargetInQueue extends Trouble {
  queue: string;
  state: TargetState;
  /** When it was asked last what it takes. */
  asked_at?: Time;
  types?: string[];
}

/** Which queues an answer is about. */
export interface Asked {
  queues_asked: number;
  /** Queues that did not answer. */
  unreachable?: string[];
  /** Leads to the next queues; null: all were asked. */
  next_cursor: string | null;
}

interface Targets extends Asked {
  items: TargetStatus[];
  total: number;
}

export interface TargetList extends Also<'TargetList', Targets> {}

/** A target with what each queue says of it. */
export interface TargetDetail extends TargetStatus, Asked {
  queues: TargetInQueue[];
}

/** What became of trying a target. */
export interface TargetResumed {
  name: string;
  queues_asked: number;
  /** Queues that had paused or stopped it, and tried it. */
  tried: number;
  /** Those of them in which it is up now. */
  resumed: number;
  queues: TargetInQueue[];
}

interface QueuesQuery {
  /** Only these queues are asked, separated by commas; also `queue`. Default: the first 200. */
  queues?: string;
  queue?: string;
}

/** Of its paging only the cursor counts: it leads to the next queues. */
interface AskedQuery extends CursorQuery, QueuesQuery {}

/** Below `/ojs/v1` and below `/ojs/v1/admin`. */
export const targets = {
  /** Lists the targets of the deployment with their states. */
  list: get<{ query: AskedQuery; 200: TargetList }>('/targets'),
  /** Shows a target, queue by queue. */
  show: get<{ query: AskedQuery; 200: TargetDetail; errors: 404 }>('/targets/:name'),
  /** Calls a target now in every queue that has paused or stopped it. */
  resume: post<{ query: QueuesQuery; 200: TargetResumed; errors: 404 }>(
    '/targets/:name/resume',
    operates('target.resume'),
  ),
};
