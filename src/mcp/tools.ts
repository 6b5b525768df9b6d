/**
 * The tools: each names the route that it calls, and the members of its request. Schemas and descriptions come from the
 * contract (`.ci/mcp.mjs`). A name that the contract no longer has does not compile.
 */

import { operateByFilter } from '../contract/bulk';
import { crons } from '../contract/cron';
import { adminDeadLetters } from '../contract/dead-letters';
import { failures } from '../contract/failures';
import { inspectedJobs, type JobQuery, jobItems, jobs } from '../contract/jobs';
import { adminQueues } from '../contract/queues';
import type { Contract, Exchange } from '../contract/route';
import { stats } from '../contract/stats';
import { steps } from '../contract/steps';
import { adminWorkers } from '../contract/workers';

/** The names of a type, without the open rest that it may have. */
type Names<T> = T extends object
  ? keyof { [Name in keyof T as string extends Name ? never : Name]: 0 } & string
  : never;

/** A route, and how a tool uses it. Parameters of its path are arguments of the tool. */
export interface Use<Query = string, Body = string, Answer = string> {
  contract: Contract;
  query?: readonly Query[];
  body?: readonly Body[];
  /** Members of the body's `filter`. Such a route can say what it would act on. */
  filter?: readonly Names<JobQuery>[];
  /** What is shown of the answer; absent: all. */
  keep?: readonly Answer[];
  /** Read before a write: what it shows must still be so when the write is confirmed. */
  look?: Use;
}

type Part<T extends Exchange> = Omit<Use<Names<T['query']>, Names<T['body']>, Names<T[200]>>, 'contract'>;

export const use = <T extends Exchange>(contract: Contract<T>, part: Part<T> = {}): Use => ({ contract, ...part });

const WHEN = ['since', 'until'] as const;
const WHICH = ['queue', 'type', 'state', 'tags', 'group', 'error_type', 'fingerprint', 'q', 'ids', ...WHEN] as const;

/** Those that operators use; a job needs no others to run. */
const OPTIONS = ['queue', 'group', 'priority', 'delay_until', 'expires_at', 'max_attempts', 'tags'] as const;

const job = use(jobs.show, { keep: ['id', 'type', 'queue', 'state', 'attempt'] });
const queue = use(adminQueues.show, { keep: ['name', 'status'] });

/** Where a tool has several routes, it takes the first whose path it can fill in. */
export const TOOLS = {
  overview: [use(stats.show, { query: ['queue'] })],
  list_queues: [use(adminQueues.list, { query: ['name'] })],
  show_queue: [use(adminQueues.show)],
  list_jobs: [use(jobItems.list, { query: [...WHICH, 'sort', 'order'] })],
  show_job: [use(inspectedJobs.show, { query: ['timeline'] })],
  why_job_waits: [use(jobs.show, { keep: ['id', 'type', 'queue', 'state', 'scheduled_at', 'waiting_for'] })],
  list_failures: [use(failures.list, { query: ['queue', 'type', 'state', 'sort', ...WHEN] })],
  list_dead_letters: [use(adminDeadLetters.list, { query: ['queue', 'type', 'error_type', 'group', ...WHEN] })],
  list_schedules: [use(crons.list, { query: ['enabled', 'group'], keep: ['crons', 'count'] })],
  list_workers: [use(adminWorkers.list, { keep: ['items', 'summary'] })],
  enqueue_job: [use(jobs.enqueue, { body: ['type', 'args', 'meta', 'id', ...OPTIONS] })],
  retry_jobs: [use(inspectedJobs.retry, { body: ['from'], look: job }), use(operateByFilter.retry, { filter: WHICH })],
  cancel_jobs: [use(operateByFilter.cancel, { filter: WHICH })],
  pause_queue: [use(adminQueues.pause, { look: queue })],
  signal_job: [use(steps.signal, { body: ['payload'], look: job })],
} as const satisfies Record<string, readonly [Use, ...Use[]]>;
